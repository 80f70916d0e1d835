package objectcache

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/member"
)

// slowMembers closes members slowly, and records the order of calls.
type slowMembers struct {
	calls  chan string
	resume chan struct{}
}

func (s *slowMembers) GetForCluster(context.Context, *clusterv1alpha1.Cluster) (*member.Member, error) {
	s.calls <- "get"
	return nil, errors.New("no member")
}

func (s *slowMembers) CloseMember(string) {
	<-s.resume
	s.calls <- "close"
}

func TestARecreatedClusterWaitsUntilItsOldConnectionIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		members := &slowMembers{calls: make(chan string, 3), resume: make(chan struct{})}
		c := &connections{members: members, open: map[string]*connection{}, closing: map[string]chan struct{}{}}
		get := func(name string) {
			_, _ = c.get(t.Context(), &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		go c.beginClose("m1")()
		go get("m1")
		synctest.Wait()
		get("m2")
		if got := len(members.calls); got != 1 {
			t.Errorf("%d connections were opened, want only that of another cluster", got)
		}
		close(members.resume)
		synctest.Wait()
		if other, first, second := <-members.calls, <-members.calls, <-members.calls; other != "get" || first != "close" || second != "get" {
			t.Errorf("calls: %s, %s, want close before get", first, second)
		}
	})
}
