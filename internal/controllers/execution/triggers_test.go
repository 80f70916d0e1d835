package execution

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

func object(change func(map[string]any)) *unstructured.Unstructured {
	content := map[string]any{
		"apiVersion": "apps/v1",
		"kind":       "Deployment",
		"metadata": map[string]any{
			"name": "web", "namespace": "shop", "generation": int64(3),
			"labels": map[string]any{"app": "web"},
			"annotations": map[string]any{
				"resourcetemplate.karmada.io/managed-labels":      "app",
				"resourcetemplate.karmada.io/managed-annotations": "owner",
				"owner": "team-a",
			},
		},
		"spec":   map[string]any{"replicas": int64(2)},
		"status": map[string]any{"replicas": int64(2)},
	}
	change(content)
	return &unstructured.Unstructured{Object: content}
}

func metadata(content map[string]any) map[string]any { return content["metadata"].(map[string]any) }

func TestDriftedTellsChangesByOthersFromTheMembersOwnBusiness(t *testing.T) {
	withoutGeneration := func(change func(map[string]any)) *unstructured.Unstructured {
		return object(func(content map[string]any) {
			delete(metadata(content), "generation")
			change(content)
		})
	}
	none := func(map[string]any) {}
	cases := map[string]struct {
		before, after *unstructured.Unstructured
		want          bool
	}{
		"a status is the member's business": {
			object(none), object(func(c map[string]any) { c["status"] = map[string]any{"replicas": int64(1)} }), false},
		"an annotation of a member controller is the member's business": {
			object(none), object(func(c map[string]any) {
				metadata(c)["annotations"].(map[string]any)["deployment.kubernetes.io/revision"] = "1"
			}), false},
		"another generation is drift": {
			object(none), object(func(c map[string]any) { metadata(c)["generation"] = int64(4) }), true},
		"a label of the template that changed is drift": {
			object(none), object(func(c map[string]any) { metadata(c)["labels"] = map[string]any{"app": "other"} }), true},
		"a label of the template that is gone is drift": {
			object(none), object(func(c map[string]any) { metadata(c)["labels"] = map[string]any{} }), true},
		"an annotation of the template that changed is drift": {
			object(none), object(func(c map[string]any) { metadata(c)["annotations"].(map[string]any)["owner"] = "team-b" }), true},
		"content of a kind without generations that changed is drift": {
			withoutGeneration(none), withoutGeneration(func(c map[string]any) { c["spec"] = map[string]any{"replicas": int64(9)} }), true},
		"another object of the same name and generation is drift": {
			object(none), object(func(c map[string]any) { metadata(c)["uid"] = "another" }), true},
		"content of a kind without generations that stays is none": {
			withoutGeneration(none), withoutGeneration(func(c map[string]any) { metadata(c)["resourceVersion"] = "7" }), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := drifted(tc.before, tc.after); got != tc.want {
				t.Errorf("drifted = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestLedgerHoldsOnlyWhatWasAppliedAndIsStillThere(t *testing.T) {
	none := func(map[string]any) {}
	key := objectKey{}
	manifest, observed := object(none), object(func(c map[string]any) { c["spec"] = map[string]any{"replicas": int64(2), "paused": false} })
	l := newLedger()
	if l.holds(key, manifest, observed) {
		t.Error("an empty ledger holds something")
	}
	l.remember(key, manifest, observed)
	if !l.holds(key, manifest, observed) {
		t.Error("what was applied is not held")
	}
	if l.holds(key, observed, observed) {
		t.Error("another manifest is held")
	}
	if l.holds(key, manifest, manifest) {
		t.Error("a changed member object is held")
	}
	statusOnly := observed.DeepCopy()
	statusOnly.Object["status"] = map[string]any{"replicas": int64(0)}
	if !l.holds(key, manifest, statusOnly) {
		t.Error("a change of the status counts as drift")
	}
	l.forget(key.work)
	if l.holds(key, manifest, observed) {
		t.Error("what was forgotten is held")
	}
}

func TestPromisingTellsWhenWaitingWorksAreWorthATry(t *testing.T) {
	ready := func(status metav1.ConditionStatus) func(*clusterv1alpha1.Cluster) {
		return func(c *clusterv1alpha1.Cluster) { c.Status.Conditions[0].Status = status }
	}
	none := func(*clusterv1alpha1.Cluster) {}
	for name, test := range map[string]struct {
		before, after func(*clusterv1alpha1.Cluster)
		want          bool
	}{
		"a heartbeat":            {none, func(c *clusterv1alpha1.Cluster) { c.Status.KubernetesVersion = "v1.36.3" }, false},
		"a cluster that is lost": {none, ready(metav1.ConditionUnknown), false},
		"a cluster that is back": {ready(metav1.ConditionFalse), none, true},
		"a cluster that leaves":  {none, func(c *clusterv1alpha1.Cluster) { c.DeletionTimestamp = &metav1.Time{Time: noon} }, true},
		"a confirmation": {none, func(c *clusterv1alpha1.Cluster) {
			c.Annotations = map[string]string{"work.karmada.io/confirm-deletions": "2030-05-01T12:00:00Z"}
		}, true},
		"another note on it": {none, func(c *clusterv1alpha1.Cluster) { c.Annotations = map[string]string{"note": "x"} }, false},
		"a kind that it serves lately": {none, func(c *clusterv1alpha1.Cluster) {
			c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "a/v1"}}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := readyMember(), readyMember()
			test.before(before)
			test.after(after)
			if got := promising(before, after); got != test.want {
				t.Errorf("promising = %v", got)
			}
		})
	}
}

func readyMember() *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "m1"},
		Status: clusterv1alpha1.ClusterStatus{Conditions: []metav1.Condition{{
			Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour)),
		}}},
	}
}
