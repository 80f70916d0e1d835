package dependencies

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/template"
	"karmada.io/karmada/internal/domain/dependency"
	"karmada.io/karmada/internal/domain/policy"
)

var configMaps = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}

func selector(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

// required is a binding that lists the dependents of that name.
func required(names ...string) *workv1alpha2.ResourceBinding {
	made := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings-configmap", Labels: map[string]string{}}}
	made.Spec.Resource = workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "settings"}
	for _, name := range names {
		made.Spec.RequiredBy = append(made.Spec.RequiredBy, workv1alpha2.BindingSnapshot{Namespace: "shop", Name: name})
		made.Labels[workv1alpha2.DependedByLabelPrefix+name] = name
	}
	return made
}

func TestWhichBindingsAreLookedAtWhenTheyAppear(t *testing.T) {
	with := func(change func(*workv1alpha2.ResourceBinding)) *workv1alpha2.ResourceBinding {
		made := dependent("web")
		change(made)
		return made
	}
	tests := map[string]struct {
		created client.Object
		initial bool
		want    []string
	}{
		"one that takes its dependencies along": {dependent("web"), false, []string{"web-deployment"}},
		"not one that does not":                 {with(func(b *workv1alpha2.ResourceBinding) { b.Spec.PropagateDeps = false }), false, nil},
		"not one that is nowhere yet":           {with(func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = nil }), false, nil},
		"one that was worked on before": {with(func(b *workv1alpha2.ResourceBinding) {
			b.Spec.PropagateDeps, b.Finalizers = false, []string{workv1alpha2.BindingDependenciesDistributorFinalizer}
		}), true, []string{"web-deployment"}},
		"those that a binding lists, at the start":               {required("a", "b"), true, []string{"a", "b"}},
		"not those for whom we have just created a binding":      {required("a"), false, nil},
		"those who let go while a binding was created for them":  {required("a", "b"), false, []string{"b"}},
		"none for a binding that lists nobody, whoever needs it": {required(), false, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.needs.put(named("a"), w.needed)
			w.onBinding().Create(t.Context(), event.CreateEvent{Object: tc.created, IsInInitialList: tc.initial}, w.queue)
			expect(t, "queued", w.queued(), tc.want...)
		})
	}
}

func TestWhichChangesOfBindingsMatter(t *testing.T) {
	tests := map[string]struct {
		before *workv1alpha2.ResourceBinding
		change func(*workv1alpha2.ResourceBinding)
		want   []string
	}{
		"another spec": {dependent("web"), func(b *workv1alpha2.ResourceBinding) { b.Generation++ }, []string{"web-deployment"}},
		"dependencies that stay at home from now on": {dependent("web"), func(b *workv1alpha2.ResourceBinding) {
			b.Generation++
			b.Spec.PropagateDeps = false
		}, []string{"web-deployment"}},
		"its deletion":                              {dependent("web"), func(b *workv1alpha2.ResourceBinding) { b.DeletionTimestamp = &metav1.Time{} }, []string{"web-deployment"}},
		"not its status":                            {dependent("web"), func(b *workv1alpha2.ResourceBinding) { b.Status.SchedulerObservedGeneration = 4 }, nil},
		"not labels of others":                      {required("a"), func(b *workv1alpha2.ResourceBinding) { b.Labels["x"] = "y" }, nil},
		"not a dependent that is listed anew":       {required("a"), func(b *workv1alpha2.ResourceBinding) { *b = *required("a", "needy") }, nil},
		"but one that let go while it was listed":   {required("a"), func(b *workv1alpha2.ResourceBinding) { *b = *required("a", "b") }, []string{"b"}},
		"not one that let go and was listed before": {required("a", "b"), func(b *workv1alpha2.ResourceBinding) { *b = *required("a", "b", "needy") }, nil},
		"a dependent that is left out":              {required("a", "b"), func(b *workv1alpha2.ResourceBinding) { b.Spec.RequiredBy = b.Spec.RequiredBy[:1] }, []string{"b"}},
		"other clusters of a dependent": {required("a", "b"), func(b *workv1alpha2.ResourceBinding) {
			b.Spec.RequiredBy[1].Clusters = []workv1alpha2.TargetCluster{{Name: "m"}}
		}, []string{"b"}},
		"a mark that is taken off":          {required("a", "b"), func(b *workv1alpha2.ResourceBinding) { b.Labels = nil }, []string{"a", "b"}},
		"a policy that claims the object":   {required("a", "b"), func(b *workv1alpha2.ResourceBinding) { policy.Claim{Name: "p", ID: "x"}.Apply(b) }, []string{"a"}},
		"terms that somebody wrote":         {required("a", "b"), func(b *workv1alpha2.ResourceBinding) { b.Spec.ConflictResolution = policyv1alpha1.ConflictOverwrite }, []string{"a"}},
		"an owner that is taken off":        {withOwner(required("a", "b")), func(b *workv1alpha2.ResourceBinding) { b.OwnerReferences = nil }, []string{"a"}},
		"what is preserved":                 {required("a", "b"), func(b *workv1alpha2.ResourceBinding) { b.Spec.PreserveResourcesOnDeletion = new(true) }, []string{"a"}},
		"another object":                    {required("a", "b"), func(b *workv1alpha2.ResourceBinding) { b.Spec.Resource.UID = "other" }, []string{"a"}},
		"a placement that is taken off":     {placed(required("a", "b")), func(b *workv1alpha2.ResourceBinding) { b.Spec.Placement = nil }, []string{"a"}},
		"not what nobody depends on at all": {required(), func(b *workv1alpha2.ResourceBinding) { b.Spec.ConflictResolution = policyv1alpha1.ConflictOverwrite }, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.needs.put(named("needy"), w.needed)
			after := tc.before.DeepCopy()
			tc.change(after)
			w.onBinding().Update(t.Context(), event.UpdateEvent{ObjectOld: tc.before, ObjectNew: after}, w.queue)
			expect(t, "queued", w.queued(), tc.want...)
		})
	}
}

func placed(b *workv1alpha2.ResourceBinding) *workv1alpha2.ResourceBinding {
	b.Spec.Placement = &policyv1alpha1.Placement{}
	return b
}

func withOwner(b *workv1alpha2.ResourceBinding) *workv1alpha2.ResourceBinding {
	b.OwnerReferences = []metav1.OwnerReference{{Name: "settings", UID: "u", Controller: new(true)}}
	return b
}

// blind is a cache that has not seen yet what was attached.
type blind struct{ client.Client }

func (b blind) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

func TestWhatWasAttachedUnseenIsReleasedWhenItIsSeen(t *testing.T) {
	w := attached(t)
	w.edit("web-deployment", func(b *workv1alpha2.ResourceBinding) { b.Spec.PropagateDeps = false })
	w.karmada = blind{w.store}
	_, writes, _ := w.pass("web-deployment")
	expect(t, "writes of a pass that sees nothing", writes, "patch web-deployment")
	w.karmada = w.store
	w.onBinding().Create(t.Context(), event.CreateEvent{Object: w.binding("settings-configmap")}, w.queue)
	expect(t, "queued", w.queued(), "web-deployment")
	_, writes, _ = w.pass("web-deployment")
	expect(t, "writes of a pass that sees it", writes, "delete settings-configmap")
}

func TestABindingThatIsGoneWakesAllWhoNeedIt(t *testing.T) {
	w := newWorld(t)
	w.needs.put(named("waiting"), []dependency.Reference{refersTo("ConfigMap", "settings")})
	w.onBinding().Delete(t.Context(), event.DeleteEvent{Object: required("a")}, w.queue)
	expect(t, "queued", w.queued(), "a", "waiting", "settings-configmap")
}

func TestWhichChangesOfObjectsMatter(t *testing.T) {
	object := func(change func(*unstructured.Unstructured)) *unstructured.Unstructured {
		made := blank(configMaps)
		made.SetNamespace("shop")
		made.SetName("settings")
		if change != nil {
			change(made)
		}
		return made
	}
	labelled := func(value string) *unstructured.Unstructured {
		return object(func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"app": value}) })
	}
	tests := map[string]struct {
		before, after *unstructured.Unstructured
		want          []string
	}{
		"one that appears":         {nil, object(nil), []string{"by-name"}},
		"one that goes":            {object(nil), nil, []string{"by-name"}},
		"one that changes":         {object(nil), object(func(o *unstructured.Unstructured) { o.Object["data"] = "x" }), []string{"by-name"}},
		"not its status":           {object(nil), object(func(o *unstructured.Unstructured) { o.Object["status"] = "x" }), nil},
		"labels that are selected": {object(nil), labelled("web"), []string{"by-label", "by-name"}},
		"labels that were":         {labelled("web"), labelled("other"), []string{"by-label", "by-name"}},
		"one in another namespace": {nil, object(func(o *unstructured.Unstructured) { o.SetNamespace("platform") }), []string{"from-afar"}},
		"one that nobody needs":    {nil, object(func(o *unstructured.Unstructured) { o.SetName("other") }), nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			afar := refersTo("ConfigMap", "settings")
			afar.Namespace = "platform"
			w.needs.put(named("by-name"), []dependency.Reference{refersTo("ConfigMap", "settings")})
			w.needs.put(named("by-label"), []dependency.Reference{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", LabelSelector: selector("app", "web")}})
			w.needs.put(named("from-afar"), []dependency.Reference{afar})
			handle := w.watches.onObject(configMaps)
			switch {
			case tc.before == nil:
				handle.OnAdd(tc.after, false)
			case tc.after == nil:
				handle.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: tc.before})
			default:
				handle.OnUpdate(tc.before, tc.after)
			}
			expect(t, "queued", w.queued(), tc.want...)
		})
	}
}

// shared are informers as a process shares them: others may end one.
type shared struct {
	client.Reader
	source  *cachetesting.FakeControllerSource
	current toolscache.SharedIndexInformer
	end     context.CancelFunc
}

func (s *shared) GetInformer(ctx context.Context, of client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	if s.current == nil {
		life, end := context.WithCancel(context.WithoutCancel(ctx))
		s.current, s.end = toolscache.NewSharedIndexInformer(s.source, of, 0, nil), end
		go s.current.RunWithContext(life)
	}
	return s.current, nil
}

func (s *shared) RemoveInformer(context.Context, client.Object) error { s.remove(); return nil }

// remove ends the informer, as a controller does that thinks that the kind is
// gone.
func (s *shared) remove() { s.end(); s.current = nil }

// server serves the kinds of v1 that it is told to, and nothing else.
type server struct{ kinds []string }

func (s *server) ServerResourcesForGroupVersion(version string) (*metav1.APIResourceList, error) {
	if version != "v1" {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, version)
	}
	list := &metav1.APIResourceList{GroupVersion: version}
	for _, kind := range s.kinds {
		list.APIResources = append(list.APIResources, metav1.APIResource{Kind: kind, Verbs: metav1.Verbs{"list", "watch"}})
	}
	return list, nil
}

func (s *server) GroupsAndMaybeResources() (*metav1.APIGroupList, map[schema.GroupVersion]*metav1.APIResourceList, map[schema.GroupVersion]error, error) {
	return &metav1.APIGroupList{Groups: []metav1.APIGroup{{Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: "v1", Version: "v1"}}}}}, nil, nil, nil
}

// await waits until something is so.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if !toolscache.WaitForCacheSync(ctx.Done(), so) {
		t.Fatalf("%s does not come", what)
	}
}

func TestKindsAreWatchedWhileTheyAreNeeded(t *testing.T) {
	informers := &shared{source: cachetesting.NewFakeControllerSource()}
	serves := &server{}
	w := newWorld(t)
	w.watches = newWatches(template.NewReader(informers, w.store), serves, w.needs, 0, logr.Discard())
	w.watches.opened(w.queue)
	followed := func() bool {
		open, ok := w.watches.open[configMaps]
		return ok && !open.informer.IsStopped() && open.registration.HasSynced()
	}
	object := blank(configMaps)
	object.SetNamespace("shop")
	object.SetName("settings")
	informers.source.Add(object)
	w.needs.put(named("web"), []dependency.Reference{refersTo("ConfigMap", "settings"), {APIVersion: "example.io/v1", Kind: "Widget", Namespace: "shop", Name: "w"}})

	w.watches.look(t.Context())
	if informers.current != nil || followed() {
		t.Fatal("a kind that is not served is watched")
	}
	serves.kinds = []string{"ConfigMap"}
	told := func(when string) {
		t.Helper()
		w.watches.look(t.Context())
		await(t, "a complete watch "+when, followed)
		expect(t, "queued "+when, w.queued(), "web")
	}
	told("once it is served")
	informers.remove()
	await(t, "the end of the informer", func() bool { return !followed() })
	told("after somebody else ended the informer")

	inUse := informers.current
	w.needs.put(named("web"), nil)
	w.watches.look(t.Context())
	if followed() || inUse.IsStopped() {
		t.Errorf("watched without need: %v; the informer of others ended: %v", followed(), inUse.IsStopped())
	}
	informers.end()
}

func TestTheWatchOfAKindThatIsNotServedEnds(t *testing.T) {
	tests := map[string]struct {
		kept, unneeded bool
		serves         []string
		ended          bool
	}{
		"of a dependency":                            {serves: []string{"Secret"}, ended: true},
		"of a kind that is not needed any longer":    {serves: []string{"Secret"}, unneeded: true, ended: true},
		"not if another controller looks after it":   {serves: []string{"Secret"}, kept: true},
		"not if the server shows no kind at all":     {},
		"not of a kind that is served but is unused": {serves: []string{"ConfigMap"}, unneeded: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			informers := &shared{source: cachetesting.NewFakeControllerSource()}
			serves := &server{kinds: []string{"ConfigMap"}}
			w := newWorld(t)
			w.templates = template.NewReader(informers, w.store)
			w.watches = newWatches(w.templates, serves, w.needs, 0, logr.Discard())
			w.watches.opened(w.queue)
			w.needs.put(named("web"), []dependency.Reference{refersTo("ConfigMap", "settings")})
			w.watches.look(t.Context())
			informer := informers.current
			if tc.kept {
				if _, err := w.templates.Watch(t.Context(), configMaps); err != nil {
					t.Fatal(err)
				}
			}
			if tc.unneeded {
				w.needs.put(named("web"), nil)
			}
			serves.kinds = tc.serves
			for i := range 3 {
				w.watches.look(t.Context())
				w.watches.review(t.Context(), time.Unix(0, 0).Add(time.Duration(i+1)*reviewInterval))
			}
			if ended := informers.current != informer; ended != tc.ended {
				t.Errorf("the watch ended: %t, want %t", ended, tc.ended)
			}
			if !tc.ended {
				informers.end()
			}
		})
	}
}

func blank(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}
