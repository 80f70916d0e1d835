package scheduler

import (
	"errors"
	"runtime"
	"testing"
	"weak"

	"github.com/google/go-cmp/cmp"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/placement"
)

func TestEventTexts(t *testing.T) {
	bound := newBinding()
	bound.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "member1", Replicas: 2}, {Name: "member2", Replicas: 3}}
	clusterWide := &workv1alpha2.ClusterResourceBinding{Spec: bound.Spec}
	clusterWide.Name = "web"
	if got := successMessage(bound); got != "Binding has been scheduled successfully. Result: {member1:2, member2:3}" {
		t.Error(got)
	}
	if got := successMessage(clusterWide); got != "Binding has been scheduled successfully. Result {member1:2, member2:3}" {
		t.Error(got)
	}
	following := newBinding(func(bound *workv1alpha2.ResourceBinding) {
		bound.Spec.Replicas, bound.Spec.ReplicaRequirements, bound.Spec.Clusters = 0, nil, []workv1alpha2.TargetCluster{{Name: "member3"}}
	})
	if got := successMessage(following); got != "Binding has been scheduled successfully. Result: {member3}" {
		t.Error(got)
	}
	v := outcome{err: errors.New("boom"), failedGroups: []placement.GroupFailure{{Index: 1, Name: "spare", Err: errors.New("full")}}}
	var got []string
	for _, err := range append(failureErrors(bound, v), failureErrors(clusterWide, v)...) {
		got = append(got, err.Error())
	}
	want := []string{
		"failed to schedule ResourceBinding(shop/web-deployment) with clusterAffinities index(1) \"spare\": full", "boom",
		"failed to schedule ClusterResourceBinding(web) with clusterAffinities index(1) \"spare\": full", "boom",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if uid := binding.TemplateReference(bound).GetUID(); uid != "t1" {
		t.Errorf("template of uid %q", uid)
	}
}

func TestFailuresAreReportedOncePerChange(t *testing.T) {
	reported := newReportedFailures()
	two := []error{errors.New("one"), errors.New("two")}
	for step, tc := range []struct {
		failures []error
		want     bool
	}{{nil, false}, {two, true}, {two, false}, {two[:1], true}, {nil, true}, {nil, false}} {
		if got := reported.update(requestFor("a"), tc.failures); got != tc.want {
			t.Errorf("step %d: update = %v, want %v", step, got, tc.want)
		}
	}
}

func TestDeferredEventsDoNotHoldSnapshots(t *testing.T) {
	l := newTestScheduler(t, withoutVersion(newBinding()), member("member1"))
	l.deferredEvents = newTestBacklog(true).eventBacklog
	held := func() weak.Pointer[snapshot] {
		p := pass{request: requestFor("a"), stored: newBinding(), snapshot: &snapshot{clusters: []*clusterv1alpha1.Cluster{member("member1")}}}
		l.recordFailureEvents(p, outcome{err: errors.New("full")})
		return weak.Make(p.snapshot)
	}()
	runtime.GC()
	if held.Value() != nil {
		t.Error("the deferred event holds the snapshot of its pass")
	}
	l.deferredEvents.isBusy = func() bool { return false }
	l.deferredEvents.recordDue()
	if events := l.recordedEvents(); len(events) != 2 {
		t.Errorf("recorded %v, want an event on the binding and one on the template", events)
	}
}
