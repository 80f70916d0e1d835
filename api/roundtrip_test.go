package api

import (
	"encoding/json"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/apitesting/roundtrip"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/randfill"

	"karmada.io/karmada/api/crds"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

// karmadaKinds returns the registered kinds of Karmada, sorted.
func karmadaKinds(scheme *runtime.Scheme) []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for gvk, goType := range scheme.AllKnownTypes() {
		if strings.HasPrefix(goType.PkgPath(), "karmada.io/karmada/api/") {
			kinds = append(kinds, gvk)
		}
	}
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return kinds
}

// jsonFuzzers returns the fuzzers of the fields that hold arbitrary JSON.
func jsonFuzzers(serializer.CodecFactory) []any {
	return []any{
		func(v *policyv1alpha1.JSON, c randfill.Continue) {
			values := []string{"", "true", "3.5", `"text"`, `[1,"a"]`, `{"a":{"b":null}}`}
			v.Raw = nil
			if value := values[c.Intn(len(values))]; value != "" {
				v.Raw = []byte(value)
			}
		},
		func(v *runtime.RawExtension, c randfill.Continue) {
			v.Raw = []byte(`{"replicas":` + string('0'+rune(c.Intn(10))) + `}`)
		},
	}
}

func TestKindsRoundTrip(t *testing.T) {
	t.Parallel()
	scheme := newScheme(t)
	codecs := serializer.NewCodecFactory(scheme)
	fill := fuzzer.FuzzerFor(fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, jsonFuzzers), rand.NewSource(1), codecs)
	for _, gvk := range karmadaKinds(scheme) {
		t.Run(gvk.String(), func(t *testing.T) {
			roundtrip.RoundTripSpecificKindWithoutProtobuf(t, gvk, scheme, codecs, fill, nil)
		})
	}
}

func TestCustomResourcesHaveGoTypes(t *testing.T) {
	t.Parallel()
	scheme := newScheme(t)
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range all {
		d := decodeDefinition(t, crd)
		for _, v := range d.Spec.Versions {
			gv := schema.GroupVersion{Group: d.Spec.Group, Version: v.Name}
			for _, kind := range []string{d.Spec.Names.Kind, d.Spec.Names.ListKind} {
				if !scheme.Recognizes(gv.WithKind(kind)) {
					t.Errorf("%s is not registered", gv.WithKind(kind))
				}
			}
		}
	}
}

func TestBindingVersionPriority(t *testing.T) {
	t.Parallel()
	var got []string
	for _, gv := range newScheme(t).PrioritizedVersionsForGroup(workv1alpha1.GroupName) {
		got = append(got, gv.Version)
	}
	if diff := cmp.Diff([]string{"v1alpha2", "v1alpha1"}, got); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
}

func TestJSONRoundTrip(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ in, want string }{
		"a number":                   {`{"path":"/a","operator":"add","value":3}`, `{"path":"/a","operator":"add","value":3}`},
		"an object":                  {`{"path":"/a","operator":"add","value":{"b":[1,null]}}`, `{"path":"/a","operator":"add","value":{"b":[1,null]}}`},
		"no value stays absent":      {`{"path":"/a","operator":"remove"}`, `{"path":"/a","operator":"remove"}`},
		"null is the same as absent": {`{"path":"/a","operator":"remove","value":null}`, `{"path":"/a","operator":"remove"}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var overrider policyv1alpha1.PlaintextOverrider
			if err := json.Unmarshal([]byte(tc.in), &overrider); err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(overrider)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("written again (-want +got):\n%s", diff)
			}
		})
	}
}

// Namespaced and cluster-scoped kinds share one spec type, so readers need one code path.
func TestScopesShareSpecType(t *testing.T) {
	t.Parallel()
	scheme := newScheme(t)
	for _, gvk := range karmadaKinds(scheme) {
		namespaced := strings.TrimPrefix(gvk.Kind, "Cluster")
		if gvk.Kind == namespaced || strings.HasSuffix(gvk.Kind, "List") || !scheme.Recognizes(gvk.GroupVersion().WithKind(namespaced)) {
			continue
		}
		cluster, ok := scheme.AllKnownTypes()[gvk].FieldByName("Spec")
		if !ok {
			t.Errorf("%s has no spec", gvk)
			continue
		}
		want, _ := scheme.AllKnownTypes()[gvk.GroupVersion().WithKind(namespaced)].FieldByName("Spec")
		if cluster.Type != want.Type {
			t.Errorf("%s has a spec of type %s, %s has %s", gvk, cluster.Type, namespaced, want.Type)
		}
	}
}
