package execution

import (
	"context"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/loop"
)

func newDeployment(change func(map[string]any)) *unstructured.Unstructured {
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

func metadataOf(content map[string]any) map[string]any { return content["metadata"].(map[string]any) }

func TestMayHaveDrifted(t *testing.T) {
	withoutGeneration := func(change func(map[string]any)) *unstructured.Unstructured {
		return newDeployment(func(content map[string]any) {
			delete(metadataOf(content), "generation")
			change(content)
		})
	}
	none := func(map[string]any) {}
	cases := map[string]struct {
		before, after *unstructured.Unstructured
		want          bool
	}{
		"a change of the status is no drift": {
			newDeployment(none), newDeployment(func(c map[string]any) { c["status"] = map[string]any{"replicas": int64(1)} }), false},
		"an annotation of a member controller is no drift": {
			newDeployment(none), newDeployment(func(c map[string]any) {
				metadataOf(c)["annotations"].(map[string]any)["deployment.kubernetes.io/revision"] = "1"
			}), false},
		"another generation is drift": {
			newDeployment(none), newDeployment(func(c map[string]any) { metadataOf(c)["generation"] = int64(4) }), true},
		"a changed label of the template is drift": {
			newDeployment(none), newDeployment(func(c map[string]any) { metadataOf(c)["labels"] = map[string]any{"app": "other"} }), true},
		"a removed label of the template is drift": {
			newDeployment(none), newDeployment(func(c map[string]any) { metadataOf(c)["labels"] = map[string]any{} }), true},
		"a changed annotation of the template is drift": {
			newDeployment(none), newDeployment(func(c map[string]any) { metadataOf(c)["annotations"].(map[string]any)["owner"] = "team-b" }), true},
		"changed content of a kind without generations is drift": {
			withoutGeneration(none), withoutGeneration(func(c map[string]any) { c["spec"] = map[string]any{"replicas": int64(9)} }), true},
		"another object of the same name and generation is drift": {
			newDeployment(none), newDeployment(func(c map[string]any) { metadataOf(c)["uid"] = "another" }), true},
		"unchanged content of a kind without generations is no drift": {
			withoutGeneration(none), withoutGeneration(func(c map[string]any) { metadataOf(c)["resourceVersion"] = "7" }), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := mayHaveDrifted(tc.before, tc.after); got != tc.want {
				t.Errorf("mayHaveDrifted = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestAppliedTrackerComparesManifestAndObject(t *testing.T) {
	none := func(map[string]any) {}
	key := objectKey{}
	manifest, observed := newDeployment(none), newDeployment(func(c map[string]any) { c["spec"] = map[string]any{"replicas": int64(2), "paused": false} })
	tracker := newAppliedTracker()
	if tracker.isUnchanged(key, manifest, observed) {
		t.Error("an empty tracker has an entry")
	}
	tracker.recordApplied(key, manifest, observed)
	if !tracker.isUnchanged(key, manifest, observed) {
		t.Error("an applied manifest counts as changed")
	}
	if tracker.isUnchanged(key, observed, observed) {
		t.Error("another manifest counts as unchanged")
	}
	if tracker.isUnchanged(key, manifest, manifest) {
		t.Error("a changed member object counts as unchanged")
	}
	statusOnly := observed.DeepCopy()
	statusOnly.Object["status"] = map[string]any{"replicas": int64(0)}
	if !tracker.isUnchanged(key, manifest, statusOnly) {
		t.Error("a change of the status counts as drift")
	}
	tracker.deleteWork(key.work)
	if tracker.isUnchanged(key, manifest, observed) {
		t.Error("a deleted Work still has an entry")
	}
}

func TestShouldRetryWorks(t *testing.T) {
	ready := func(status metav1.ConditionStatus) func(*clusterv1alpha1.Cluster) {
		return func(c *clusterv1alpha1.Cluster) { c.Status.Conditions[0].Status = status }
	}
	none := func(*clusterv1alpha1.Cluster) {}
	for name, test := range map[string]struct {
		before, after func(*clusterv1alpha1.Cluster)
		want          bool
	}{
		"a new Kubernetes version":      {none, func(c *clusterv1alpha1.Cluster) { c.Status.KubernetesVersion = "v1.36.3" }, false},
		"a cluster that is lost":        {none, ready(metav1.ConditionUnknown), false},
		"a cluster that is ready again": {ready(metav1.ConditionFalse), none, true},
		"a cluster in deletion":         {none, func(c *clusterv1alpha1.Cluster) { c.DeletionTimestamp = &metav1.Time{Time: noon} }, true},
		"a confirmation": {none, func(c *clusterv1alpha1.Cluster) {
			c.Annotations = map[string]string{"work.karmada.io/confirm-deletions": "2030-05-01T12:00:00Z"}
		}, true},
		"another annotation": {none, func(c *clusterv1alpha1.Cluster) { c.Annotations = map[string]string{"note": "x"} }, false},
		"a new kind": {none, func(c *clusterv1alpha1.Cluster) {
			c.Status.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: "a/v1"}}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := newReadyCluster(), newReadyCluster()
			test.before(before)
			test.after(after)
			if got := shouldRetryWorks(before, after); got != test.want {
				t.Errorf("shouldRetryWorks = %v", got)
			}
		})
	}
}

func newReadyCluster() *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "m1"},
		Status: clusterv1alpha1.ClusterStatus{Conditions: []metav1.Condition{{
			Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour)),
		}}},
	}
}

// If an event contains an object in another version than this process applied, the object may have
// drifted. This includes the first list of a watch.
func TestObjectOfAnotherVersionMayHaveDrifted(t *testing.T) {
	applied := newDeployment(func(c map[string]any) {
		metadataOf(c)["resourceVersion"] = "7"
		maps.Copy(metadataOf(c)["annotations"].(map[string]any), map[string]any{
			workv1alpha1.WorkNamespaceAnnotation: "karmada-es-m1", workv1alpha1.WorkNameAnnotation: "web",
		})
	})
	changed := applied.DeepCopy()
	changed.SetResourceVersion("8")
	older := applied.DeepCopy()
	older.SetResourceVersion("6")
	older.SetGeneration(applied.GetGeneration() + 1)
	changed.SetGeneration(applied.GetGeneration() + 2)
	key := types.NamespacedName{Namespace: "karmada-es-m1", Name: "web"}
	for name, tc := range map[string]struct {
		isTracked bool
		old, new  *unstructured.Unstructured
		want      int
	}{
		"the applied version in the first list": {true, nil, applied, 0},
		"another version in the first list":     {true, nil, changed, 1},
		"an object that no pass has seen yet":   {false, nil, changed, 0},
		"an update by this process":             {true, older, applied, 0},
		"an update by another program":          {true, applied, changed, 1},
		"an update before the first pass":       {false, older, changed, 1},
		"a deletion":                            {true, applied, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := &controller{tracker: newAppliedTracker()}
			passes := make(chan types.NamespacedName, 1)
			c.queues = loop.NewMemberQueues(loop.MemberQueueOptions{Name: "test", Workers: 1}, func(_ context.Context, _ string, key types.NamespacedName) (reconcile.Result, error) {
				passes <- key
				return reconcile.Result{}, nil
			})
			if tc.isTracked {
				c.tracker.recordApplied(objectKey{work: key, kind: applied.GroupVersionKind(), object: client.ObjectKeyFromObject(applied)}, applied, applied)
			}
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				c.handleMemberEvent(member.Event{Member: "m1", Kind: applied.GroupVersionKind(), Old: tc.old, New: tc.new})
				go func() { _ = c.queues.Start(ctx) }()
				synctest.Wait()
			})
			if len(passes) != tc.want {
				t.Errorf("%d passes, want %d", len(passes), tc.want)
			}
		})
	}
}
