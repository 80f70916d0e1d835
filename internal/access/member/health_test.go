package member

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// recordHealthChanges collects the notifications about the health of members.
func (m *memberFixture) recordHealthChanges() *[]string {
	notifications := &[]string{}
	m.members.OnUnhealthy(func(name string) { *notifications = append(*notifications, name+" unhealthy") })
	m.members.OnRecovery(func(name string) { *notifications = append(*notifications, name+" recovered") })
	return notifications
}

func TestHealthChangeNotifiesOnce(t *testing.T) {
	server := newAPIServer(t, "token")
	w := newMemberFixture(t, server, "token")
	notifications := w.recordHealthChanges()
	for _, step := range []struct {
		token  string
		want   []string
		health bool
	}{
		{"token", nil, true},
		{"other", []string{"m1 unhealthy"}, false},
		{"other", []string{"m1 unhealthy"}, false},
		{"token", []string{"m1 unhealthy", "m1 recovered"}, true},
		{"token", []string{"m1 unhealthy", "m1 recovered"}, true},
	} {
		server.acceptedToken.Store(&step.token)
		w.mustGet(t).Probe(t.Context())
		if diff := cmp.Diff(step.want, *notifications, cmp.Transformer("none", func(s []string) []string { return append([]string{}, s...) })); diff != "" {
			t.Fatalf("notifications (-want +got):\n%s", diff)
		}
		if w.members.IsHealthy("m1") != step.health {
			t.Errorf("the member is reported as healthy: %t", !step.health)
		}
	}
	if w.members.IsHealthy("m2") {
		t.Error("a member that was never opened is reported as healthy")
	}
}

func TestCanceledProbeKeepsHealth(t *testing.T) {
	w := newMemberFixture(t, newAPIServer(t, "token"), "token")
	notifications := w.recordHealthChanges()
	target := w.mustGet(t)
	target.Probe(t.Context())
	ctx, giveUp := context.WithCancel(t.Context())
	giveUp()
	target.Probe(ctx)
	if len(*notifications) > 0 || !w.members.IsHealthy("m1") {
		t.Errorf("notifications: %v", *notifications)
	}
}

func TestFailedRequestMakesMemberUnhealthy(t *testing.T) {
	server := newAPIServer(t, "token")
	w := newMemberFixture(t, server, "token")
	notifications := w.recordHealthChanges()
	target := w.mustGet(t)
	target.Probe(t.Context())
	server.CloseClientConnections()
	server.Listener.Close()
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	if _, err := target.GetLive(t.Context(), kind, client.ObjectKey{Namespace: "a", Name: "b"}); err == nil {
		t.Fatal("a closed server answers")
	}
	if diff := cmp.Diff([]string{"m1 unhealthy"}, *notifications); diff != "" || w.members.IsHealthy("m1") {
		t.Errorf("notifications (-want +got):\n%s", diff)
	}
}
