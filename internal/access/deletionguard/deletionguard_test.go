package deletionguard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"karmada.io/karmada/api"
	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/guard"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
)

var noon = time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)

// guardFixture is a Guard with a fake store.
type guardFixture struct {
	*Guard
	store client.WithWatch
	// unreadableType is the type of the objects whose reads fail. isKindUnserved makes reads of
	// templates fail as if the API server did not serve their kind.
	unreadableType string
	isKindUnserved bool
	discovery      fakeDiscovery
	// templateReads counts the reads of templates.
	templateReads int
}

// fakeDiscovery is the discovery of the control plane. It serves no kinds and returns err for each
// request.
type fakeDiscovery struct{ err error }

func (f *fakeDiscovery) ServerResourcesForGroupVersion(string) (*metav1.APIResourceList, error) {
	return &metav1.APIResourceList{}, f.err
}

func (f *fakeDiscovery) GroupsAndMaybeResources() (*metav1.APIGroupList, map[schema.GroupVersion]*metav1.APIResourceList, map[schema.GroupVersion]error, error) {
	groups := &metav1.APIGroupList{Groups: []metav1.APIGroup{{Versions: []metav1.GroupVersionForDiscovery{{Version: "v1"}}}}}
	return groups, map[schema.GroupVersion]*metav1.APIResourceList{{Version: "v1"}: {}}, nil, f.err
}

func newGuardFixture(t *testing.T, objects ...client.Object) *guardFixture {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(api.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	w := &guardFixture{}
	for _, object := range objects {
		if bound, ok := object.(*workv1alpha2.ResourceBinding); ok {
			objects = append(objects, appliedWorks(bound)...)
		}
	}
	w.store = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, o ...client.GetOption) error {
			_, template := object.(*metav1.PartialObjectMetadata)
			if template {
				w.templateReads++
			}
			if fmt.Sprintf("%T", object) == w.unreadableType {
				return errors.New("no answer")
			}
			if template && w.isKindUnserved {
				return apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{Resource: "configmaps"}, key.Name, "404 page not found", 0, true)
			}
			return c.Get(ctx, key, object, o...)
		},
	}).Build()
	var err error
	w.Guard, err = New(Options{
		Karmada: w.store, APIReader: w.store, Discovery: &w.discovery, Registry: prometheus.NewRegistry(), Limits: guard.DefaultLimits(),
		Now: func() time.Time { return noon }, Events: loop.NewEvents(record.NewFakeRecorder(100)),
		Reports: loop.NewStatusWriter(w.store, w.store, loop.DefaultStatusWriterOptions()),
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// decideAction returns the action for a Work. The cluster is reachable if it has conditions.
func (g *guardFixture) decideAction(t *testing.T, cluster *clusterv1alpha1.Cluster, karmadaWork *workv1alpha1.Work) (guard.Action, error) {
	t.Helper()
	decision, err := g.decide(t.Context(), cluster, karmadaWork, len(cluster.Status.Conditions) > 0)
	return decision.Action, err
}

func readyCluster() *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "m1"},
		Status: clusterv1alpha1.ClusterStatus{Conditions: []metav1.Condition{{
			Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour)),
		}}},
	}
}

// templateObject returns a claimed ConfigMap.
func templateObject(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID("uid-" + name),
			Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "policy"},
		},
	}
}

func newBinding(name string, clusters ...string) *workv1alpha2.ResourceBinding {
	bound := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name + "-configmap", Labels: map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "binding-" + name},
	}}
	bound.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: name, UID: types.UID("uid-" + name)}
	bound.Spec.Placement = &policyv1alpha1.Placement{}
	for _, cluster := range clusters {
		bound.Spec.Clusters = append(bound.Spec.Clusters, workv1alpha2.TargetCluster{Name: cluster})
	}
	return bound
}

// appliedWorks returns a current and applied Work for each cluster that reports the object of a
// binding as healthy.
func appliedWorks(bound *workv1alpha2.ResourceBinding) []client.Object {
	var works []client.Object
	for _, item := range bound.Status.AggregatedStatus {
		applied := newDeletedWork(bound.Spec.Resource.Name)
		applied.Namespace, applied.DeletionTimestamp, applied.UID = "karmada-es-"+item.ClusterName, nil, types.UID("applied in "+item.ClusterName)
		applied.Annotations[workv1alpha1.RenderedFromAnnotation] = work.RenderedFrom(bound, workv1alpha2.TargetCluster{Name: item.ClusterName}, "1")
		applied.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue}}
		works = append(works, applied)
	}
	return works
}

// healthyBinding returns a binding whose clusters report the object as healthy.
func healthyBinding(name string, clusters ...string) *workv1alpha2.ResourceBinding {
	bound := newBinding(name, clusters...)
	for _, cluster := range clusters {
		bound.Status.AggregatedStatus = append(bound.Status.AggregatedStatus, workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Applied: true, Health: workv1alpha2.ResourceHealthy})
	}
	return bound
}

// suspendedBinding returns a healthy binding that suspends the dispatching to all clusters.
func suspendedBinding(name string, clusters ...string) *workv1alpha2.ResourceBinding {
	bound := healthyBinding(name, clusters...)
	bound.Spec.Suspension = &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{Dispatching: new(true)}}
	return bound
}

// deliveredWork returns a Work that is being deleted and whose objects were applied.
func deliveredWork(name string) *workv1alpha1.Work {
	karmadaWork := newDeletedWork(name)
	karmadaWork.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue}}
	return karmadaWork
}

// newDeletedWork returns the Work of a template. The Work is being deleted.
func newDeletedWork(name string) *workv1alpha1.Work {
	deleted := metav1.NewTime(noon)
	karmadaWork := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: "karmada-es-m1", Name: name, UID: types.UID("work-" + name), DeletionTimestamp: &deleted, CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour)),
		Finalizers: []string{workv1alpha1.ExecutionFinalizer},
		Labels:     map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "binding-" + name},
		Annotations: map[string]string{
			workv1alpha2.ResourceBindingNamespaceAnnotation: "shop", workv1alpha2.ResourceBindingNameAnnotation: name + "-configmap",
		},
	}}
	karmadaWork.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(fmt.Sprintf(
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":%q,"annotations":{"resourcetemplate.karmada.io/uid":"uid-%s"}}}`, name, name))}}}
	return karmadaWork
}

// workWithCopiedID returns the Work of a binding in another namespace that has the permanent ID
// of binding "a".
func workWithCopiedID() *workv1alpha1.Work {
	karmadaWork := newDeletedWork("a")
	karmadaWork.Name, karmadaWork.UID, karmadaWork.DeletionTimestamp = "copied", "work-copied", nil
	karmadaWork.Annotations[workv1alpha2.ResourceBindingNamespaceAnnotation] = "evil"
	return karmadaWork
}

// newNamespaceWork returns the Work of a Namespace. The Work is being deleted.
func newNamespaceWork(owner types.UID) *workv1alpha1.Work {
	karmadaWork := newDeletedWork("shop")
	karmadaWork.Labels, karmadaWork.Annotations, karmadaWork.Spec.Workload.Manifests = nil, nil, nil
	karmadaWork.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: "shop", UID: owner, Controller: new(true)}}
	return karmadaWork
}

func namespaceObject(change func(*corev1.Namespace)) *corev1.Namespace {
	namespace := &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "ns"}}
	change(namespace)
	return namespace
}

func TestEvidenceForDeletion(t *testing.T) {
	asIs := func(*corev1.Namespace) {}
	tests := map[string]struct {
		karmadaWork *workv1alpha1.Work
		stored      []client.Object
		cluster     func(*clusterv1alpha1.Cluster)
		want        guard.Action
	}{
		"a Work that a user created": {karmadaWork: newNamespaceWork("other"), want: guard.Delete},
		"a Work whose binding still wants it": {
			karmadaWork: newDeletedWork("a"), stored: []client.Object{newBinding("a", "m1")}, want: guard.Keep},
		"a wanted Work in a cluster that unjoins": {
			karmadaWork: newDeletedWork("a"), stored: []client.Object{newBinding("a", "m1")},
			cluster: func(c *clusterv1alpha1.Cluster) { c.DeletionTimestamp = &metav1.Time{Time: noon} }, want: guard.Delete},
		"a wanted Work in an unreachable cluster": {
			karmadaWork: newDeletedWork("a"), stored: []client.Object{newBinding("a", "m1")},
			cluster: func(c *clusterv1alpha1.Cluster) { c.Status.Conditions = nil }, want: guard.Keep},
		"a Work that another Work of the binding replaces": {
			karmadaWork: newDeletedWork("a"), stored: []client.Object{newBinding("a", "m1"), func() client.Object {
				renamed := newDeletedWork("a")
				renamed.Name, renamed.UID, renamed.DeletionTimestamp = "b", "work-b", nil
				return renamed
			}()}, want: guard.Delete},
		"a Work of another binding with the same permanent ID": {
			karmadaWork: newDeletedWork("a"), stored: []client.Object{newBinding("a", "m1"), workWithCopiedID()}, want: guard.Keep},
		"a binding whose template was recreated": {
			karmadaWork: newDeletedWork("a"), stored: []client.Object{func() client.Object {
				bound := newBinding("a", "m1")
				bound.Spec.Resource.UID = "uid-next"
				return bound
			}()}, want: guard.Delete},
		"a Work whose binding has another cluster that is not known to be healthy": {
			karmadaWork: newDeletedWork("a"), stored: []client.Object{newBinding("a", "m2")}, want: guard.Hold},
		"a Work whose binding has another, healthy cluster": {
			karmadaWork: newDeletedWork("a"), stored: []client.Object{healthyBinding("a", "m2")}, want: guard.Delete},
		"a Work whose binding has another cluster with an outdated copy": {
			karmadaWork: newDeletedWork("a"), stored: []client.Object{func() client.Object {
				bound := healthyBinding("a", "m2")
				bound.Status.AggregatedStatus[0].ClusterName = "m3" // so that no Work in m2 is current
				return bound
			}(), func() client.Object {
				outdated := newDeletedWork("a")
				outdated.Namespace, outdated.DeletionTimestamp = "karmada-es-m2", nil
				outdated.Status.Conditions = []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue}}
				return outdated
			}()}, want: guard.Hold},
		"a Work whose binding suspends the dispatching to the cluster": {
			karmadaWork: deliveredWork("a"), stored: []client.Object{suspendedBinding("a", "m2")}, want: guard.Hold},
		"a Work whose suspended binding is being deleted": {
			karmadaWork: deliveredWork("a"), stored: []client.Object{func() client.Object {
				bound := suspendedBinding("a", "m1")
				bound.DeletionTimestamp, bound.Finalizers = &metav1.Time{Time: noon}, []string{workv1alpha2.BindingControllerFinalizer}
				return bound
			}()}, want: guard.Hold},
		"a Work of a dependency that is being deleted, of a suspended workload": {
			karmadaWork: deliveredWork("a"), stored: []client.Object{func() client.Object {
				bound := newBinding("a")
				bound.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: "shop", Name: "web-deployment", Clusters: []workv1alpha2.TargetCluster{{Name: "m1"}}}}
				bound.Annotations = map[string]string{workv1alpha2.SuspendedByDependentsAnnotation: `{"shop/web-deployment":["m1"]}`}
				bound.DeletionTimestamp, bound.Finalizers = &metav1.Time{Time: noon}, []string{workv1alpha2.BindingControllerFinalizer}
				return bound
			}()}, want: guard.Hold},
		"a Work that was never delivered, of a suspended binding": {
			karmadaWork: newDeletedWork("a"), stored: []client.Object{suspendedBinding("a", "m2")}, want: guard.Delete},
		"a Work without its binding": {karmadaWork: newDeletedWork("a"), want: guard.Delete},
		"a Namespace that exists": {
			karmadaWork: newNamespaceWork("ns"), stored: []client.Object{namespaceObject(asIs)}, want: guard.Keep},
		"a Namespace that was recreated": {
			karmadaWork: newNamespaceWork("old"), stored: []client.Object{namespaceObject(asIs)}, want: guard.Delete},
		"a Namespace in deletion": {
			karmadaWork: newNamespaceWork("ns"), stored: []client.Object{namespaceObject(func(n *corev1.Namespace) {
				n.DeletionTimestamp, n.Finalizers = &metav1.Time{Time: noon}, []string{"kubernetes"}
			})}, want: guard.Delete},
		"a Namespace with an object whose deletion is held": {
			karmadaWork: newNamespaceWork("gone"), stored: []client.Object{newDeletedWork("held")}, want: guard.Hold},
		"a Namespace with an object in another cluster whose deletion is held": {
			karmadaWork: newNamespaceWork("gone"), stored: []client.Object{func() client.Object {
				elsewhere := newDeletedWork("held")
				elsewhere.Namespace = "karmada-es-m2"
				return elsewhere
			}()}, want: guard.Delete},
		"a Namespace that is excluded from propagation": {
			karmadaWork: newNamespaceWork("ns"), stored: []client.Object{namespaceObject(func(n *corev1.Namespace) {
				n.Labels = map[string]string{policyv1alpha1.NamespaceSkipAutoPropagationLabel: "True"}
			})}, want: guard.Delete},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w, cluster := newGuardFixture(t, test.stored...), readyCluster()
			if test.cluster != nil {
				test.cluster(cluster)
			}
			got, err := w.decideAction(t, cluster, test.karmadaWork)
			if err != nil || got != test.want {
				t.Errorf("action %d, want %d, error %v", got, test.want, err)
			}
		})
	}
}

func TestReadErrorNeverAllowsDeletion(t *testing.T) {
	for name, test := range map[string]struct {
		karmadaWork *workv1alpha1.Work
		broken      string
	}{
		"the binding":   {newDeletedWork("a"), "*v1alpha2.ResourceBinding"},
		"the Namespace": {newNamespaceWork("ns"), "*unstructured.Unstructured"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newGuardFixture(t)
			w.unreadableType = test.broken
			if action, err := w.decideAction(t, readyCluster(), test.karmadaWork); err == nil || action == guard.Delete {
				t.Errorf("action %d, error %v", action, err)
			}
		})
	}
}

// newDeletedWorks returns a number of Works that are being deleted, and the objects to store: these
// Works and, for each of them, the objects that hold returns.
func newDeletedWorks(number int, hold func(name string) []client.Object) (works []*workv1alpha1.Work, stored []client.Object) {
	for i := range number {
		name := fmt.Sprintf("c%02d", i)
		works = append(works, newDeletedWork(name))
		stored = append(append(stored, newDeletedWork(name)), hold(name)...)
	}
	return works, stored
}

// attachedBinding returns a function that returns an attached binding, its dependent after the
// given change, and the template of the attached binding.
func attachedBinding(change func(dependent *workv1alpha2.ResourceBinding)) func(name string) []client.Object {
	return func(name string) []client.Object {
		bound, dependent := newBinding(name), newBinding("web-"+name)
		bound.Spec.Placement = nil
		bound.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: "shop", Name: dependent.Name}}
		change(dependent)
		return []client.Object{bound, dependent, templateObject(name)}
	}
}

// departedFrom returns the change of a binding that records a departure from a cluster.
func departedFrom(cluster string, at time.Time) func(*workv1alpha2.ResourceBinding) {
	return func(bound *workv1alpha2.ResourceBinding) { binding.RecordDepartures(bound, []string{cluster}, at) }
}

func TestDeletionNeedsExplanation(t *testing.T) {
	dropped := func(change func(*workv1alpha2.ResourceBinding)) func(string) []client.Object {
		return func(name string) []client.Object {
			bound := newBinding(name)
			change(bound)
			return []client.Object{bound, templateObject(name)}
		}
	}
	asIs := func(*workv1alpha2.ResourceBinding) {}
	tests := map[string]struct {
		hold   func(name string) []client.Object
		before func(*guardFixture, *clusterv1alpha1.Cluster)
		broken string
		want   guard.Action
	}{
		"the clusters of the binding were removed": {hold: dropped(asIs), want: guard.Hold},
		"the workload is scaled to 0": {hold: dropped(func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided}
			b.Spec.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{}
		}), want: guard.Delete},
		"the placement excludes the cluster now": {hold: dropped(func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m2"}}
		}), want: guard.Delete},
		"a departure from the cluster is recorded":                  {hold: dropped(departedFrom("m1", noon)), want: guard.Delete},
		"a departure from another cluster is recorded":              {hold: dropped(departedFrom("m2", noon)), want: guard.Hold},
		"a departure is older than the Work":                        {hold: dropped(departedFrom("m1", noon.Add(-2*time.Hour))), want: guard.Hold},
		"attached, and the dependent departed from the cluster":     {hold: attachedBinding(departedFrom("m1", noon)), want: guard.Delete},
		"attached, and the dependent departed from another cluster": {hold: attachedBinding(departedFrom("m2", noon)), want: guard.Hold},
		"attached, and the placement of the dependent excludes the cluster now": {
			hold: attachedBinding(func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m2"}}
			}), want: guard.Delete},
		"attached, and the dependent is unchanged": {hold: attachedBinding(asIs), want: guard.Hold},
		"attached, and the dependent does not exist": {
			hold: dropped(func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Placement = nil
				b.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: "shop", Name: "missing"}}
			}), want: guard.Hold},
		"a user confirmed the deletion": {
			hold: dropped(asIs), want: guard.Delete, before: func(_ *guardFixture, c *clusterv1alpha1.Cluster) {
				c.Annotations = map[string]string{workv1alpha1.ConfirmDeletionsAnnotation: noon.Format(time.RFC3339)}
			}},
		"a user confirmed earlier deletions": {
			hold: dropped(asIs), want: guard.Hold, before: func(_ *guardFixture, c *clusterv1alpha1.Cluster) {
				c.Annotations = map[string]string{workv1alpha1.ConfirmDeletionsAnnotation: noon.Add(-time.Minute).Format(time.RFC3339)}
			}},
		"the template is deleted": {hold: func(string) []client.Object { return nil }, want: guard.Delete},
		"the template exists without its binding": {
			hold: func(name string) []client.Object { return []client.Object{templateObject(name)} }, want: guard.Hold},
		"the template exists in a namespace in deletion": {
			hold: func(name string) []client.Object { return []client.Object{templateObject(name)} }, want: guard.Delete,
			before: func(w *guardFixture, _ *clusterv1alpha1.Cluster) {
				ending := namespaceObject(func(n *corev1.Namespace) { n.Finalizers = []string{"example.io/wait"} })
				if err := errors.Join(w.store.Create(t.Context(), ending), w.store.Delete(t.Context(), ending)); err != nil {
					t.Error(err)
				}
			}},
		"the template exists in a namespace that exists": {
			hold: func(name string) []client.Object { return []client.Object{templateObject(name)} }, want: guard.Hold,
			before: func(w *guardFixture, _ *clusterv1alpha1.Cluster) {
				if err := w.store.Create(t.Context(), namespaceObject(func(*corev1.Namespace) {})); err != nil {
					t.Error(err)
				}
			}},
		"the template exists and no policy claims it": {
			hold: func(name string) []client.Object {
				template := templateObject(name)
				template.Labels = nil
				return []client.Object{template}
			}, want: guard.Delete},
		"another template has the same name": {
			hold: func(name string) []client.Object {
				template := templateObject(name)
				template.UID = "next"
				return []client.Object{template}
			}, want: guard.Delete},
		"the template cannot be read": {
			hold: func(string) []client.Object { return nil }, broken: "*v1.PartialObjectMetadata", want: guard.Hold},
		"the control plane does not serve its kind": {
			hold: func(string) []client.Object { return nil }, want: guard.Hold,
			before: func(w *guardFixture, _ *clusterv1alpha1.Cluster) { w.isKindUnserved = true }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w, cluster := newGuardFixture(t, test.hold("a")...), readyCluster()
			w.unreadableType = test.broken
			if test.before != nil {
				test.before(w, cluster)
			}
			if got, err := w.decideAction(t, cluster, newDeletedWork("a")); err != nil || got != test.want {
				t.Fatalf("action %d, want %d, error %v", got, test.want, err)
			}
		})
	}
}

func TestProofCacheDistinguishesCopiedBindingID(t *testing.T) {
	w := newGuardFixture(t, templateObject("a"))
	stranger, deleted := workWithCopiedID(), metav1.NewTime(noon)
	stranger.DeletionTimestamp = &deleted
	stranger.Spec.Workload.Manifests[0].Raw = []byte(strings.ReplaceAll(string(stranger.Spec.Workload.Manifests[0].Raw), `"shop"`, `"evil"`))
	if state := w.readTemplateState(t.Context(), stranger); state != guard.TemplateDeleted {
		t.Fatalf("the template in namespace evil: %d", state)
	}
	if state := w.readTemplateState(t.Context(), newDeletedWork("a")); state == guard.TemplateDeleted {
		t.Error("the template shop/a exists, but its state is Deleted")
	}
}
