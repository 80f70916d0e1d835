package workdeletion

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karmada.io/karmada/api"
	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/deletionguard"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/epoch"
	"karmada.io/karmada/internal/domain/guard"
	"karmada.io/karmada/internal/loop"
)

func newPullCluster(changes ...func(*clusterv1alpha1.Cluster)) *clusterv1alpha1.Cluster {
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull}}
	cluster.Status.Conditions = []metav1.Condition{{
		Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Unix(1, 0)),
	}}
	for _, change := range changes {
		change(cluster)
	}
	return cluster
}

func notReady(cluster *clusterv1alpha1.Cluster) { cluster.Status.Conditions = nil }

// newDeletedWork returns the Work of the ConfigMap shop/web. The Work is being deleted.
func newDeletedWork(permission string) *workv1alpha1.Work {
	karmadaWork := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: "karmada-es-m1", Name: "web", UID: "this", Finalizers: []string{workv1alpha1.ExecutionFinalizer},
		DeletionTimestamp: &metav1.Time{Time: time.Now().Add(-time.Second)},
		Labels:            map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "binding"},
		Annotations: map[string]string{
			workv1alpha2.ResourceBindingNamespaceAnnotation: "shop", workv1alpha2.ResourceBindingNameAnnotation: "web-configmap",
		},
	}}
	if permission != "" {
		karmadaWork.Annotations[workv1alpha1.DeletionAllowedAnnotation] = permission
	}
	karmadaWork.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"web","annotations":{"resourcetemplate.karmada.io/uid":"template"}}}`)}}}
	return karmadaWork
}

// longDeleted returns the Work of a deleted template. Its deletion began longer than
// guard.LostPermissionsDelay ago.
func longDeleted(permission string) *workv1alpha1.Work {
	karmadaWork := newDeletedWork(permission)
	karmadaWork.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(-2 * guard.LostPermissionsDelay)}
	return karmadaWork
}

// newNamespace returns an execution namespace whose deletion began inDeletionFor ago. If
// inDeletionFor is 0, the namespace is not being deleted.
func newNamespace(inDeletionFor time.Duration) *corev1.Namespace {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "karmada-es-m1", Finalizers: []string{"kubernetes"}}}
	if inDeletionFor > 0 {
		namespace.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(-inDeletionFor)}
	}
	return namespace
}

func newBinding(clusters ...string) *workv1alpha2.ResourceBinding {
	bound := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-configmap"}}
	bound.Spec.Resource.UID, bound.Spec.Placement = "template", &policyv1alpha1.Placement{}
	for _, cluster := range clusters {
		bound.Spec.Clusters = append(bound.Spec.Clusters, workv1alpha2.TargetCluster{Name: cluster})
		bound.Status.AggregatedStatus = append(bound.Status.AggregatedStatus, workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Applied: true, Health: workv1alpha2.ResourceHealthy})
	}
	return bound
}

// movedBinding returns a binding that left m1 for m2.
func movedBinding() *workv1alpha2.ResourceBinding {
	bound := newBinding("m2")
	binding.RecordDepartures(bound, []string{"m1"}, time.Now())
	return bound
}

func newClaimedTemplate() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web", UID: "template", Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "policy"},
	}}
}

func TestPermissionsForDeletedWorksOfPullClusters(t *testing.T) {
	restored := epoch.Epoch{ID: "b", Cause: epoch.CauseRestored}
	confirmed := restored
	confirmed.Confirmed = true
	tests := map[string]struct {
		karmadaWork *workv1alpha1.Work
		cluster     *clusterv1alpha1.Cluster
		stored      []client.Object
		epoch       epoch.Epoch
		permission  string
		released    bool
	}{
		"the binding still lists the cluster":                    {karmadaWork: newDeletedWork(""), cluster: newPullCluster(), stored: []client.Object{newBinding("m1")}, released: true},
		"the binding lists a cluster that is not ready":          {karmadaWork: newDeletedWork(""), cluster: newPullCluster(notReady), stored: []client.Object{newBinding("m1")}, released: true},
		"the scheduler chose another cluster":                    {karmadaWork: newDeletedWork(""), cluster: newPullCluster(), stored: []client.Object{movedBinding()}, permission: "this/a"},
		"the template was deleted":                               {karmadaWork: newDeletedWork(""), cluster: newPullCluster(), permission: "this/a"},
		"only the binding was deleted":                           {karmadaWork: newDeletedWork(""), cluster: newPullCluster(), stored: []client.Object{newClaimedTemplate()}},
		"a cluster that is not ready":                            {karmadaWork: newDeletedWork(""), cluster: newPullCluster(notReady)},
		"a permission on an earlier Work":                        {karmadaWork: newDeletedWork("earlier/a"), cluster: newPullCluster(), stored: []client.Object{newClaimedTemplate()}},
		"a permission that is still valid":                       {karmadaWork: newDeletedWork("this/a"), cluster: newPullCluster(), stored: []client.Object{newClaimedTemplate()}, permission: "this/a"},
		"a permission for a Work that is desired again":          {karmadaWork: newDeletedWork("this/a"), cluster: newPullCluster(), stored: []client.Object{newBinding("m1")}, released: true},
		"a permission from a restored backup":                    {karmadaWork: newDeletedWork("this/a"), cluster: newPullCluster(), stored: []client.Object{newBinding("m2")}, epoch: restored},
		"a permission from a backup after the confirmation":      {karmadaWork: newDeletedWork("this/a"), cluster: newPullCluster(), stored: []client.Object{movedBinding()}, epoch: confirmed, permission: "this/b"},
		"a cluster in push mode":                                 {karmadaWork: newDeletedWork(""), cluster: newPullCluster(func(c *clusterv1alpha1.Cluster) { c.Spec.SyncMode = clusterv1alpha1.Push })},
		"a permission in an execution namespace that stays":      {karmadaWork: longDeleted("this/a"), cluster: newPullCluster(), stored: []client.Object{newNamespace(0)}, permission: "this/a"},
		"a new deletion of the execution namespace":              {karmadaWork: longDeleted("this/a"), cluster: newPullCluster(), stored: []client.Object{newNamespace(time.Second)}, permission: "this/a"},
		"an agent that lost its permissions":                     {karmadaWork: longDeleted("this/a"), cluster: newPullCluster(), stored: []client.Object{newNamespace(2 * guard.LostPermissionsDelay)}, released: true},
		"a held deletion in a deleted execution namespace":       {karmadaWork: longDeleted("this/a"), cluster: newPullCluster(), stored: []client.Object{newNamespace(2 * guard.LostPermissionsDelay), newBinding("m2")}, epoch: restored},
		"a permission of an earlier epoch":                       {karmadaWork: longDeleted("this/z"), cluster: newPullCluster(notReady), stored: []client.Object{newNamespace(2 * guard.LostPermissionsDelay)}, permission: "this/z"},
		"a cluster in deletion whose agent lost its permissions": {karmadaWork: longDeleted("this/a"), cluster: newPullCluster(inDeletion), stored: []client.Object{newNamespace(2 * guard.LostPermissionsDelay)}, permission: "this/a"},
		"a cluster in deletion":                                  {karmadaWork: newDeletedWork(""), cluster: newPullCluster(notReady, inDeletion), stored: []client.Object{newBinding("m1")}, permission: "this/a"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := errors.Join(api.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
				t.Fatal(err)
			}
			karmada := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(test.stored, test.karmadaWork, test.cluster)...).Build()
			deletions, err := deletionguard.New(deletionguard.Options{
				Karmada: karmada, APIReader: karmada, Registry: prometheus.NewRegistry(), Limits: guard.DefaultLimits(), Now: time.Now,
				ReadEpoch: func(context.Context) (epoch.Epoch, error) {
					return cmp.Or(test.epoch, epoch.Epoch{ID: "a", Cause: epoch.CauseInstalled}), nil
				},
				Events: loop.NewEvents(record.NewFakeRecorder(10)), Reports: loop.NewStatusWriter(karmada, karmada, loop.DefaultStatusWriterOptions()),
			})
			if err != nil {
				t.Fatal(err)
			}
			r, key := &reconciler{karmada: karmada, guard: deletions}, client.ObjectKeyFromObject(test.karmadaWork)
			for range 2 {
				if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
					t.Fatal(err)
				}
			}
			stored := &workv1alpha1.Work{}
			err = karmada.Get(t.Context(), key, stored)
			if apierrors.IsNotFound(err) != test.released || client.IgnoreNotFound(err) != nil {
				t.Fatalf("reading the Work after the passes: %v", err)
			}
			if got := stored.Annotations[workv1alpha1.DeletionAllowedAnnotation]; got != test.permission {
				t.Errorf("the permission is %q, want %q", got, test.permission)
			}
		})
	}
}

func inDeletion(cluster *clusterv1alpha1.Cluster) {
	cluster.DeletionTimestamp, cluster.Finalizers = &metav1.Time{Time: time.Unix(2, 0)}, []string{"karmada.io/cluster-controller"}
}
