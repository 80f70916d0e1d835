package interpreters_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"karmada.io/karmada/api"
	"karmada.io/karmada/internal/access/interpreters"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/looptest"
)

func kindNamed(name string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "example.io", Version: "v1", Kind: name}
}

func newStore(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...)
	if err := loop.AddIndexes(looptest.Indexer{ClientBuilder: builder}, loop.BindingsByTemplate); err != nil {
		t.Fatal(err)
	}
	return builder.Build()
}

func newBinding(namespace, name string, kind schema.GroupVersionKind) binding.Object {
	bound := binding.New(namespace != "")
	bound.SetNamespace(namespace)
	bound.SetName(name)
	bound.BindingSpec().Resource.APIVersion, bound.BindingSpec().Resource.Kind = kind.ToAPIVersionAndKind()
	return bound
}

func TestBindingsOfChangedKindsAreQueued(t *testing.T) {
	a, b := kindNamed("A"), kindNamed("B")
	tests := map[string]struct {
		namespaced bool
		isRelevant func(binding.Object) bool
		changed    []schema.GroupVersionKind
		all        bool
		want       []string
	}{
		"the bindings of the kind":                {namespaced: true, changed: []schema.GroupVersionKind{a}, want: []string{"bank/one", "shop/one"}},
		"the bindings of both kinds, each once":   {namespaced: true, changed: []schema.GroupVersionKind{a, b, a}, want: []string{"bank/one", "shop/one", "shop/two"}},
		"the bindings of the other scope":         {changed: []schema.GroupVersionKind{a, b}, want: []string{"/role"}},
		"all bindings, for a rule of all kinds":   {namespaced: true, all: true, want: []string{"bank/one", "shop/one", "shop/two"}},
		"nothing for a kind without bindings":     {namespaced: true, changed: []schema.GroupVersionKind{kindNamed("C")}},
		"only bindings that the controller wants": {namespaced: true, changed: []schema.GroupVersionKind{a, b}, isRelevant: func(bound binding.Object) bool { return bound.GetNamespace() == "bank" }, want: []string{"bank/one"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			store := newStore(t, newBinding("shop", "one", a), newBinding("bank", "one", a), newBinding("shop", "two", b), newBinding("", "role", b))
			table := &interpreters.Table{}
			watched := func() source.Source {
				return interpreters.NewSource(table, interpreters.BindingsOf(store, test.namespaced, test.isRelevant))
			}
			var got []string
			for _, request := range looptest.QueuedBy(t, watched, func() {
				for _, kind := range test.changed {
					table.Set(kind, interpreter.Rules{})
				}
				if test.all {
					table.Announce(interpreter.AllKinds())
				}
			}) {
				got = append(got, request.String())
			}
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("queued (-want +got):\n%s", diff)
			}
		})
	}
}
