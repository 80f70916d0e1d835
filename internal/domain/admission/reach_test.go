package admission

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/tenancy"
)

// TestOverrideIdentityIsRejected validates policies in the namespace shop.
func TestOverrideIdentityIsRejected(t *testing.T) {
	const prefix = "spec.overrideRules[0].overriders."
	tests := map[string]struct {
		overriders, field string
		// gated reports whether the feature gate OverrideIdentity permits the change.
		gated bool
	}{
		"the whole object":            {`plaintext: [{path: "", operator: replace, value: {}}]`, prefix + "plaintext[0].path", false},
		"the whole object is removed": {`plaintext: [{path: "", operator: remove}]`, prefix + "plaintext[0].path", false},
		"the kind":                    {`plaintext: [{path: /spec, operator: remove}, {path: /kind, operator: add, value: X}]`, prefix + "plaintext[1].path", true},
		"the name":                    {`plaintext: [{path: /metadata/name, operator: replace, value: x}]`, prefix + "plaintext[0].path", true},
		"the namespace":               {`plaintext: [{path: /metadata/namespace, operator: remove}]`, prefix + "plaintext[0].path", true},
		"metadata is removed":         {`plaintext: [{path: /metadata, operator: remove}]`, prefix + "plaintext[0].path", true},
		"metadata without a name":     {`plaintext: [{path: /metadata, operator: replace, value: {labels: {}}}]`, prefix + "plaintext[0].path", true},
		"the API version is removed":  {`plaintext: [{path: /apiVersion, operator: remove}]`, prefix + "plaintext[0].path", true},
		"the name, by imageOverrider": {`imageOverrider: [{component: Tag, operator: remove, predicate: {path: /metadata/name}}]`, prefix + "imageOverrider[0].predicate.path", true},
		"the kind, by fieldOverrider": {`fieldOverrider: [{fieldPath: /kind, yaml: [{subPath: "", operator: replace, value: X}]}]`, prefix + "fieldOverrider[0].fieldPath", true},
		"another API version":         {`plaintext: [{path: /apiVersion, operator: replace, value: apps/v2}]`, "", true},
		"metadata of the same name":   {`plaintext: [{path: /metadata, operator: replace, value: {name: web, namespace: shop}}]`, "", true},
		"a label named name":          {`plaintext: [{path: /metadata/labels/name, operator: add, value: x}]`, "", true},
		"a whole document in a field": {`fieldOverrider: [{fieldPath: /data/f, yaml: [{subPath: "", operator: replace, value: X}]}]`, "", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			spec := policyv1alpha1.OverrideSpec{}
			if err := yaml.UnmarshalStrict([]byte("overrideRules: [{overriders: {"+tc.overriders+"}}]"), &spec); err != nil {
				t.Fatal(err)
			}
			namespaced := &policyv1alpha1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p"}, Spec: spec}
			cluster := &policyv1alpha1.ClusterOverridePolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: spec}
			fields := func(rules Options, object, old runtime.Object) (found string) {
				broken, _ := rules.Validate(object, old)
				for _, err := range broken {
					found += err.Field
				}
				return found
			}
			gated := Options{OverrideIdentity: true}
			wantWithGate := tc.field
			if tc.gated {
				wantWithGate = ""
			}
			want := []string{tc.field, tc.field, tc.field, wantWithGate, ""}
			got := []string{fields(Options{}, namespaced, nil), fields(Options{}, cluster, nil), fields(gated, namespaced, nil), fields(gated, cluster, nil), fields(Options{}, namespaced, namespaced.DeepCopy())}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("OverridePolicy, ClusterOverridePolicy, both with the gate, and one that is stored (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBindingIDIsImmutable(t *testing.T) {
	for label, kinds := range map[string][]runtime.Object{
		workv1alpha2.ResourceBindingPermanentIDLabel:        {&workv1alpha2.ResourceBinding{}, &workv1alpha1.ResourceBinding{}},
		workv1alpha2.ClusterResourceBindingPermanentIDLabel: {&workv1alpha2.ClusterResourceBinding{}, &workv1alpha1.ClusterResourceBinding{}},
	} {
		for what, tc := range map[string]struct {
			old, new map[string]string
			wantErr  bool
		}{
			"unchanged":              {map[string]string{label: "id"}, map[string]string{label: "id", "a": "b"}, false},
			"changed":                {map[string]string{label: "id"}, map[string]string{label: "other"}, true},
			"removed":                {map[string]string{label: "id"}, nil, true},
			"added":                  {nil, map[string]string{label: "id"}, false},
			"absent":                 {nil, nil, false},
			"an empty id is removed": {map[string]string{label: ""}, nil, false},
		} {
			for _, kind := range kinds {
				old, changed := kind.DeepCopyObject(), kind.DeepCopyObject()
				old.(metav1.Object).SetLabels(tc.old)
				changed.(metav1.Object).SetLabels(tc.new)
				broken, _ := Options{}.Validate(changed, old)
				if got := len(broken) > 0; got != tc.wantErr {
					t.Errorf("%T, %s: %v", kind, what, broken)
				}
			}
		}
	}
}

func TestBindingReference(t *testing.T) {
	served := NewServedKinds(nil, []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "secrets", Kind: "Secret", Namespaced: true}}},
		{GroupVersion: "rbac.authorization.k8s.io/v1", APIResources: []metav1.APIResource{{Name: "clusterroles", Kind: "ClusterRole"}}},
	}, nil)
	lookups := 0
	rules := Options{ServedKinds: func(schema.GroupVersionKind) *ServedKinds {
		lookups++
		return served
	}}
	role := func(namespace string) workv1alpha2.ObjectReference {
		return workv1alpha2.ObjectReference{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Namespace: namespace, Name: "cluster-admin"}
	}
	secret := func(namespace string) workv1alpha2.ObjectReference {
		return workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: "s"}
	}
	tests := map[string]struct {
		namespace string
		to        workv1alpha2.ObjectReference
		wantError string
	}{
		"an object of the namespace":                      {"shop", secret("shop"), ""},
		"an object of another namespace":                  {"shop", secret("karmada-cluster"), "must not refer to"},
		"a cluster-scoped kind":                           {"shop", role("shop"), "the kind is cluster-scoped"},
		"a cluster-scoped kind without namespace":         {"shop", role(""), "the kind is cluster-scoped"},
		"a cluster-scoped object, ClusterResourceBinding": {"", role(""), ""},
		"a namespaced kind, ClusterResourceBinding":       {"", secret(""), "the kind is namespaced"},
		"a namespaced object, ClusterResourceBinding":     {"", secret("shop"), "must not refer to"},
		"a kind of Karmada":                               {"shop", workv1alpha2.ObjectReference{APIVersion: "work.karmada.io/v1alpha1", Kind: "Work", Namespace: "shop", Name: "w"}, "is never propagated"},
		"an object of a namespace of Karmada":             {"karmada-cluster", secret("karmada-cluster"), "is never propagated"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			metadata := metav1.ObjectMeta{Namespace: tc.namespace, Name: "b"}
			var objects []runtime.Object
			if tc.namespace == "" {
				stored := &workv1alpha2.ClusterResourceBinding{ObjectMeta: metadata, Spec: workv1alpha2.ResourceBindingSpec{Resource: tc.to}}
				objects = append(objects, stored, workv1alpha1.ClusterResourceBindingFromV1alpha2(stored))
			} else {
				stored := &workv1alpha2.ResourceBinding{ObjectMeta: metadata, Spec: workv1alpha2.ResourceBindingSpec{Resource: tc.to}}
				objects = append(objects, stored, workv1alpha1.ResourceBindingFromV1alpha2(stored))
			}
			for _, object := range objects {
				broken, _ := rules.Validate(object, nil)
				if len(broken) > 0 != (tc.wantError != "") || len(broken) > 0 && (broken[0].Field != "spec.resource" || !strings.Contains(broken[0].Detail, tc.wantError)) {
					t.Errorf("%T: %v", object, broken)
				}
				lookups = 0
				broken, warnings := rules.Validate(object, object.DeepCopyObject())
				byScope := strings.HasPrefix(tc.wantError, "the kind is") && tenancy.IsAllowedReference(tc.namespace, tc.to)
				if len(broken) != 0 || len(warnings) > 0 != (tc.wantError != "" && !byScope) || lookups != 0 {
					t.Errorf("stored %T: errors %v, warnings %v, %d lookups of kinds", object, broken, warnings, lookups)
				}
			}
		})
	}
}
