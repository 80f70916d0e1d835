package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func withReady(replicas int32) *appsv1.Deployment {
	d := templateFor("web", replicas)
	d.Status.ReadyReplicas = replicas
	return d
}

func isMet(e *expectation) bool { return countUnmet([]*expectation{e}) == 0 }

func TestExpectationIsMetByFirstMatchingState(t *testing.T) {
	member := newTracker("member1")
	ready := member.expect("web", isReady(2))

	member.observe("web", withReady(1), epoch)
	member.observe("other", withReady(2), epoch)
	if isMet(ready) {
		t.Fatal("one ready replica or another Deployment met the expectation of two ready replicas")
	}
	member.observe("web", withReady(2), epoch.Add(time.Second))
	member.observe("web", withReady(2), epoch.Add(time.Minute))
	if !isMet(ready) || !ready.at.Equal(epoch.Add(time.Second)) {
		t.Errorf("met: %t, at %v, want the time of the first state with two ready replicas", isMet(ready), ready.at)
	}
}

func TestExpectationIsMetByCurrentState(t *testing.T) {
	member := newTracker("member1")
	member.observe("web", withReady(2), epoch)
	if ready := member.expect("web", isReady(2)); !isMet(ready) || !ready.at.Equal(epoch) {
		t.Errorf("met: %t, at %v, want %v", isMet(ready), ready.at, epoch)
	}
}

func TestExpectationIsMetByDeletion(t *testing.T) {
	member := newTracker("member1")
	member.observe("web", withReady(2), epoch)
	gone := member.expect("web", isAbsent)
	if isMet(gone) {
		t.Fatal("a Deployment that exists met the expectation of absence")
	}
	member.observe("web", nil, epoch.Add(time.Second))
	if !isMet(gone) {
		t.Error("the deletion did not meet the expectation")
	}
}

func TestIsRolledOut(t *testing.T) {
	updated := withReady(2)
	updated.Generation = 2
	updated.Spec.Template.Spec.Containers[0].Image = secondImage
	updated.Status.ObservedGeneration, updated.Status.UpdatedReplicas = 2, 2
	tests := map[string]struct {
		change func(*appsv1.Deployment)
		want   bool
	}{
		"all replicas updated and ready": {func(*appsv1.Deployment) {}, true},
		"status of an old generation":    {func(d *appsv1.Deployment) { d.Status.ObservedGeneration = 1 }, false},
		"one replica with the old image": {func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 1 }, false},
		"one replica not ready":          {func(d *appsv1.Deployment) { d.Status.ReadyReplicas = 1 }, false},
		"template with the old image":    {func(d *appsv1.Deployment) { d.Spec = withReady(2).Spec }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := updated.DeepCopy()
			test.change(d)
			if got := isRolledOut(secondImage, 2).holds(d); got != test.want {
				t.Errorf("rolled out: %t, want %t", got, test.want)
			}
		})
	}
}

func TestAwaitErrorNamesUnmetExpectation(t *testing.T) {
	member := newTracker("member1")
	member.observe("web-0000", withReady(1), epoch)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("timeout"))

	err := awaitAll(ctx, member.expect("web-0001", isPresent), member.expect("web-0000", isPresent), member.expect("web-0002", isPresent))
	want := "2 of 3 expectations are not met, for example that web-0001 in member1 exists: timeout"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("awaitAll() = %v, want %q", err, want)
	}
}

func TestTrackerWatchesCluster(t *testing.T) {
	existing := templateFor("web", 1)
	existing.Namespace = "bench"
	client := fake.NewClientset(existing)
	member := newTracker("member1")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := member.watchCluster(ctx, &cluster{name: "member1", typed: client}, "bench"); err != nil {
		t.Fatal(err)
	}
	if err := awaitAll(ctx, member.expect("web", isPresent)); err != nil {
		t.Fatal(err)
	}
	if err := client.AppsV1().Deployments("bench").Delete(ctx, "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := awaitAll(ctx, member.expect("web", isAbsent)); err != nil {
		t.Error(err)
	}
}

func TestSlowestMemberTime(t *testing.T) {
	at := func(seconds ...int) (list []*expectation) {
		for _, s := range seconds {
			list = append(list, &expectation{at: epoch.Add(time.Duration(s) * time.Second)})
		}
		return list
	}
	if got := slowestMemberTime(at(1, 4, 2), at(3, 5, 9)); got != 7*time.Second {
		t.Errorf("slowestMemberTime() = %v, want the 7 s of the third member, which was ready last", got)
	}
	j := propagationTimes{presentAfter: 4 * time.Second, aggregatedAfter: 10 * time.Second, memberReadyTime: 7 * time.Second}
	if got := j.controlPlaneTime(); got != 3*time.Second {
		t.Errorf("controlPlaneTime() = %v, want 3s", got)
	}
}
