package tenancy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func errorText(refusal *ForbiddenError) string {
	if refusal == nil {
		return ""
	}
	return refusal.Error()
}

func TestCheckReference(t *testing.T) {
	named := func(kind, namespace string) workv1alpha2.ObjectReference {
		return workv1alpha2.ObjectReference{APIVersion: "v1", Kind: kind, Namespace: namespace, Name: "o"}
	}
	tests := map[string]struct {
		namespace string
		to        workv1alpha2.ObjectReference
		scope     Scope
		want      string
	}{
		"an object of its own namespace":                    {"shop", named("ConfigMap", "shop"), UnknownScope, ""},
		"a namespaced kind in its own namespace":            {"shop", named("ConfigMap", "shop"), NamespaceScope, ""},
		"an object of another namespace":                    {"shop", named("Secret", "karmada-cluster"), UnknownScope, `must not refer to Secret "o" in namespace "karmada-cluster"; set spec.resource.namespace to "shop"`},
		"an object without a namespace":                     {"shop", named("ClusterRole", ""), UnknownScope, `without a namespace`},
		"a cluster-scoped kind, named with the namespace":   {"shop", named("ClusterRole", "shop"), ClusterScope, "the kind is cluster-scoped; use a ClusterResourceBinding"},
		"a cluster-scoped kind of a cluster-scoped binding": {"", named("ClusterRole", ""), ClusterScope, ""},
		"an unknown kind of a cluster-scoped binding":       {"", named("Widget", ""), UnknownScope, ""},
		"a namespace of a cluster-scoped binding":           {"", named("Secret", "shop"), UnknownScope, `in namespace "shop"; use a ResourceBinding of that namespace`},
		"a namespaced kind of a cluster-scoped binding":     {"", named("Secret", ""), NamespaceScope, "the kind is namespaced; use a ResourceBinding"},
		"nothing": {"shop", workv1alpha2.ObjectReference{}, UnknownScope, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if tc.scope == UnknownScope && IsAllowedReference(tc.namespace, tc.to) != (tc.want == "") {
				t.Error("IsBound returns another result")
			}
			got := errorText(CheckReference(tc.namespace, tc.to, tc.scope))
			if (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestPropagationRules(t *testing.T) {
	namespaces, err := ParseSkippedNamespaces([]string{"kube-.*"})
	if err != nil {
		t.Fatal(err)
	}
	propagated := PropagationRules{APIs: DefaultSkippedAPIs(), Namespaces: namespaces}
	core := func(kind string) schema.GroupVersionKind { return schema.GroupVersionKind{Version: "v1", Kind: kind} }
	tests := map[string]struct {
		kind            schema.GroupVersionKind
		namespace, name string
		refused         bool
	}{
		"a ConfigMap of a user":               {core("ConfigMap"), "shop", "c", false},
		"a Secret of a cluster":               {core("Secret"), "karmada-cluster", "m1", true},
		"an object of karmada-system":         {core("ConfigMap"), "karmada-system", "c", true},
		"an object in an execution namespace": {core("ConfigMap"), "karmada-es-m1", "c", true},
		"an object of a skipped namespace":    {core("Secret"), "kube-system", "bootstrap-token-abcdef", true},
		"a namespace of the control plane":    {core("Namespace"), "", "karmada-es-m1", true},
		"a namespace of a user":               {core("Namespace"), "", "shop", false},
		"a policy":                            {schema.GroupVersionKind{Group: "policy.karmada.io", Version: "v1alpha1", Kind: "OverridePolicy"}, "shop", "o", true},
		"a Work":                              {schema.GroupVersionKind{Group: "work.karmada.io", Version: "v1alpha1", Kind: "Work"}, "shop", "w", true},
		"a namespace with a similar name":     {core("ConfigMap"), "karmada-shop", "c", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			refusal := propagated.Check(tc.kind, types.NamespacedName{Namespace: tc.namespace, Name: tc.name})
			if (refusal != nil) != tc.refused || refusal != nil && !strings.Contains(refusal.Error(), "never propagated") {
				t.Errorf("got %q", errorText(refusal))
			}
		})
	}
}

func TestCredentialSecrets(t *testing.T) {
	cluster := &clusterv1alpha1.Cluster{}
	cluster.Spec.SecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: "clusters", Name: "m1"}
	cluster.Spec.ImpersonatorSecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: "clusters", Name: "m1-impersonator"}
	want := []types.NamespacedName{{Namespace: "clusters", Name: "m1"}, {Namespace: "clusters", Name: "m1-impersonator"}}
	if diff := cmp.Diff(want, CredentialSecrets(cluster)); diff != "" {
		t.Errorf("Secrets (-want +got):\n%s", diff)
	}
	if CredentialSecrets(&clusterv1alpha1.Cluster{}) != nil {
		t.Error("a cluster without credentials has Secrets")
	}
	if got, want := errorText(CheckCredentials(want[0], []string{"m2", "m1"})), `Secret clusters/m1 is never propagated: it holds the credentials of cluster "m1"; remove the selector or the binding that refers to it`; got != want {
		t.Errorf("got %q", got)
	}
	if got := errorText(CheckCredentials(want[0], nil)); got != "" {
		t.Errorf("a Secret of no cluster: %q", got)
	}
}

func TestAuthorRights(t *testing.T) {
	tenant, operator := Author{Namespace: "shop"}, Author{Namespace: "shop", ClusterWide: true}
	configMap, namespace := schema.GroupKind{Kind: "ConfigMap"}, schema.GroupKind{Kind: "Namespace"}
	tests := map[string]struct {
		author               Author
		kind                 schema.GroupKind
		namespace            string
		dependency, takeOver bool
		// deliver reports whether the object may be delivered to a member.
		deliver bool
	}{
		"its own namespace":                                   {tenant, configMap, "shop", true, true, true},
		"another namespace":                                   {tenant, configMap, "bank", false, false, false},
		"a cluster-scoped object":                             {tenant, configMap, "", false, false, false},
		"a Namespace":                                         {tenant, namespace, "", false, false, false},
		"a namespaced object of kind Namespace":               {tenant, namespace, "shop", true, false, true},
		"a cluster-scoped object, author without a namespace": {Author{}, configMap, "", false, false, false},
		"another namespace, for an administrator":             {operator, configMap, "bank", true, true, true},
		"a Namespace, for an administrator":                   {operator, namespace, "", true, true, true},
		"credentials of a cluster":                            {operator, schema.GroupKind{Kind: "Secret"}, "karmada-cluster", true, true, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if refusal := tc.author.CheckDependency(tc.kind.Kind, types.NamespacedName{Namespace: tc.namespace, Name: "o"}); (refusal == nil) != tc.dependency {
				t.Errorf("dependency: %q", errorText(refusal))
			}
			refusal := tc.author.CheckDelivery(tc.kind.WithVersion("v1"), types.NamespacedName{Namespace: tc.namespace, Name: "o"})
			if (refusal == nil) != tc.deliver {
				t.Errorf("delivery: %q", errorText(refusal))
			}
			if got := tc.author.MayTakeOver(tc.kind, tc.namespace); got != tc.takeOver {
				t.Errorf("takeover: %v", got)
			}
		})
	}
}

func TestErrorsNameObjectAndRemedy(t *testing.T) {
	skipped, err := ParseSkippedAPIs("apps")
	if err != nil {
		t.Fatal(err)
	}
	namespaces, err := ParseSkippedNamespaces([]string{"kube-.*"})
	if err != nil {
		t.Fatal(err)
	}
	propagated, tenant := PropagationRules{APIs: skipped, Namespaces: namespaces}, Author{Namespace: "shop"}
	kind := func(group, kind string) schema.GroupVersionKind {
		return schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}
	}
	object := func(namespace, name string) types.NamespacedName {
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	tests := map[string]struct {
		refusal *ForbiddenError
		says    []string
	}{
		"a Lease":                       {propagated.Check(kind("coordination.k8s.io", "Lease"), object("shop", "l")), []string{"Lease shop/l is", "Events and Leases", "remove the selector"}},
		"a kind that a flag lists":      {propagated.Check(kind("apps", "Deployment"), object("shop", "web")), []string{"Deployment shop/web is", "take it out of that flag"}},
		"a namespace that a flag lists": {propagated.Check(kind("", "ConfigMap"), object("kube-public", "c")), []string{"ConfigMap kube-public/c is", "--skipped-propagating-namespaces", "take it out of that flag"}},
		"a Namespace of the system":     {propagated.Check(kind("", "Namespace"), object("", "karmada-system")), []string{"Namespace karmada-system is", "belongs to the control plane", "remove the selector"}},
		"a dependency":                  {tenant.CheckDependency("Secret", object("bank", "s")), []string{"Secret bank/s: ", `objects in namespace "bank"`}},
		"a cluster-scoped dependency":   {tenant.CheckDependency("ClusterRole", object("", "r")), []string{"ClusterRole r: ", "cluster-scoped objects"}},
		"dependencies by their labels":  {tenant.CheckDependency("Secret", object("bank", "")), []string{"Secret selected by labels: "}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for _, text := range tc.says {
				if !strings.Contains(errorText(tc.refusal), text) {
					t.Errorf("got %q, want %q", errorText(tc.refusal), text)
				}
			}
		})
	}
}
