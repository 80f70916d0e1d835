package policy

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// TestGeneratedNamesAreStable checks that generated names never change, because policies with these
// names are stored.
func TestGeneratedNamesAreStable(t *testing.T) {
	if got, want := generatedName("rand", "ns-foo", "foo"), "foo-b4978784"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	if got, want := GeneratedName(deployment, "default", "nginx"), "nginx-6d7f8d5f5b"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	role := schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}
	if got, want := GeneratedName(role, "", "system:Foo"), generatedName("rbac.authorization.k8s.io/v1, Kind=ClusterRole", "", "system.foo"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestUnambiguousNames(t *testing.T) {
	role := schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}
	names := map[string]string{}
	for _, name := range []string{"coll:view", "coll.view", "Coll.view"} {
		if got, want := GeneratedName(role, "", name), GeneratedName(role, "", "coll.view"); got != want {
			t.Errorf("the generated name of %s is %s, want %s", name, got, want)
		}
		unambiguous := UnambiguousName(role, "", name)
		if other := names[unambiguous]; other != "" {
			t.Errorf("%s and %s have the same name %s", name, other, unambiguous)
		}
		names[unambiguous] = name
	}
}

func TestSelectsByName(t *testing.T) {
	role := schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}
	selector := policyv1alpha1.ResourceSelector{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "coll.view"}
	if !SelectsByName([]policyv1alpha1.ResourceSelector{{Kind: "Other"}, selector}, role, "", "coll.view") {
		t.Error("the object is not selected")
	}
	if SelectsByName([]policyv1alpha1.ResourceSelector{selector}, role, "", "coll:view") || SelectsByName(nil, role, "", "coll.view") {
		t.Error("another object is selected")
	}
}

func TestSelectsObjectByName(t *testing.T) {
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	stored := &policyv1alpha1.PropagationPolicy{}
	stored.Spec.ResourceSelectors = []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}}
	clusterWide := &policyv1alpha1.ClusterPropagationPolicy{Spec: stored.Spec}
	for name, want := range map[string]bool{"web": true, "db": false} {
		for _, each := range []runtime.Object{stored, clusterWide} {
			if got := SelectsObjectByName(each, deployment, "shop", name); got != want {
				t.Errorf("%T selects %s: %t, want %t", each, name, got, want)
			}
		}
	}
}
