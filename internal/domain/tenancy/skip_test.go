package tenancy

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

func TestSkippedAPIs(t *testing.T) {
	tests := map[string]struct {
		flag string
		gvk  schema.GroupVersionKind
		want bool
	}{
		"a group of the control plane is skipped by default":     {gvk: schema.GroupVersionKind{Group: "policy.karmada.io", Version: "v1alpha1", Kind: "PropagationPolicy"}, want: true},
		"the search group is not skipped by default":             {gvk: schema.GroupVersionKind{Group: "search.karmada.io", Version: "v1alpha1", Kind: "ResourceRegistry"}},
		"core events are skipped by default":                     {gvk: schema.GroupVersionKind{Version: "v1", Kind: "Event"}, want: true},
		"events of the events group are skipped by default":      {gvk: schema.GroupVersionKind{Group: "events.k8s.io", Version: "v1", Kind: "Event"}, want: true},
		"leases are skipped by default":                          {gvk: schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}, want: true},
		"other versions of coordination are not skipped":         {gvk: schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1beta1", Kind: "Lease"}},
		"a deployment is not skipped by default":                 {gvk: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}},
		"a token without a slash names a group":                  {flag: "apps", gvk: schema.GroupVersionKind{Group: "apps", Version: "v9", Kind: "X"}, want: true},
		"two parts name a group version":                         {flag: "apps/v1", gvk: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "X"}, want: true},
		"two parts leave other versions alone":                   {flag: "apps/v1", gvk: schema.GroupVersionKind{Group: "apps", Version: "v2", Kind: "X"}},
		"v1 and kinds name core kinds":                           {flag: "v1/Pod,Secret", gvk: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, want: true},
		"three parts name kinds":                                 {flag: "apps/v1/Deployment,DaemonSet", gvk: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"}, want: true},
		"three parts leave other kinds alone":                    {flag: "apps/v1/Deployment", gvk: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"}},
		"kinds are compared without case":                        {flag: "apps/v1/dEPLOYMENT", gvk: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, want: true},
		"tokens are separated by semicolons, with blanks":        {flag: "batch; apps/v1;", gvk: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "X"}, want: true},
		"a group version starting with v1 is read as core kinds": {flag: "v1things.io/v1", gvk: schema.GroupVersionKind{Group: "v1things.io", Version: "v1", Kind: "X"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			skipped, err := ParseSkippedAPIs(test.flag)
			if err != nil {
				t.Fatal(err)
			}
			if got := skipped.Skips(test.gvk); got != test.want {
				t.Errorf("Skips(%v) = %v, want %v", test.gvk, got, test.want)
			}
		})
	}
}

func TestSkippedAPIsErrorsQuoteTheToken(t *testing.T) {
	for _, token := range []string{"a/b/c/d", "apps/v1/Deployment,apps/v1/DaemonSet", "apps/", "/v1", "v1/", "v1/Pod,,Secret", "apps/v1/,"} {
		if _, err := ParseSkippedAPIs("batch;" + token); err == nil || !strings.Contains(err.Error(), token) {
			t.Errorf("ParseSkippedAPIs(%q) = %v, want an error that quotes the token", token, err)
		}
	}
}

func FuzzParseSkippedAPIs(f *testing.F) {
	for _, seed := range []string{"", "apps", "apps/v1", "v1/Pod,Secret", "apps/v1/Deployment,DaemonSet;batch", "a/b/c/d", ";;", "v1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, expression string) {
		skipped, err := ParseSkippedAPIs(expression)
		if err != nil {
			return
		}
		if !skipped.Skips(schema.GroupVersionKind{Group: "work.karmada.io", Version: "v1alpha1", Kind: "Work"}) {
			t.Errorf("%q removes a default", expression)
		}
		doubled, err := ParseSkippedAPIs(expression + ";" + expression)
		if err != nil {
			t.Errorf("%q parses, twice it does not: %v", expression, err)
		}
		if doubled.groups.Len() != skipped.groups.Len() || doubled.versions.Len() != skipped.versions.Len() || doubled.kinds.Len() != skipped.kinds.Len() {
			t.Errorf("%q has another meaning when it is repeated", expression)
		}
	})
}

func TestIsWatchable(t *testing.T) {
	all := metav1.Verbs{"get", "list", "watch", "delete"}
	tests := map[string]struct {
		version  schema.GroupVersion
		resource metav1.APIResource
		want     bool
	}{
		"list, watch and delete are sufficient": {version: schema.GroupVersion{Group: "apps", Version: "v1"}, resource: metav1.APIResource{Name: "deployments", Kind: "Deployment", Verbs: all}, want: true},
		"a resource without watch":              {version: schema.GroupVersion{Group: "apps", Version: "v1"}, resource: metav1.APIResource{Name: "deployments", Kind: "Deployment", Verbs: all[:2]}},
		"a resource without delete":             {version: schema.GroupVersion{Group: "apps", Version: "v1"}, resource: metav1.APIResource{Name: "deployments", Kind: "Deployment", Verbs: all[:3]}},
		"a subresource":                         {version: schema.GroupVersion{Group: "apps", Version: "v1"}, resource: metav1.APIResource{Name: "deployments/scale", Kind: "Scale", Verbs: all}},
		"a skipped kind":                        {version: schema.GroupVersion{Version: "v1"}, resource: metav1.APIResource{Name: "events", Kind: "Event", Verbs: all}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := DefaultSkippedAPIs().IsWatchable(test.version, test.resource); got != test.want {
				t.Errorf("Watchable = %v, want %v", got, test.want)
			}
		})
	}
}

func TestSkippedNamespaces(t *testing.T) {
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	namespace := schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	configMap := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	tests := map[string]struct {
		patterns        []string
		gvk             schema.GroupVersionKind
		namespace, name string
		want            bool
	}{
		"the system namespace is skipped":                      {gvk: deployment, namespace: "karmada-system", name: "x", want: true},
		"the cluster namespace is skipped":                     {gvk: deployment, namespace: "karmada-cluster", name: "x", want: true},
		"execution namespaces are skipped":                     {gvk: deployment, namespace: "karmada-es-m1", name: "x", want: true},
		"other karmada namespaces are not":                     {gvk: deployment, namespace: "karmada-users", name: "x"},
		"a pattern skips":                                      {patterns: []string{"kube-.*"}, gvk: deployment, namespace: "kube-system", name: "x", want: true},
		"a pattern has to match the whole name":                {patterns: []string{"kube-.*"}, gvk: deployment, namespace: "my-kube-system", name: "x"},
		"alternatives are anchored on both ends":               {patterns: []string{"a|b"}, gvk: deployment, namespace: "ab", name: "x"},
		"a pattern can match the empty namespace":              {patterns: []string{".*"}, gvk: schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}, name: "x", want: true},
		"cluster-scoped objects are not skipped by name":       {patterns: []string{"kube-.*"}, gvk: schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}, name: "kube-x"},
		"a reserved Namespace is skipped by its name":          {gvk: namespace, name: "karmada-es-m1", want: true},
		"a Namespace is skipped by a pattern on its name":      {patterns: []string{"kube-.*"}, gvk: namespace, name: "kube-system", want: true},
		"a user's Namespace is not skipped":                    {patterns: []string{"kube-.*"}, gvk: namespace, name: "shop"},
		"the API server's authentication ConfigMap is skipped": {gvk: configMap, namespace: "kube-system", name: "extension-apiserver-authentication", want: true},
		"a ConfigMap of that name elsewhere is not":            {gvk: configMap, namespace: "shop", name: "extension-apiserver-authentication"},
		"a kind named Namespace of another group is not":       {gvk: schema.GroupVersionKind{Group: "example.io", Version: "v1", Kind: "Namespace"}, name: "karmada-system"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			skipped, err := ParseSkippedNamespaces(test.patterns)
			if err != nil {
				t.Fatal(err)
			}
			if got := skipped.Skips(test.gvk, test.namespace, test.name); got != test.want {
				t.Errorf("Skips = %v, want %v", got, test.want)
			}
		})
	}
}

func TestParseSkippedNamespacesRejectsInvalidExpression(t *testing.T) {
	if _, err := ParseSkippedNamespaces([]string{"kube-.*", "("}); err == nil {
		t.Error("an invalid expression is accepted")
	}
}

func TestIsExcludedFromPropagation(t *testing.T) {
	for value, want := range map[string]bool{"true": true, "True": true, "TRUE": true, "false": false, "": false, "yes": false} {
		namespace := &metav1.ObjectMeta{Labels: map[string]string{policyv1alpha1.NamespaceSkipAutoPropagationLabel: value}}
		if got := IsExcludedFromPropagation(namespace); got != want {
			t.Errorf("value %q: got %v", value, got)
		}
	}
	if IsExcludedFromPropagation(&metav1.ObjectMeta{}) {
		t.Error("a Namespace without the label is excluded")
	}
}
