package simulation

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/policy"
)

// drawWorld draws a control plane in which every object is placed.
func drawWorld(t *testing.T, draw *rapid.T) *world {
	var clusters []*clusterv1alpha1.Cluster
	for i := range rapid.IntRange(1, 5).Draw(draw, "clusters") {
		clusters = append(clusters, member(fmt.Sprintf("m%d", i+1), rapid.Int64Range(0, 30).Draw(draw, "pods")))
	}
	placements := []string{everywhere, onM1, labelled, evenly, evenOnM1M2, byCapacity, oneCluster, tolerantM1}
	var policies []policy.Object
	var templates []*unstructured.Unstructured
	for i := range rapid.IntRange(1, 4).Draw(draw, "objects") {
		name := fmt.Sprintf("o%d", i)
		placement := rapid.SampledFrom(placements).Draw(draw, "placement")
		policies = append(policies, policyFor(t, name, placement, "Deployment/"+name, "ConfigMap/"+name))
		templates = append(templates, template(name, rapid.Int64Range(-1, 20).Draw(draw, "replicas")))
	}
	w := newWorld(t, clusters, policies, templates...)
	w.All = true
	return w
}

func drawChanges(draw *rapid.T) ClusterChanges {
	cluster := rapid.SampledFrom([]string{"m1", "m2", "m9"})
	var c ClusterChanges
	if rapid.Bool().Draw(draw, "removes") {
		c.Without = []string{cluster.Draw(draw, "removed")}
	}
	if rapid.Bool().Draw(draw, "taints") {
		effect := rapid.SampledFrom([]corev1.TaintEffect{corev1.TaintEffectNoExecute, corev1.TaintEffectNoSchedule}).Draw(draw, "effect")
		c.Taints = taint(cluster.Draw(draw, "tainted"), "down", effect).Taints
	}
	if rapid.Bool().Draw(draw, "labels") {
		c.Labels = []LabelChange{{Cluster: cluster.Draw(draw, "labelled"), Key: "name", Value: "m1", Remove: rapid.Bool().Draw(draw, "remove")}}
	}
	return c
}

func TestNothingMovesWithoutAChange(t *testing.T) {
	rapid.Check(t, func(draw *rapid.T) {
		w := drawWorld(t, draw)
		for _, outcome := range Run(t.Context(), w.Input).Objects {
			if len(outcome.Before) > 0 && outcome.Effect != Unchanged {
				draw.Fatalf("%s %s", outcome.Name, describe(outcome))
			}
		}
	})
}

func TestRunIsDeterministicAndModifiesNothing(t *testing.T) {
	rapid.Check(t, func(draw *rapid.T) {
		w := drawWorld(t, draw)
		w.Changes, w.Settings.Evictions = drawChanges(draw), rapid.Bool().Draw(draw, "evictions")
		w.GivenTemplates = []*unstructured.Unstructured{template("o0", 3)}
		before := encode(draw, w)
		first := Run(t.Context(), w.Input)
		if after := encode(draw, w); after != before {
			draw.Fatalf("the input was modified:\n%s\n%s", before, after)
		}
		if diff := cmp.Diff(first, Run(t.Context(), w.Input)); diff != "" {
			draw.Fatalf("the same input gives another result:\n%s", diff)
		}
	})
}

func encode(draw *rapid.T, w *world) string {
	text, err := json.Marshal([]any{w.Clusters, w.Policies, w.Bindings, w.Templates, w.GivenTemplates, w.Changes})
	if err != nil {
		draw.Fatal(err)
	}
	return string(text)
}

// TestDividedReplicasAreKept checks that a divided workload that is placed has all its replicas after
// the changes, and that a removed cluster has none.
func TestDividedReplicasAreKept(t *testing.T) {
	rapid.Check(t, func(draw *rapid.T) {
		w := drawWorld(t, draw)
		w.Changes, w.Settings.Evictions = drawChanges(draw), rapid.Bool().Draw(draw, "evictions")
		for i, outcome := range Run(t.Context(), w.Input).Objects {
			for _, target := range outcome.After {
				if len(w.Changes.Without) > 0 && target.Cluster == w.Changes.Without[0] {
					draw.Fatalf("%s stays in a removed cluster: %s", outcome.Name, describe(outcome))
				}
			}
			spec := w.Bindings[i].BindingSpec()
			if outcome.Effect == Unplaced || outcome.Effect == LastCopyLost || len(outcome.Before) == 0 || spec.Replicas == 0 ||
				spec.Placement.ReplicaScheduling == nil {
				continue
			}
			total := int64(0)
			for _, target := range outcome.After {
				total += replicasIn(target)
			}
			if total != int64(spec.Replicas) {
				draw.Fatalf("%s has %d of %d replicas: %s", outcome.Name, total, spec.Replicas, describe(outcome))
			}
		}
	})
}
