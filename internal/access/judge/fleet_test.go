package judge

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/guard"
)

// inCluster is a Work in deletion in another cluster.
func inCluster(cluster, name string) *workv1alpha1.Work {
	of := leaving(name)
	of.Namespace, of.UID = "karmada-es-"+cluster, types.UID(cluster+"/"+name)
	return of
}

// TestManyClustersThatLoseAFewWorksEachAreAMassDeletion deletes the same five of twenty
// templates from forty clusters: no cluster reaches its own limit.
func TestManyClustersThatLoseAFewWorksEachAreAMassDeletion(t *testing.T) {
	const clusters, all, dropped = 40, 20, 5
	var stored []client.Object
	for i := range dropped {
		stored = append(stored, boundTo(fmt.Sprintf("c%02d", i)))
	}
	for i := dropped; i < all; i++ {
		stored = append(stored, boundTo(fmt.Sprintf("c%02d", i), "all"))
	}
	var works []*workv1alpha1.Work
	for c := range clusters {
		for i := range all {
			of := inCluster(fmt.Sprintf("m%02d", c), fmt.Sprintf("c%02d", i))
			if i < dropped {
				works = append(works, of)
			} else {
				of.DeletionTimestamp = nil
			}
			stored = append(stored, of)
		}
	}
	w := newWorld(t, stored...)
	deleted, fleet := 0, Ruling{}
	for _, of := range works {
		cluster := readyCluster()
		cluster.Name = strings.TrimPrefix(of.Namespace, "karmada-es-")
		ruling, err := w.Decide(t.Context(), cluster, of, true)
		if err != nil {
			t.Fatal(err)
		}
		if ruling.Verdict == guard.Delete {
			deleted++
			w.Settle(cluster.Name, of, ruling)
			continue
		}
		fleet = ruling
	}
	if limit := guard.DefaultLimits().Fleet.Least; deleted > limit || fleet.Reason != guard.FleetDeletion {
		t.Errorf("%d of %d Works are deleted, the last is held for reason %d", deleted, len(works), fleet.Reason)
	}
	if text := fleet.losses.text(); !strings.Contains(text, "m00 5, m01 5") || !strings.Contains(text, "more clusters") || len(text) > 400 {
		t.Errorf("the losses read %q", text)
	}
}

func TestAMissingBindingIsProvenAtAnySize(t *testing.T) {
	tests := map[string]struct {
		stored []client.Object
		change func(*world)
		want   guard.Verdict
		reason guard.Reason
	}{
		"the template was deleted": {want: guard.Delete},
		"the template is there and claimed": {
			stored: []client.Object{templateObject("a")}, want: guard.Hold, reason: guard.TemplateKept},
		"the template is there and unclaimed": {
			stored: []client.Object{func() client.Object { o := templateObject("a"); o.Labels = nil; return o }()}, want: guard.Delete},
		"a workload needs the template that no policy claims": {
			stored: []client.Object{func() client.Object { o := templateObject("a"); o.Labels = nil; return o }(), needing(`[{"apiVersion":"v1","kind":"ConfigMap","namespace":"shop","name":"a"}]`)},
			want:   guard.Hold, reason: guard.TemplateKept},
		"a workload needs another one": {
			stored: []client.Object{func() client.Object { o := templateObject("a"); o.Labels = nil; return o }(), needing(`[{"apiVersion":"v1","kind":"ConfigMap","namespace":"shop","name":"b"}]`)},
			want:   guard.Delete},
		"what a workload needs cannot be read": {
			stored: []client.Object{func() client.Object { o := templateObject("a"); o.Labels = nil; return o }(), needing(`[{`)},
			want:   guard.Hold, reason: guard.TemplateKept},
		"another template has its name": {
			stored: []client.Object{func() client.Object { o := templateObject("a"); o.UID = "next"; return o }()}, want: guard.Delete},
		"the API server gives no answer": {
			change: func(w *world) { w.broken = "*v1.PartialObjectMetadata" }, want: guard.Hold, reason: guard.TemplateUnread},
		"the kind is not served": {
			change: func(w *world) { w.unserved = true }, want: guard.Hold, reason: guard.TemplateUnserved},
		"the kind may be served": {
			change: func(w *world) { w.unserved, w.api.err = true, apierrors.NewServiceUnavailable("later") }, want: guard.Hold, reason: guard.TemplateUnread},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, test.stored...)
			if test.change != nil {
				test.change(w)
			}
			ruling, err := w.Decide(t.Context(), readyCluster(), leaving("a"), true)
			if err != nil || ruling.Verdict != test.want || ruling.Reason != test.reason {
				t.Errorf("verdict %d, reason %d, error %v", ruling.Verdict, ruling.Reason, err)
			}
			if _, err := w.Decide(t.Context(), readyCluster(), leaving("a"), true); err != nil || w.reads > 1 {
				t.Errorf("%d reads of the template for two verdicts, error %v", w.reads, err)
			}
		})
	}
}

// needing is the binding of a workload that takes along what the note says.
func needing(note string) *workv1alpha2.ResourceBinding {
	bound := boundTo("web", "m1")
	bound.Annotations = map[string]string{workv1alpha2.DependenciesAnnotation: note}
	bound.Spec.PropagateDeps = true
	return bound
}

func TestATemplateWhoseObjectAnOverrideRenamedIsFoundByItsBinding(t *testing.T) {
	renamed := leaving("a")
	renamed.Annotations[workv1alpha2.ResourceBindingNameAnnotation] = "b-configmap"
	template := templateObject("b")
	template.UID = "uid-a"
	if ruling, err := newWorld(t, template).Decide(t.Context(), readyCluster(), renamed, true); err != nil || ruling.Reason != guard.TemplateKept {
		t.Errorf("with its template: verdict %d, reason %d, error %v", ruling.Verdict, ruling.Reason, err)
	}
	if ruling, err := newWorld(t).Decide(t.Context(), readyCluster(), renamed, true); err != nil || ruling.Reason != guard.TemplateUnread {
		t.Errorf("without: verdict %d, reason %d, error %v", ruling.Verdict, ruling.Reason, err)
	}
}

func TestNothingIsReadForAClusterThatIsOutOfReach(t *testing.T) {
	w, lost := newWorld(t), readyCluster()
	lost.Status = clusterv1alpha1.ClusterStatus{}
	ruling, err := w.Decide(t.Context(), lost, leaving("a"), false)
	if err != nil || ruling.Verdict != guard.Prove || w.reads != 0 {
		t.Errorf("verdict %d after %d reads, error %v", ruling.Verdict, w.reads, err)
	}
}

func TestADeletionThatAnAgentMayExecuteStaysAllowedUntilItIsWantedAgain(t *testing.T) {
	works, stored := herd(30, func(name string) []client.Object { return []client.Object{boundTo(name)} })
	w := newWorld(t, stored...)
	w.epoch = answering(installed, nil)
	allowed := works[0]
	allowed.Annotations[workv1alpha1.DeletionAllowedAnnotation] = installed.Permission(allowed)
	if ruling, err := w.Decide(t.Context(), readyCluster(), allowed, true); err != nil || ruling.Verdict != guard.Delete {
		t.Errorf("verdict %d, error %v", ruling.Verdict, err)
	}
	other := works[1]
	other.Annotations[workv1alpha1.DeletionAllowedAnnotation] = installed.Permission(allowed)
	if ruling, err := w.Decide(t.Context(), readyCluster(), other, true); err != nil || ruling.Verdict != guard.Hold {
		t.Errorf("the verdict on another Work counts: verdict %d, error %v", ruling.Verdict, err)
	}
	backedUp := works[2]
	backedUp.Annotations[workv1alpha1.DeletionAllowedAnnotation] = restored.Permission(backedUp)
	if ruling, err := w.Decide(t.Context(), readyCluster(), backedUp, true); err != nil || ruling.Verdict != guard.Hold {
		t.Errorf("the verdict of another epoch counts: verdict %d, error %v", ruling.Verdict, err)
	}
	wanted := newWorld(t, boundTo("c00", "m1"))
	if ruling, err := wanted.Decide(t.Context(), readyCluster(), allowed, true); err != nil || ruling.Verdict != guard.HandOver {
		t.Errorf("wanted again: verdict %d, error %v", ruling.Verdict, err)
	}
}

func TestAHeldDeletionIsReportedOnce(t *testing.T) {
	w, of := newWorld(t, templateObject("a")), leaving("a")
	for _, test := range []struct {
		after time.Duration
		held  int
	}{{0, 0}, {settling, 1}, {time.Minute, 1}} {
		w.now = func() time.Time { return noon.Add(test.after) }
		ruling, err := w.Decide(t.Context(), readyCluster(), of, true)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Hold(readyCluster(), of, ruling); err == nil {
			t.Error("nothing says that the deletion is tried again")
		}
		if got := len(w.held.works); got != test.held {
			t.Errorf("after %s %d deletions are held, want %d", test.after, got, test.held)
		}
	}
	w.Forget(client.ObjectKeyFromObject(of))
	if len(w.held.works) != 0 {
		t.Error("a Work that is gone is held")
	}
}
