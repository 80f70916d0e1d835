package detector

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	toolscache "k8s.io/client-go/tools/cache"

	"karmada.io/karmada/internal/domain/reach"
)

type kindSet = sets.Set[schema.GroupVersionKind]

func TestKindsGoOnlyWhenKnownToBeGone(t *testing.T) {
	const patience = 30 * time.Second
	type view struct {
		after    time.Duration
		served   kindSet
		unlisted sets.Set[string]
	}
	var all sets.Set[string]
	lost, other := sets.New("apps"), sets.New("metrics.k8s.io")
	both, one := sets.New(deployments, configMaps), sets.New(configMaps)
	inV2 := sets.New(configMaps, schema.GroupVersionKind{Group: "apps", Version: "v2", Kind: "Deployment"})
	none, again := []bool{false}, []bool{false, true}
	gone := []schema.GroupVersionKind{deployments}
	tests := map[string]struct {
		definitions []bool
		views       []view
		gone        []schema.GroupVersionKind
	}{
		"at once when its definition was deleted":    {definitions: none, views: []view{{0, one, all}}, gone: gone},
		"not when its definition was made anew":      {definitions: again, views: []view{{0, one, all}}},
		"not while it is served without definition":  {definitions: none, views: []view{{0, both, all}}},
		"not without definition when groups failed":  {definitions: none, views: []view{{0, one, lost}}},
		"at once when another version is served":     {views: []view{{0, inV2, all}}, gone: gone},
		"not for another version when groups failed": {views: []view{{0, inV2, lost}}},
		"not when it is served":                      {views: []view{{0, both, all}, {time.Minute, both, all}}},
		"not when it was just missed":                {views: []view{{0, one, all}}},
		"not before patience ends":                   {views: []view{{0, one, all}, {patience - 1, one, all}}},
		"when it is missing for long enough":         {views: []view{{0, one, all}, {patience, one, all}}, gone: []schema.GroupVersionKind{deployments}},
		"not when it came back meanwhile":            {views: []view{{0, one, all}, {time.Second, both, all}, {patience, one, all}}},
		"not when groups could not be listed":        {views: []view{{0, one, all}, {time.Minute, one, lost}}},
		"when only other groups could not be listed": {views: []view{{0, one, other}, {patience, one, other}}, gone: gone},
		"missing in part says nothing later":         {views: []view{{0, one, lost}, {time.Minute, one, all}}},
		"not when the server shows no kind":          {views: []view{{0, one, all}, {time.Minute, kindSet{}, all}}},
		"part of a view can show it is there":        {views: []view{{0, one, all}, {time.Second, both, lost}, {patience, one, all}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			k, start := newKinds(), time.Unix(0, 0).UTC()
			for kind := range both {
				k.add(kind, func() {})
			}
			for _, defined := range tc.definitions {
				k.define(deployments.GroupKind(), defined)
			}
			var gone []schema.GroupVersionKind
			for _, v := range tc.views {
				_, gone = k.compare(v.served, v.unlisted, start.Add(v.after), patience)
			}
			if diff := cmp.Diff(tc.gone, gone); diff != "" {
				t.Errorf("gone (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNewKindsAreFoundInPartialViews(t *testing.T) {
	k := newKinds()
	k.add(configMaps, func() {})
	added, _ := k.compare(sets.New(deployments, configMaps, clusterRoles), sets.New("apps"), time.Unix(0, 0), time.Second)
	if diff := cmp.Diff([]schema.GroupVersionKind{deployments, clusterRoles}, added); diff != "" {
		t.Errorf("added (-want +got):\n%s", diff)
	}
}

func TestADroppedKindIsStopped(t *testing.T) {
	k, stopped := newKinds(), 0
	k.add(deployments, func() { stopped++ })
	k.drop(deployments)
	k.drop(deployments)
	if stopped != 1 || k.has(deployments) {
		t.Errorf("stopped %d times, still watched: %v", stopped, k.has(deployments))
	}
}

func TestWatchableKinds(t *testing.T) {
	all := metav1.Verbs{"create", "delete", "get", "list", "watch"}
	served := []*metav1.APIResourceList{
		{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{
			{Name: "deployments", Kind: "Deployment", Verbs: all}, {Name: "deployments/status", Kind: "Deployment", Verbs: all},
		}},
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "configmaps", Kind: "ConfigMap", Verbs: all}, {Name: "events", Kind: "Event", Verbs: all},
			{Name: "componentstatuses", Kind: "ComponentStatus", Verbs: metav1.Verbs{"get", "list"}},
		}},
		{GroupVersion: "work.karmada.io/v1alpha1", APIResources: []metav1.APIResource{{Name: "works", Kind: "Work", Verbs: all}}},
		{GroupVersion: "not/a/version", APIResources: []metav1.APIResource{{Name: "things", Kind: "Thing", Verbs: all}}},
	}
	got := watchable(reach.DefaultSkippedAPIs(), served)
	if diff := cmp.Diff(sets.New(deployments, configMaps), got); diff != "" {
		t.Errorf("watchable (-want +got):\n%s", diff)
	}
}

func TestPaceOfDiscovery(t *testing.T) {
	p := pace{interval: 30 * time.Second}
	look := func() time.Duration { p.looked(); return p.next() }
	if got := look(); got != 30*time.Second {
		t.Fatalf("without changes it looks after %s", got)
	}
	if !p.hurry() || p.next() != settling[0] {
		t.Fatal("a change does not lead to a look soon")
	}
	if p.hurry() {
		t.Fatal("a second change puts off the look")
	}
	want := []time.Duration{settling[1], settling[2], 30 * time.Second}
	if diff := cmp.Diff(want, []time.Duration{look(), look(), look()}); diff != "" {
		t.Fatalf("looks after a change (-want +got):\n%s", diff)
	}
	if p.interval = time.Second; !p.hurry() || look() > time.Second || look() > time.Second {
		t.Fatal("it looks less often than at intervals")
	}
}

func TestDefinitionsTellOfChangesOfWhatIsServed(t *testing.T) {
	definition := func(change func(*unstructured.Unstructured)) *unstructured.Unstructured {
		crd := blank(definitions[0])
		crd.SetName("deployments.apps")
		crd.Object["spec"] = map[string]any{"group": "apps", "names": map[string]any{"kind": "Deployment"}}
		change(crd)
		return crd
	}
	as := definition(func(*unstructured.Unstructured) {})
	unlike := definition(func(crd *unstructured.Unstructured) {
		crd.Object["status"] = map[string]any{"conditions": []any{"Established"}}
	})
	noted := definition(func(crd *unstructured.Unstructured) { crd.SetAnnotations(map[string]string{"a": "b"}) })
	service := blank(definitions[1])
	service.Object["spec"] = map[string]any{"group": "apps"}
	tests := map[string]struct {
		tell      func(toolscache.ResourceEventHandler)
		looks     bool
		undefined bool
	}{
		"a new one":               {tell: func(h toolscache.ResourceEventHandler) { h.OnAdd(as, false) }, looks: true},
		"one with another status": {tell: func(h toolscache.ResourceEventHandler) { h.OnUpdate(as, unlike) }, looks: true},
		"one with an annotation":  {tell: func(h toolscache.ResourceEventHandler) { h.OnUpdate(as, noted) }},
		"one that is deleted":     {tell: func(h toolscache.ResourceEventHandler) { h.OnDelete(as) }, looks: true, undefined: true},
		"one whose end was missed": {tell: func(h toolscache.ResourceEventHandler) {
			h.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: as})
		}, looks: true, undefined: true},
		"one that is made anew": {tell: func(h toolscache.ResourceEventHandler) {
			h.OnDelete(as)
			h.OnAdd(as, false)
		}, looks: true},
		"a service that is deleted": {tell: func(h toolscache.ResourceEventHandler) { h.OnDelete(service) }, looks: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := &detector{kinds: newKinds(), definitions: make(chan struct{}, 1)}
			tc.tell(d.onDefinitions())
			if looks := len(d.definitions) == 1; looks != tc.looks {
				t.Errorf("leads to a look: %v", looks)
			}
			if undefined := d.kinds.undefined.Has(deployments.GroupKind()); undefined != tc.undefined || d.kinds.undefined.Len() > 1 {
				t.Errorf("without definition: %v", d.kinds.undefined)
			}
		})
	}
}

func TestRetriesShareARateOnlyWithoutPriorities(t *testing.T) {
	o := DefaultOptions()
	o.RetryRate, o.RetryBurst = 1, 3
	last := func() (delay time.Duration) {
		limits := limiter[string](o)
		for _, item := range []string{"a", "b", "c", "d"} {
			delay = limits.When(item)
		}
		return delay
	}
	if got := last(); got != o.Backoff.Base {
		t.Errorf("with priorities the fourth item waits %s", got)
	}
	o.PriorityQueue = false
	if got := last(); got < 900*time.Millisecond || got > time.Second {
		t.Errorf("without priorities the fourth item waits %s", got)
	}
}
