package judge

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
	"karmada.io/karmada/internal/access/observe"
	"karmada.io/karmada/internal/access/report"
	"karmada.io/karmada/internal/domain/guard"
)

var noon = time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)

// world is a Judge over a store.
type world struct {
	*Judge
	store client.WithWatch
	// broken makes reads of that type fail, unserved makes them fail as if the kind of
	// templates were not served.
	broken   string
	unserved bool
	api      discovery
	// reads counts reads of templates.
	reads int
}

// discovery is what the control plane says about its kinds.
type discovery struct{ err error }

func (d *discovery) ServerResourcesForGroupVersion(string) (*metav1.APIResourceList, error) {
	return &metav1.APIResourceList{}, d.err
}

func (d *discovery) GroupsAndMaybeResources() (*metav1.APIGroupList, map[schema.GroupVersion]*metav1.APIResourceList, map[schema.GroupVersion]error, error) {
	groups := &metav1.APIGroupList{Groups: []metav1.APIGroup{{Versions: []metav1.GroupVersionForDiscovery{{Version: "v1"}}}}}
	return groups, map[schema.GroupVersion]*metav1.APIResourceList{{Version: "v1"}: {}}, nil, d.err
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(api.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	w := &world{}
	w.store = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, o ...client.GetOption) error {
			_, template := object.(*metav1.PartialObjectMetadata)
			if template {
				w.reads++
			}
			if fmt.Sprintf("%T", object) == w.broken {
				return errors.New("no answer")
			}
			if template && w.unserved {
				return apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{Resource: "configmaps"}, key.Name, "404 page not found", 0, true)
			}
			return c.Get(ctx, key, object, o...)
		},
	}).Build()
	var err error
	w.Judge, err = New(Options{
		Karmada: w.store, Live: w.store, API: &w.api, Registry: prometheus.NewRegistry(), Limits: guard.DefaultLimits(),
		Now: func() time.Time { return noon }, Events: observe.NewEvents(record.NewFakeRecorder(100)),
		Reports: report.NewWorks(w.store, report.DefaultOptions()),
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// verdict is what the Judge decides about a Work in a cluster that answers if it is ready.
func (w *world) verdict(t *testing.T, cluster *clusterv1alpha1.Cluster, of *workv1alpha1.Work) (guard.Verdict, error) {
	t.Helper()
	ruling, err := w.Decide(t.Context(), cluster, of, len(cluster.Status.Conditions) > 0)
	return ruling.Verdict, err
}

func readyCluster() *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "m1"},
		Status: clusterv1alpha1.ClusterStatus{Conditions: []metav1.Condition{{
			Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour)),
		}}},
	}
}

// setReady lets the cluster be ready or not since a time counted from noon.
func (w *world) setReady(cluster *clusterv1alpha1.Cluster, status metav1.ConditionStatus, after time.Duration) {
	w.outages.now = func() time.Time { return noon.Add(after) }
	cluster.Status.Conditions[0].Status, cluster.Status.Conditions[0].LastTransitionTime = status, metav1.NewTime(noon.Add(after))
	w.outages.note(cluster)
}

// lostAndBack lets a cluster be out of reach between two times counted from noon.
func lostAndBack(lost, back time.Duration) func(*world, *clusterv1alpha1.Cluster) {
	return func(w *world, c *clusterv1alpha1.Cluster) {
		w.setReady(c, metav1.ConditionTrue, -time.Hour)
		w.setReady(c, metav1.ConditionUnknown, lost)
		w.setReady(c, metav1.ConditionTrue, back)
	}
}

// templateObject is a claimed ConfigMap.
func templateObject(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID("uid-" + name),
			Labels: map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: "policy"},
		},
	}
}

func boundTo(name string, clusters ...string) *workv1alpha2.ResourceBinding {
	bound := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name + "-configmap"}}
	bound.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: name, UID: types.UID("uid-" + name)}
	bound.Spec.Placement = &policyv1alpha1.Placement{}
	for _, cluster := range clusters {
		bound.Spec.Clusters = append(bound.Spec.Clusters, workv1alpha2.TargetCluster{Name: cluster})
	}
	return bound
}

// leaving is the Work of a template, in deletion.
func leaving(name string) *workv1alpha1.Work {
	deleted := metav1.NewTime(noon)
	of := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: "karmada-es-m1", Name: name, UID: types.UID("work-" + name), DeletionTimestamp: &deleted,
		Finalizers: []string{workv1alpha1.ExecutionFinalizer},
		Labels:     map[string]string{workv1alpha2.ResourceBindingPermanentIDLabel: "binding-" + name},
		Annotations: map[string]string{
			workv1alpha2.ResourceBindingNamespaceAnnotation: "shop", workv1alpha2.ResourceBindingNameAnnotation: name + "-configmap",
		},
	}}
	of.Spec.Workload.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(fmt.Sprintf(
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":%q,"annotations":{"resourcetemplate.karmada.io/uid":"uid-%s"}}}`, name, name))}}}
	return of
}

// copied is the Work of a binding in another namespace that has the id of binding "a".
func copied() *workv1alpha1.Work {
	of := leaving("a")
	of.Name, of.UID, of.DeletionTimestamp = "copied", "work-copied", nil
	of.Annotations[workv1alpha2.ResourceBindingNamespaceAnnotation] = "evil"
	return of
}

// carrying is the Work of a Namespace, in deletion.
func carrying(owner types.UID) *workv1alpha1.Work {
	of := leaving("shop")
	of.Labels, of.Annotations, of.Spec.Workload.Manifests = nil, nil, nil
	of.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: "shop", UID: owner, Controller: new(true)}}
	return of
}

func namespaceObject(change func(*corev1.Namespace)) *corev1.Namespace {
	namespace := &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "ns"}}
	change(namespace)
	return namespace
}

func TestWhatExplainsADeletion(t *testing.T) {
	asIs := func(*corev1.Namespace) {}
	tests := map[string]struct {
		of      *workv1alpha1.Work
		stored  []client.Object
		cluster func(*clusterv1alpha1.Cluster)
		want    guard.Verdict
	}{
		"a Work that a user made": {of: carrying("other"), want: guard.Delete},
		"a Work whose binding still wants it": {
			of: leaving("a"), stored: []client.Object{boundTo("a", "m1")}, want: guard.HandOver},
		"a cluster that leaves takes that with it": {
			of: leaving("a"), stored: []client.Object{boundTo("a", "m1")},
			cluster: func(c *clusterv1alpha1.Cluster) { c.DeletionTimestamp = &metav1.Time{Time: noon} }, want: guard.Delete},
		"a binding that wants it where nobody answers": {
			of: leaving("a"), stored: []client.Object{boundTo("a", "m1")},
			cluster: func(c *clusterv1alpha1.Cluster) { c.Status.Conditions = nil }, want: guard.HandOver},
		"a Work that another one took the place of": {
			of: leaving("a"), stored: []client.Object{boundTo("a", "m1"), func() client.Object {
				renamed := leaving("a")
				renamed.Name, renamed.UID, renamed.DeletionTimestamp = "b", "work-b", nil
				return renamed
			}()}, want: guard.Delete},
		"a Work of another binding with the same id": {
			of: leaving("a"), stored: []client.Object{boundTo("a", "m1"), copied()}, want: guard.HandOver},
		"a binding that wants another template of the name": {
			of: leaving("a"), stored: []client.Object{func() client.Object {
				bound := boundTo("a", "m1")
				bound.Spec.Resource.UID = "uid-next"
				return bound
			}()}, want: guard.Delete},
		"a Work that a scheduler moved": {
			of: leaving("a"), stored: []client.Object{boundTo("a", "m2")}, want: guard.Delete},
		"a Work without its binding": {of: leaving("a"), want: guard.Delete},
		"a Namespace that is still there": {
			of: carrying("ns"), stored: []client.Object{namespaceObject(asIs)}, want: guard.HandOver},
		"a Namespace that was made again": {
			of: carrying("old"), stored: []client.Object{namespaceObject(asIs)}, want: guard.Delete},
		"a Namespace that goes": {
			of: carrying("ns"), stored: []client.Object{namespaceObject(func(n *corev1.Namespace) {
				n.DeletionTimestamp, n.Finalizers = &metav1.Time{Time: noon}, []string{"kubernetes"}
			})}, want: guard.Delete},
		"a Namespace that is not to be propagated": {
			of: carrying("ns"), stored: []client.Object{namespaceObject(func(n *corev1.Namespace) {
				n.Labels = map[string]string{policyv1alpha1.NamespaceSkipAutoPropagationLabel: "true"}
			})}, want: guard.Delete},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w, cluster := newWorld(t, test.stored...), readyCluster()
			if test.cluster != nil {
				test.cluster(cluster)
			}
			got, err := w.verdict(t, cluster, test.of)
			if err != nil || got != test.want {
				t.Errorf("verdict %d, want %d, error %v", got, test.want, err)
			}
		})
	}
}

func TestWhatCannotBeReadIsNeverAReasonToDelete(t *testing.T) {
	for name, test := range map[string]struct {
		of     *workv1alpha1.Work
		broken string
	}{
		"the binding":   {leaving("a"), "*v1alpha2.ResourceBinding"},
		"the Namespace": {carrying("ns"), "*unstructured.Unstructured"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.broken = test.broken
			if verdict, err := w.verdict(t, readyCluster(), test.of); err == nil || verdict == guard.Delete {
				t.Errorf("verdict %d, error %v", verdict, err)
			}
		})
	}
}

// herd is a number of Works in deletion and what the control plane holds for each.
func herd(number int, hold func(name string) []client.Object) (works []*workv1alpha1.Work, stored []client.Object) {
	for i := range number {
		name := fmt.Sprintf("c%02d", i)
		works = append(works, leaving(name))
		stored = append(append(stored, leaving(name)), hold(name)...)
	}
	return works, stored
}

// following is a binding without a placement, and the one that it follows.
func following(change func(dependent *workv1alpha2.ResourceBinding)) func(name string) []client.Object {
	return func(name string) []client.Object {
		bound, dependent := boundTo(name), boundTo("web-"+name)
		bound.Spec.Placement = nil
		bound.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: "shop", Name: dependent.Name}}
		change(dependent)
		return []client.Object{bound, dependent, templateObject(name)}
	}
}

// changed notes a change of each binding of a herd, or of those that it follows.
func changed(number int, cluster string, prefix ...string) func(*world, *clusterv1alpha1.Cluster) {
	return func(w *world, _ *clusterv1alpha1.Cluster) {
		for i := range number {
			w.changes.note(boundTo(fmt.Sprintf("%sc%02d", strings.Join(prefix, ""), i)), cluster)
		}
	}
}

func TestAMassDeletionIsDoneOnlyIfItIsExplained(t *testing.T) {
	const number = 30
	dropped := func(change func(*workv1alpha2.ResourceBinding)) func(string) []client.Object {
		return func(name string) []client.Object {
			bound := boundTo(name)
			change(bound)
			return []client.Object{bound, templateObject(name)}
		}
	}
	asIs := func(*workv1alpha2.ResourceBinding) {}
	elsewhere := func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m2"}} }
	tests := map[string]struct {
		hold   func(name string) []client.Object
		before func(*world, *clusterv1alpha1.Cluster)
		broken string
		want   guard.Verdict
	}{
		"the placement is as it was": {hold: dropped(asIs), want: guard.Hold},
		"a placement excludes it now": {hold: dropped(func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m2"}}
		}), want: guard.Delete},
		"users changed the placements a while ago": {
			hold: dropped(asIs), want: guard.Delete, before: changed(number, "")},
		"their evictions from the cluster ended a while ago": {
			hold: dropped(asIs), want: guard.Delete, before: changed(number, "m1")},
		"their evictions from another cluster ended a while ago": {
			hold: dropped(asIs), want: guard.Hold, before: changed(number, "m2")},
		"it follows others, and a user changed another placement of the namespace": {
			hold: following(asIs), want: guard.Hold, before: func(w *world, _ *clusterv1alpha1.Cluster) {
				w.changes.note(boundTo("unrelated"), "")
			}},
		"it follows one of which a user changed the placement": {
			hold: following(asIs), want: guard.Delete, before: changed(number, "", "web-")},
		"it follows one of which the eviction from the cluster ended": {
			hold: following(asIs), want: guard.Delete, before: changed(number, "m1", "web-")},
		"it follows one of which the eviction from another cluster ended": {
			hold: following(asIs), want: guard.Hold, before: changed(number, "m2", "web-")},
		"it lost its placement a while ago": {
			hold: dropped(func(b *workv1alpha2.ResourceBinding) { b.Spec.Placement = nil }), want: guard.Delete, before: changed(number, "")},
		"it follows one that a placement excludes now": {
			hold: following(func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m2"}}
			}), want: guard.Delete},
		"it follows one that nothing drives out": {hold: following(asIs), want: guard.Hold},
		"it follows one that nobody knows": {
			hold: dropped(func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Placement = nil
				b.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: "shop", Name: "nobody"}}
			}), want: guard.Hold},
		"it is elsewhere since the cluster was lost": {
			hold: dropped(elsewhere), before: lostAndBack(-time.Minute, time.Minute), want: guard.Delete},
		"it is nowhere since the cluster was lost": {
			hold: dropped(asIs), before: lostAndBack(-time.Minute, time.Minute), want: guard.Hold},
		"it is elsewhere since the cluster was lost, which answers but is not ready yet": {
			hold: dropped(elsewhere), want: guard.Delete, before: func(w *world, c *clusterv1alpha1.Cluster) {
				w.setReady(c, metav1.ConditionFalse, -time.Minute)
			}},
		"the cluster was lost after the deletion began": {
			hold: dropped(elsewhere), before: lostAndBack(time.Minute, 2*time.Minute), want: guard.Hold},
		"the cluster is back since, and when it was lost is not known": {
			hold: dropped(elsewhere), want: guard.Hold, before: func(w *world, c *clusterv1alpha1.Cluster) {
				w.setReady(c, metav1.ConditionTrue, time.Minute)
			}},
		"a user has confirmed it": {
			hold: dropped(asIs), want: guard.Delete, before: func(_ *world, c *clusterv1alpha1.Cluster) {
				c.Annotations = map[string]string{workv1alpha1.ConfirmDeletionsAnnotation: noon.Format(time.RFC3339)}
			}},
		"a user confirmed what was before": {
			hold: dropped(asIs), want: guard.Hold, before: func(_ *world, c *clusterv1alpha1.Cluster) {
				c.Annotations = map[string]string{workv1alpha1.ConfirmDeletionsAnnotation: noon.Add(-time.Minute).Format(time.RFC3339)}
			}},
		"the templates are gone": {hold: func(string) []client.Object { return nil }, want: guard.Delete},
		"the templates are there without their bindings": {
			hold: func(name string) []client.Object { return []client.Object{templateObject(name)} }, want: guard.Hold},
		"the templates are about to go with their namespace": {
			hold: func(name string) []client.Object { return []client.Object{templateObject(name)} }, want: guard.Delete,
			before: func(w *world, _ *clusterv1alpha1.Cluster) {
				ending := namespaceObject(func(n *corev1.Namespace) { n.Finalizers = []string{"example.io/wait"} })
				if err := errors.Join(w.store.Create(t.Context(), ending), w.store.Delete(t.Context(), ending)); err != nil {
					t.Error(err)
				}
			}},
		"the templates stay in their namespace": {
			hold: func(name string) []client.Object { return []client.Object{templateObject(name)} }, want: guard.Hold,
			before: func(w *world, _ *clusterv1alpha1.Cluster) {
				if err := w.store.Create(t.Context(), namespaceObject(func(*corev1.Namespace) {})); err != nil {
					t.Error(err)
				}
			}},
		"the templates are there and nobody claims them": {
			hold: func(name string) []client.Object {
				template := templateObject(name)
				template.Labels = nil
				return []client.Object{template}
			}, want: guard.Delete},
		"others took the names of the templates": {
			hold: func(name string) []client.Object {
				template := templateObject(name)
				template.UID = "next"
				return []client.Object{template}
			}, want: guard.Delete},
		"the templates cannot be read": {
			hold: func(string) []client.Object { return nil }, broken: "*v1.PartialObjectMetadata", want: guard.Hold},
		"the control plane does not serve their kind": {
			hold: func(string) []client.Object { return nil }, want: guard.Hold,
			before: func(w *world, _ *clusterv1alpha1.Cluster) { w.unserved = true }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			works, stored := herd(number, test.hold)
			w, cluster := newWorld(t, stored...), readyCluster()
			w.broken = test.broken
			if test.before != nil {
				test.before(w, cluster)
			}
			for _, of := range works {
				got, err := w.verdict(t, cluster, of)
				if err != nil || got != test.want {
					t.Fatalf("%s: verdict %d, want %d, error %v", of.Name, got, test.want, err)
				}
			}
		})
	}
}

// TestAHeldMassDeletionStaysHeldWhenTheClusterIsLostAndComesBack restarts a cluster hours
// after the deletions in it were held.
func TestAHeldMassDeletionStaysHeldWhenTheClusterIsLostAndComesBack(t *testing.T) {
	works, stored := herd(30, func(name string) []client.Object { return []client.Object{boundTo(name, "m2")} })
	w, cluster := newWorld(t, stored...), readyCluster()
	w.outages.note(cluster)
	for _, lost := range []time.Duration{0, 2 * time.Hour} {
		if lost > 0 {
			w.setReady(cluster, metav1.ConditionFalse, lost)
			w.setReady(cluster, metav1.ConditionTrue, lost+time.Minute)
		}
		for _, of := range works {
			if got, err := w.verdict(t, cluster, of); err != nil || got != guard.Hold {
				t.Fatalf("lost after %s: verdict %d on %s, error %v", lost, got, of.Name, err)
			}
		}
	}
}

func TestDeletionsThatWereDoneAreAPartOfTheBurst(t *testing.T) {
	works, stored := herd(2, func(name string) []client.Object { return []client.Object{boundTo(name), templateObject(name)} })
	w, cluster := newWorld(t, stored...), readyCluster()
	for i := range guard.DefaultLimits().Cluster.Least {
		w.Settle(cluster.Name, leaving(fmt.Sprintf("done-%d", i)), Ruling{Facts: guard.Facts{Owner: guard.Drops}})
	}
	if got, err := w.verdict(t, cluster, works[0]); err != nil || got != guard.Hold {
		t.Errorf("verdict %d, error %v", got, err)
	}
	w.ForgetCluster(cluster.Name)
	if got, err := w.verdict(t, cluster, works[0]); err != nil || got != guard.Delete {
		t.Errorf("in a cluster that joined anew: verdict %d, error %v", got, err)
	}
}

func TestWorksThatAreDeletedOneAfterTheOtherAreAMassDeletionToo(t *testing.T) {
	const number = 60
	w, cluster := newWorld(t), readyCluster()
	for i := range number {
		name := fmt.Sprintf("c%02d", i)
		alive := leaving(name)
		alive.DeletionTimestamp = nil
		for _, object := range []client.Object{alive, boundTo(name)} {
			if err := w.store.Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
	}
	deleted := 0
	for i := range number {
		of := leaving(fmt.Sprintf("c%02d", i))
		if err := w.store.Delete(t.Context(), of); err != nil {
			t.Fatal(err)
		}
		ruling, err := w.Decide(t.Context(), cluster, of, true)
		if err != nil {
			t.Fatal(err)
		}
		if ruling.Verdict == guard.Delete {
			deleted++
			w.Settle(cluster.Name, of, ruling)
		}
	}
	if deleted > number/2+1 {
		t.Errorf("%d of %d are deleted", deleted, number)
	}
}

func TestChangesAreRememberedForAWhile(t *testing.T) {
	now := noon
	c := newChanges(func() time.Time { return now })
	c.note(boundTo("a"), "")
	c.note(boundTo("e"), "m1")
	now = now.Add(changeMemory)
	if !c.explain(boundTo("a"), "m1") || c.explain(boundTo("b"), "m1") {
		t.Error("the change of one binding is forgotten, or counts for another")
	}
	if !c.explain(boundTo("e"), "m1") || c.explain(boundTo("e"), "m2") {
		t.Error("the eviction from one cluster is forgotten, or counts for another")
	}
	now = now.Add(time.Second)
	if c.explain(boundTo("a"), "m1") || c.explain(boundTo("e"), "m1") {
		t.Error("an old change still counts")
	}
	c.note(boundTo("c"), "")
	if len(c.at) != 1 {
		t.Errorf("%d entries are kept", len(c.at))
	}
}

func TestWhatAnUpdateOfABindingExplains(t *testing.T) {
	evicted := boundTo("a")
	evicted.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "m1"}}
	moved := boundTo("a")
	moved.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"m2"}}
	tests := map[string]struct {
		older, newer *workv1alpha2.ResourceBinding
		m1, m2       bool
	}{
		"nothing":                 {boundTo("a"), boundTo("a", "m2"), false, false},
		"the end of an eviction":  {evicted, boundTo("a"), true, false},
		"a change of a placement": {boundTo("a"), moved, true, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := newChanges(func() time.Time { return noon })
			c.compare(test.older, test.newer)
			if m1, m2 := c.explain(test.newer, "m1"), c.explain(test.newer, "m2"); m1 != test.m1 || m2 != test.m2 {
				t.Errorf("explains m1 %t, m2 %t; want %t, %t", m1, m2, test.m1, test.m2)
			}
		})
	}
}

func TestWhatIsProvenOfABindingIsNotProvenOfOneWithTheSameID(t *testing.T) {
	w := newWorld(t, templateObject("a"))
	stranger, deleted := copied(), metav1.NewTime(noon)
	stranger.DeletionTimestamp = &deleted
	stranger.Spec.Workload.Manifests[0].Raw = []byte(strings.ReplaceAll(string(stranger.Spec.Workload.Manifests[0].Raw), `"shop"`, `"evil"`))
	if state := w.prove(t.Context(), stranger); state != guard.Deleted {
		t.Fatalf("the template in namespace evil: %d", state)
	}
	if state := w.prove(t.Context(), leaving("a")); state == guard.Deleted {
		t.Error("the template of shop/a counts as deleted, and exists")
	}
}
