package member

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// news collects what is told of members.
func (w *world) news() *[]string {
	told := &[]string{}
	w.members.OnLoss(func(name string) { *told = append(*told, name+" lost") })
	w.members.OnRecovery(func(name string) { *told = append(*told, name+" back") })
	return told
}

func TestThatAMemberIsLostOrBackIsToldOnce(t *testing.T) {
	server := newAPIServer(t, "token")
	w := newWorld(t, server, "token")
	told := w.news()
	for _, step := range []struct {
		token string
		want  []string
		alive bool
	}{
		{"token", nil, true},
		{"other", []string{"m1 lost"}, false},
		{"other", []string{"m1 lost"}, false},
		{"token", []string{"m1 lost", "m1 back"}, true},
		{"token", []string{"m1 lost", "m1 back"}, true},
	} {
		server.accepted.Store(&step.token)
		w.get(t).Probe(t.Context())
		if diff := cmp.Diff(step.want, *told, cmp.Transformer("none", func(s []string) []string { return append([]string{}, s...) })); diff != "" {
			t.Fatalf("told (-want +got):\n%s", diff)
		}
		if w.members.Answers("m1") != step.alive {
			t.Errorf("it is said to answer: %t", !step.alive)
		}
	}
	if w.members.Answers("m2") {
		t.Error("a member that nobody has opened is said to answer")
	}
}

func TestWhoGivesUpAskingHasLearnedNothing(t *testing.T) {
	w := newWorld(t, newAPIServer(t, "token"), "token")
	told := w.news()
	target := w.get(t)
	target.Probe(t.Context())
	ctx, giveUp := context.WithCancel(t.Context())
	giveUp()
	target.Probe(ctx)
	if len(*told) > 0 || !w.members.Answers("m1") {
		t.Errorf("told %v", *told)
	}
}

func TestARequestWithoutAnAnswerTellsThatAMemberIsLostAndOnlyAProbeThatItIsBack(t *testing.T) {
	server := newAPIServer(t, "token")
	w := newWorld(t, server, "token")
	told := w.news()
	target := w.get(t)
	target.Probe(t.Context())
	server.CloseClientConnections()
	server.Listener.Close()
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	if _, err := target.GetLive(t.Context(), kind, client.ObjectKey{Namespace: "a", Name: "b"}); err == nil {
		t.Fatal("a closed server answers")
	}
	if diff := cmp.Diff([]string{"m1 lost"}, *told); diff != "" || w.members.Answers("m1") {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}
