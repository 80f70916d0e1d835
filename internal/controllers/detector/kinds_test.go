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

	"karmada.io/karmada/internal/domain/tenancy"
)

type kindSet = sets.Set[schema.GroupVersionKind]

func TestWatchedKindRemoval(t *testing.T) {
	const grace = 30 * time.Second
	type listing struct {
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
		lists       []listing
		gone        []schema.GroupVersionKind
	}{
		"at once when its definition was deleted":    {definitions: none, lists: []listing{{0, one, all}}, gone: gone},
		"not when its definition was recreated":      {definitions: again, lists: []listing{{0, one, all}}},
		"not while it is served without definition":  {definitions: none, lists: []listing{{0, both, all}}},
		"not without definition when groups failed":  {definitions: none, lists: []listing{{0, one, lost}}},
		"at once when another version is served":     {lists: []listing{{0, inV2, all}}, gone: gone},
		"not for another version when groups failed": {lists: []listing{{0, inV2, lost}}},
		"not when it is served":                      {lists: []listing{{0, both, all}, {time.Minute, both, all}}},
		"not when it is missing once":                {lists: []listing{{0, one, all}}},
		"not within the grace period":                {lists: []listing{{0, one, all}, {grace - 1, one, all}}},
		"after the grace period":                     {lists: []listing{{0, one, all}, {grace, one, all}}, gone: []schema.GroupVersionKind{deployments}},
		"not when it was served meanwhile":           {lists: []listing{{0, one, all}, {time.Second, both, all}, {grace, one, all}}},
		"not when groups could not be listed":        {lists: []listing{{0, one, all}, {time.Minute, one, lost}}},
		"when only other groups could not be listed": {lists: []listing{{0, one, other}, {grace, one, other}}, gone: gone},
		"a partial list does not start the period":   {lists: []listing{{0, one, lost}, {time.Minute, one, all}}},
		"not when the list is empty":                 {lists: []listing{{0, one, all}, {time.Minute, kindSet{}, all}}},
		"a partial list can contain it":              {lists: []listing{{0, one, all}, {time.Second, both, lost}, {grace, one, all}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			k, start := newWatchedKinds(), time.Unix(0, 0).UTC()
			for kind := range both {
				k.Add(kind, func() {})
			}
			for _, defined := range tc.definitions {
				k.setDefined(deployments.GroupKind(), defined)
			}
			var gone []schema.GroupVersionKind
			for _, v := range tc.lists {
				_, gone = k.compare(v.served, v.unlisted, start.Add(v.after), grace)
			}
			if diff := cmp.Diff(tc.gone, gone); diff != "" {
				t.Errorf("gone (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNewKindsInPartialDiscovery(t *testing.T) {
	k := newWatchedKinds()
	k.Add(configMaps, func() {})
	added, _ := k.compare(sets.New(deployments, configMaps, clusterRoles), sets.New("apps"), time.Unix(0, 0), time.Second)
	if diff := cmp.Diff([]schema.GroupVersionKind{deployments, clusterRoles}, added); diff != "" {
		t.Errorf("added (-want +got):\n%s", diff)
	}
}

func TestStopKindWatch(t *testing.T) {
	k, stopped := newWatchedKinds(), 0
	k.Add(deployments, func() { stopped++ })
	k.Stop(deployments)
	k.Stop(deployments)
	if stopped != 1 || k.Has(deployments) {
		t.Errorf("stopped %d times, still watched: %v", stopped, k.Has(deployments))
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
	got := watchableKinds(tenancy.DefaultSkippedAPIs(), served)
	if diff := cmp.Diff(sets.New(deployments, configMaps), got); diff != "" {
		t.Errorf("watchable (-want +got):\n%s", diff)
	}
}

func TestDiscoverySchedule(t *testing.T) {
	p := discoverySchedule{interval: 30 * time.Second}
	discover := func() time.Duration { p.recordDiscovery(); return p.nextDelay() }
	if got := discover(); got != 30*time.Second {
		t.Fatalf("without changes the next discovery is after %s", got)
	}
	if !p.recordChange() || p.nextDelay() != rediscoveryDelays[0] {
		t.Fatal("a change does not advance the discovery")
	}
	if p.recordChange() {
		t.Fatal("a second change delays the discovery")
	}
	want := []time.Duration{rediscoveryDelays[1], rediscoveryDelays[2], 30 * time.Second}
	if diff := cmp.Diff(want, []time.Duration{discover(), discover(), discover()}); diff != "" {
		t.Fatalf("discoveries after a change (-want +got):\n%s", diff)
	}
	if p.interval = time.Second; !p.recordChange() || discover() > time.Second || discover() > time.Second {
		t.Fatal("discoveries are less frequent than the interval")
	}
}

func TestDefinitionChangesTriggerDiscovery(t *testing.T) {
	definition := func(change func(*unstructured.Unstructured)) *unstructured.Unstructured {
		crd := newNamedDefinition(definitionKinds[0])
		crd.SetName("deployments.apps")
		crd.Object["spec"] = map[string]any{"group": "apps", "names": map[string]any{"kind": "Deployment"}}
		change(crd)
		return crd
	}
	as := definition(func(*unstructured.Unstructured) {})
	changedStatus := definition(func(crd *unstructured.Unstructured) {
		crd.Object["status"] = map[string]any{"conditions": []any{"Established"}}
	})
	annotated := definition(func(crd *unstructured.Unstructured) { crd.SetAnnotations(map[string]string{"a": "b"}) })
	service := newNamedDefinition(definitionKinds[1])
	service.Object["spec"] = map[string]any{"group": "apps"}
	tests := map[string]struct {
		deliver   func(toolscache.ResourceEventHandler)
		discovers bool
		undefined bool
	}{
		"a new definition":     {deliver: func(h toolscache.ResourceEventHandler) { h.OnAdd(as, false) }, discovers: true},
		"another status":       {deliver: func(h toolscache.ResourceEventHandler) { h.OnUpdate(as, changedStatus) }, discovers: true},
		"another annotation":   {deliver: func(h toolscache.ResourceEventHandler) { h.OnUpdate(as, annotated) }},
		"a deleted definition": {deliver: func(h toolscache.ResourceEventHandler) { h.OnDelete(as) }, discovers: true, undefined: true},
		"a tombstone": {deliver: func(h toolscache.ResourceEventHandler) {
			h.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: as})
		}, discovers: true, undefined: true},
		"a recreated definition": {deliver: func(h toolscache.ResourceEventHandler) {
			h.OnDelete(as)
			h.OnAdd(as, false)
		}, discovers: true},
		"a deleted APIService": {deliver: func(h toolscache.ResourceEventHandler) { h.OnDelete(service) }, discovers: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := newKindDiscovery(kindDiscoveryConfig{}, newWatchedKinds(), nil)
			tc.deliver(d.newDefinitionHandler())
			if discovers := len(d.definitionsChanged) == 1; discovers != tc.discovers {
				t.Errorf("triggers a discovery: %v", discovers)
			}
			if undefined := d.watched.deletedDefinitions.Has(deployments.GroupKind()); undefined != tc.undefined || d.watched.deletedDefinitions.Len() > 1 {
				t.Errorf("without definition: %v", d.watched.deletedDefinitions)
			}
		})
	}
}

func newNamedDefinition(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}
