package detector

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"

	"karmada.io/karmada/internal/access/watches"
	"karmada.io/karmada/internal/loop"
)

// definitionKinds are the kinds whose objects define other kinds. These objects are templates too,
// so their watches are shared.
var definitionKinds = [...]schema.GroupVersionKind{
	{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"},
}

// watchDefinitions watches the objects that define kinds, and returns a function that ends the
// watches.
func (d *kindDiscovery) watchDefinitions() (end func()) {
	var subscriptions []*watches.Subscription
	for _, kind := range definitionKinds {
		subscription, err := d.config.Manager.Subscribe(watches.ControlPlane, watches.Query{Kind: kind},
			watches.Subscriber{Handler: d.newDefinitionHandler()})
		if err != nil {
			d.config.Log.Error(err, "New kinds are found at intervals only", "definitions", kind.Kind, "interval", d.config.Interval)
			continue
		}
		subscriptions = append(subscriptions, subscription)
	}
	return func() {
		for _, subscription := range subscriptions {
			subscription.Close()
		}
	}
}

func (d *kindDiscovery) newDefinitionHandler() toolscache.ResourceEventHandler {
	changed := func(definition *unstructured.Unstructured, isDefined bool) {
		if kind, ok := definedKind(definition); ok {
			d.watched.setDefined(kind, isDefined)
		}
		select {
		case d.definitionsChanged <- struct{}{}:
		default: // a change is pending already
		}
	}
	return loop.Handlers[*unstructured.Unstructured]{
		Added: func(definition *unstructured.Unstructured, _ bool) { changed(definition, true) },
		Updated: func(before, after *unstructured.Unstructured) {
			if !reflect.DeepEqual(statusAndSpec(before), statusAndSpec(after)) {
				changed(after, true)
			}
		},
		Deleted: func(definition *unstructured.Unstructured) { changed(definition, false) },
	}
}

// statusAndSpec returns the parts of a definition that can change the served kinds.
func statusAndSpec(definition *unstructured.Unstructured) [2]any {
	return [2]any{definition.Object["status"], definition.Object["spec"]}
}

// definedKind returns the kind that a CustomResourceDefinition defines. It returns false for an
// APIService, because an APIService does not list its kinds.
func definedKind(definition *unstructured.Unstructured) (schema.GroupKind, bool) {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	return schema.GroupKind{Group: group, Kind: kind}, kind != ""
}
