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
	"karmada.io/karmada/internal/domain/descheduling"
	"karmada.io/karmada/internal/domain/guard"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/statuswriter"
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
		Reports: statuswriter.NewWriter(w.store, w.store, statuswriter.DefaultOptions()),
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// decide returns the verdict on a Work. The cluster is reachable if it has conditions.
func (g *guardFixture) decide(t *testing.T, cluster *clusterv1alpha1.Cluster, karmadaWork *workv1alpha1.Work) (guard.Verdict, error) {
	t.Helper()
	decision, err := g.Decide(t.Context(), cluster, karmadaWork, len(cluster.Status.Conditions) > 0)
	return decision.Verdict, err
}

func readyCluster() *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "m1"},
		Status: clusterv1alpha1.ClusterStatus{Conditions: []metav1.Condition{{
			Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour)),
		}}},
	}
}

// setReady sets the Ready condition of the cluster, at a time relative to noon.
func (g *guardFixture) setReadyCondition(cluster *clusterv1alpha1.Cluster, status metav1.ConditionStatus, after time.Duration) {
	g.outages.now = func() time.Time { return noon.Add(after) }
	cluster.Status.Conditions[0].Status, cluster.Status.Conditions[0].LastTransitionTime = status, metav1.NewTime(noon.Add(after))
	g.outages.recordReadiness(cluster)
}

// unreachableBetween makes a cluster unreachable between two times relative to noon.
func unreachableBetween(lost, back time.Duration) func(*guardFixture, *clusterv1alpha1.Cluster) {
	return func(w *guardFixture, c *clusterv1alpha1.Cluster) {
		w.setReadyCondition(c, metav1.ConditionTrue, -time.Hour)
		w.setReadyCondition(c, metav1.ConditionUnknown, lost)
		w.setReadyCondition(c, metav1.ConditionTrue, back)
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
	bound := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name + "-configmap"}}
	bound.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: name, UID: types.UID("uid-" + name)}
	bound.Spec.Placement = &policyv1alpha1.Placement{}
	for _, cluster := range clusters {
		bound.Spec.Clusters = append(bound.Spec.Clusters, workv1alpha2.TargetCluster{Name: cluster})
	}
	return bound
}

// newDeletedWork returns the Work of a template. The Work is being deleted.
func newDeletedWork(name string) *workv1alpha1.Work {
	deleted := metav1.NewTime(noon)
	karmadaWork := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: "karmada-es-m1", Name: name, UID: types.UID("work-" + name), DeletionTimestamp: &deleted,
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
		want        guard.Verdict
	}{
		"a Work that a user created": {karmadaWork: newNamespaceWork("other"), want: guard.Delete},
		"a Work whose binding still wants it": {
			karmadaWork: newDeletedWork("a"), stored: []client.Object{newBinding("a", "m1")}, want: guard.HandOver},
		"a wanted Work in a cluster that unjoins": {
			karmadaWork: newDeletedWork("a"), stored: []client.Object{newBinding("a", "m1")},
			cluster: func(c *clusterv1alpha1.Cluster) { c.DeletionTimestamp = &metav1.Time{Time: noon} }, want: guard.Delete},
		"a wanted Work in an unreachable cluster": {
			karmadaWork: newDeletedWork("a"), stored: []client.Object{newBinding("a", "m1")},
			cluster: func(c *clusterv1alpha1.Cluster) { c.Status.Conditions = nil }, want: guard.HandOver},
		"a Work that another Work of the binding replaces": {
			karmadaWork: newDeletedWork("a"), stored: []client.Object{newBinding("a", "m1"), func() client.Object {
				renamed := newDeletedWork("a")
				renamed.Name, renamed.UID, renamed.DeletionTimestamp = "b", "work-b", nil
				return renamed
			}()}, want: guard.Delete},
		"a Work of another binding with the same permanent ID": {
			karmadaWork: newDeletedWork("a"), stored: []client.Object{newBinding("a", "m1"), workWithCopiedID()}, want: guard.HandOver},
		"a binding whose template was recreated": {
			karmadaWork: newDeletedWork("a"), stored: []client.Object{func() client.Object {
				bound := newBinding("a", "m1")
				bound.Spec.Resource.UID = "uid-next"
				return bound
			}()}, want: guard.Delete},
		"a Work that the scheduler moved": {
			karmadaWork: newDeletedWork("a"), stored: []client.Object{newBinding("a", "m2")}, want: guard.Delete},
		"a Work without its binding": {karmadaWork: newDeletedWork("a"), want: guard.Delete},
		"a Namespace that exists": {
			karmadaWork: newNamespaceWork("ns"), stored: []client.Object{namespaceObject(asIs)}, want: guard.HandOver},
		"a Namespace that was recreated": {
			karmadaWork: newNamespaceWork("old"), stored: []client.Object{namespaceObject(asIs)}, want: guard.Delete},
		"a Namespace in deletion": {
			karmadaWork: newNamespaceWork("ns"), stored: []client.Object{namespaceObject(func(n *corev1.Namespace) {
				n.DeletionTimestamp, n.Finalizers = &metav1.Time{Time: noon}, []string{"kubernetes"}
			})}, want: guard.Delete},
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
			got, err := w.decide(t, cluster, test.karmadaWork)
			if err != nil || got != test.want {
				t.Errorf("verdict %d, want %d, error %v", got, test.want, err)
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
			if verdict, err := w.decide(t, readyCluster(), test.karmadaWork); err == nil || verdict == guard.Delete {
				t.Errorf("verdict %d, error %v", verdict, err)
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

// withRecordedChanges records a change of the binding of each Work that newDeletedWorks returns. If
// a prefix is given, it records a change of the binding whose name has this prefix, such as a
// dependent.
func withRecordedChanges(number int, cluster string, prefix ...string) func(*guardFixture, *clusterv1alpha1.Cluster) {
	return func(w *guardFixture, _ *clusterv1alpha1.Cluster) {
		for i := range number {
			w.changes.record(newBinding(fmt.Sprintf("%sc%02d", strings.Join(prefix, ""), i)), cluster)
		}
	}
}

// descheduledFrom returns the change of a binding that lost all its replicas in the cluster, and
// that the scheduler then moved to cluster m3.
func descheduledFrom(t *testing.T, cluster string, at time.Time) func(*workv1alpha2.ResourceBinding) {
	return func(bound *workv1alpha2.ResourceBinding) {
		bound.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: cluster, Replicas: 2}}
		after, err := descheduling.Apply(bound, []descheduling.Removal{{Cluster: cluster, Replicas: 2}}, at)
		if err != nil {
			t.Fatal(err)
		}
		bound.Annotations = after.GetAnnotations()
		bound.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m3", Replicas: 2}}
	}
}

func TestMassDeletionNeedsExplanation(t *testing.T) {
	const number = 30
	dropped := func(change func(*workv1alpha2.ResourceBinding)) func(string) []client.Object {
		return func(name string) []client.Object {
			bound := newBinding(name)
			change(bound)
			return []client.Object{bound, templateObject(name)}
		}
	}
	asIs := func(*workv1alpha2.ResourceBinding) {}
	elsewhere := func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m2"}} }
	tests := map[string]struct {
		hold   func(name string) []client.Object
		before func(*guardFixture, *clusterv1alpha1.Cluster)
		broken string
		want   guard.Verdict
	}{
		"the placement is unchanged": {hold: dropped(asIs), want: guard.Hold},
		"the placement excludes the cluster now": {hold: dropped(func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m2"}}
		}), want: guard.Delete},
		"users changed the placements recently": {
			hold: dropped(asIs), want: guard.Delete, before: withRecordedChanges(number, "")},
		"evictions from the cluster ended recently": {
			hold: dropped(asIs), want: guard.Delete, before: withRecordedChanges(number, "m1")},
		"evictions from another cluster ended recently": {
			hold: dropped(asIs), want: guard.Hold, before: withRecordedChanges(number, "m2")},
		"the descheduler removed all replicas from the cluster recently": {hold: dropped(descheduledFrom(t, "m1", noon.Add(-time.Minute))), want: guard.Delete},
		"the descheduler removed all replicas from another cluster":      {hold: dropped(descheduledFrom(t, "m2", noon.Add(-time.Minute))), want: guard.Hold},
		"the descheduler removed all replicas from the cluster long ago": {hold: dropped(descheduledFrom(t, "m1", noon.Add(-time.Hour))), want: guard.Hold},
		"attached, and the descheduler removed all replicas of the dependent": {
			hold: attachedBinding(descheduledFrom(t, "m1", noon.Add(-time.Minute))), want: guard.Delete},
		"attached, and a user changed an unrelated placement in the namespace": {
			hold: attachedBinding(asIs), want: guard.Hold, before: func(w *guardFixture, _ *clusterv1alpha1.Cluster) {
				w.changes.record(newBinding("unrelated"), "")
			}},
		"attached, and a user changed the placement of the dependent": {
			hold: attachedBinding(asIs), want: guard.Delete, before: withRecordedChanges(number, "", "web-")},
		"attached, and the eviction of the dependent from the cluster ended": {
			hold: attachedBinding(asIs), want: guard.Delete, before: withRecordedChanges(number, "m1", "web-")},
		"attached, and the eviction of the dependent from another cluster ended": {
			hold: attachedBinding(asIs), want: guard.Hold, before: withRecordedChanges(number, "m2", "web-")},
		"the placement was removed recently": {
			hold: dropped(func(b *workv1alpha2.ResourceBinding) { b.Spec.Placement = nil }), want: guard.Delete, before: withRecordedChanges(number, "")},
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
		"moved to another cluster during an outage": {
			hold: dropped(elsewhere), before: unreachableBetween(-time.Minute, time.Minute), want: guard.Delete},
		"not assigned anywhere after an outage": {
			hold: dropped(asIs), before: unreachableBetween(-time.Minute, time.Minute), want: guard.Hold},
		"moved to another cluster during an outage that has not ended": {
			hold: dropped(elsewhere), want: guard.Delete, before: func(w *guardFixture, c *clusterv1alpha1.Cluster) {
				w.setReadyCondition(c, metav1.ConditionFalse, -time.Minute)
			}},
		"the outage began after the deletion": {
			hold: dropped(elsewhere), before: unreachableBetween(time.Minute, 2*time.Minute), want: guard.Hold},
		"the cluster is ready again, and the begin of the outage is unknown": {
			hold: dropped(elsewhere), want: guard.Hold, before: func(w *guardFixture, c *clusterv1alpha1.Cluster) {
				w.setReadyCondition(c, metav1.ConditionTrue, time.Minute)
			}},
		"a user confirmed the deletions": {
			hold: dropped(asIs), want: guard.Delete, before: func(_ *guardFixture, c *clusterv1alpha1.Cluster) {
				c.Annotations = map[string]string{workv1alpha1.ConfirmDeletionsAnnotation: noon.Format(time.RFC3339)}
			}},
		"a user confirmed earlier deletions": {
			hold: dropped(asIs), want: guard.Hold, before: func(_ *guardFixture, c *clusterv1alpha1.Cluster) {
				c.Annotations = map[string]string{workv1alpha1.ConfirmDeletionsAnnotation: noon.Add(-time.Minute).Format(time.RFC3339)}
			}},
		"the templates are deleted": {hold: func(string) []client.Object { return nil }, want: guard.Delete},
		"the templates exist without their bindings": {
			hold: func(name string) []client.Object { return []client.Object{templateObject(name)} }, want: guard.Hold},
		"the templates exist in a namespace in deletion": {
			hold: func(name string) []client.Object { return []client.Object{templateObject(name)} }, want: guard.Delete,
			before: func(w *guardFixture, _ *clusterv1alpha1.Cluster) {
				ending := namespaceObject(func(n *corev1.Namespace) { n.Finalizers = []string{"example.io/wait"} })
				if err := errors.Join(w.store.Create(t.Context(), ending), w.store.Delete(t.Context(), ending)); err != nil {
					t.Error(err)
				}
			}},
		"the templates exist in a namespace that exists": {
			hold: func(name string) []client.Object { return []client.Object{templateObject(name)} }, want: guard.Hold,
			before: func(w *guardFixture, _ *clusterv1alpha1.Cluster) {
				if err := w.store.Create(t.Context(), namespaceObject(func(*corev1.Namespace) {})); err != nil {
					t.Error(err)
				}
			}},
		"the templates exist and no policy claims them": {
			hold: func(name string) []client.Object {
				template := templateObject(name)
				template.Labels = nil
				return []client.Object{template}
			}, want: guard.Delete},
		"other templates have the same names": {
			hold: func(name string) []client.Object {
				template := templateObject(name)
				template.UID = "next"
				return []client.Object{template}
			}, want: guard.Delete},
		"the templates cannot be read": {
			hold: func(string) []client.Object { return nil }, broken: "*v1.PartialObjectMetadata", want: guard.Hold},
		"the control plane does not serve their kind": {
			hold: func(string) []client.Object { return nil }, want: guard.Hold,
			before: func(w *guardFixture, _ *clusterv1alpha1.Cluster) { w.isKindUnserved = true }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			works, stored := newDeletedWorks(number, test.hold)
			w, cluster := newGuardFixture(t, stored...), readyCluster()
			w.unreadableType = test.broken
			if test.before != nil {
				test.before(w, cluster)
			}
			for _, karmadaWork := range works {
				got, err := w.decide(t, cluster, karmadaWork)
				if err != nil || got != test.want {
					t.Fatalf("%s: verdict %d, want %d, error %v", karmadaWork.Name, got, test.want, err)
				}
			}
		})
	}
}

// TestMassDeletionStaysHeldAfterOutage makes a cluster unreachable for a minute, several hours
// after deletions in this cluster were held.
func TestMassDeletionStaysHeldAfterOutage(t *testing.T) {
	works, stored := newDeletedWorks(30, func(name string) []client.Object { return []client.Object{newBinding(name, "m2")} })
	w, cluster := newGuardFixture(t, stored...), readyCluster()
	w.outages.recordReadiness(cluster)
	for _, lost := range []time.Duration{0, 2 * time.Hour} {
		if lost > 0 {
			w.setReadyCondition(cluster, metav1.ConditionFalse, lost)
			w.setReadyCondition(cluster, metav1.ConditionTrue, lost+time.Minute)
		}
		for _, karmadaWork := range works {
			if got, err := w.decide(t, cluster, karmadaWork); err != nil || got != guard.Hold {
				t.Fatalf("outage after %s: verdict %d on %s, error %v", lost, got, karmadaWork.Name, err)
			}
		}
	}
}

func TestBurstIncludesFinishedDeletions(t *testing.T) {
	works, stored := newDeletedWorks(2, func(name string) []client.Object { return []client.Object{newBinding(name), templateObject(name)} })
	w, cluster := newGuardFixture(t, stored...), readyCluster()
	for i := range guard.DefaultLimits().Cluster.MinDeletions {
		w.MarkSettled(cluster.Name, newDeletedWork(fmt.Sprintf("done-%d", i)), Decision{Evidence: guard.Facts{Owner: guard.OwnerDropsWork}})
	}
	if got, err := w.decide(t, cluster, works[0]); err != nil || got != guard.Hold {
		t.Errorf("verdict %d, error %v", got, err)
	}
	w.StopTrackingCluster(cluster.Name)
	if got, err := w.decide(t, cluster, works[0]); err != nil || got != guard.Delete {
		t.Errorf("in a cluster that joined again: verdict %d, error %v", got, err)
	}
}

func TestSequentialDeletionsAreMassDeletion(t *testing.T) {
	const number = 60
	w, cluster := newGuardFixture(t), readyCluster()
	for i := range number {
		name := fmt.Sprintf("c%02d", i)
		alive := newDeletedWork(name)
		alive.DeletionTimestamp = nil
		for _, object := range []client.Object{alive, newBinding(name)} {
			if err := w.store.Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
	}
	deleted := 0
	for i := range number {
		karmadaWork := newDeletedWork(fmt.Sprintf("c%02d", i))
		if err := w.store.Delete(t.Context(), karmadaWork); err != nil {
			t.Fatal(err)
		}
		decision, err := w.Decide(t.Context(), cluster, karmadaWork, true)
		if err != nil {
			t.Fatal(err)
		}
		if decision.Verdict == guard.Delete {
			deleted++
			w.MarkSettled(cluster.Name, karmadaWork, decision)
		}
	}
	if deleted > number/2+1 {
		t.Errorf("%d of %d are deleted", deleted, number)
	}
}

func TestChangeTrackerRetention(t *testing.T) {
	now := noon
	c := newChangeTracker(func() time.Time { return now })
	c.record(newBinding("a"), "")
	c.record(newBinding("e"), "m1")
	now = now.Add(changeRetention)
	if !c.isExplained(newBinding("a"), "m1") || c.isExplained(newBinding("b"), "m1") {
		t.Error("the change of one binding is not recorded, or is used for another")
	}
	if !c.isExplained(newBinding("e"), "m1") || c.isExplained(newBinding("e"), "m2") {
		t.Error("the eviction from one cluster is not recorded, or is used for another")
	}
	now = now.Add(time.Second)
	if c.isExplained(newBinding("a"), "m1") || c.isExplained(newBinding("e"), "m1") {
		t.Error("a change older than the retention is used")
	}
	c.record(newBinding("c"), "")
	if len(c.recordedAt) != 1 {
		t.Errorf("%d entries are kept", len(c.recordedAt))
	}
}

func TestChangeTrackerRecordsUpdate(t *testing.T) {
	evicted := newBinding("a")
	evicted.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "m1"}}
	moved := newBinding("a")
	moved.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m2"}}
	tests := map[string]struct {
		older, newer *workv1alpha2.ResourceBinding
		m1, m2       bool
	}{
		"no change that explains it": {newBinding("a"), newBinding("a", "m2"), false, false},
		"the end of an eviction":     {evicted, newBinding("a"), true, false},
		"a change of a placement":    {newBinding("a"), moved, true, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := newChangeTracker(func() time.Time { return noon })
			c.recordUpdate(test.older, test.newer)
			if m1, m2 := c.isExplained(test.newer, "m1"), c.isExplained(test.newer, "m2"); m1 != test.m1 || m2 != test.m2 {
				t.Errorf("explains m1 %t, m2 %t; want %t, %t", m1, m2, test.m1, test.m2)
			}
		})
	}
}

func TestProofCacheDistinguishesCopiedBindingID(t *testing.T) {
	w := newGuardFixture(t, templateObject("a"))
	stranger, deleted := workWithCopiedID(), metav1.NewTime(noon)
	stranger.DeletionTimestamp = &deleted
	stranger.Spec.Workload.Manifests[0].Raw = []byte(strings.ReplaceAll(string(stranger.Spec.Workload.Manifests[0].Raw), `"shop"`, `"evil"`))
	if state := w.proveTemplate(t.Context(), stranger); state != guard.TemplateDeleted {
		t.Fatalf("the template in namespace evil: %d", state)
	}
	if state := w.proveTemplate(t.Context(), newDeletedWork("a")); state == guard.TemplateDeleted {
		t.Error("the template shop/a exists, but its state is Deleted")
	}
}
