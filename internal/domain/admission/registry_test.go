package admission

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"

	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
)

func TestValidateRegistry(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		spec     string
		name     string
		deleting bool
		// errors and warnings are parts of the expected messages, in order.
		errors, warnings []string
	}{
		"a registry of Deployments is valid": {
			spec: `{targetCluster: {clusterNames: [m1]}, resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, namespace: web}]}`,
		},
		"a name that is no DNS subdomain": {
			name: "A_b", spec: `{targetCluster: {clusterNames: [m1]}, resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]}`,
			errors: []string{"metadata.name: Invalid value"},
		},
		"an unknown field of clusters": {
			spec:   `{targetCluster: {fieldSelector: {matchExpressions: [{key: color, operator: In, values: [red]}]}}, resourceSelectors: [{apiVersion: v1, kind: Pod}]}`,
			errors: []string{`spec.targetCluster.fieldSelector.matchExpressions[0].key: Unsupported value: "color"`},
		},
		"an apiVersion with two slashes and a bad namespace": {
			spec: `{resourceSelectors: [{apiVersion: a/b/c, kind: Deployment, namespace: A_b}]}`,
			errors: []string{
				`spec.resourceSelectors[0].apiVersion: Invalid value: "a/b/c": must be a version, such as v1`,
				"spec.resourceSelectors[0].namespace: Invalid value",
			},
			warnings: []string{"spec.resourceSelectors[0]: no cluster serves a/b/c Deployment at present; did you mean apps/v1 Deployment?"},
		},
		"addresses that are no URLs with a host": {
			spec: `{resourceSelectors: [{apiVersion: v1, kind: Pod}], backendStore: {openSearch: {addresses: [opensearch, "ftp://h", "https:///x", "https://user:pw@h:9200"]}}}`,
			errors: []string{
				"spec.backendStore.openSearch.addresses[0]: Invalid value", "spec.backendStore.openSearch.addresses[1]: Invalid value",
				"spec.backendStore.openSearch.addresses[2]: Invalid value",
			},
			warnings: []string{"spec.backendStore.openSearch.addresses[3]: contains credentials"},
		},
		"a back end without addresses": {
			spec:     `{resourceSelectors: [{apiVersion: v1, kind: Pod}], backendStore: {openSearch: {}}}`,
			warnings: []string{"spec.backendStore.openSearch.addresses: is empty"},
		},
		"a registry that selects nothing": {
			spec:     `{targetCluster: {clusterNames: [m1]}}`,
			warnings: []string{"spec.resourceSelectors: is empty"},
		},
		"entries that select nothing": {
			spec: `{resourceSelectors: [{kind: Pod}, {apiVersion: v1}, {apiVersion: "*", kind: "*"}, {apiVersion: v1, kind: Pod}, {apiVersion: v1, kind: Pod}, {apiVersion: v1, kind: pods}]}`,
			warnings: []string{
				"spec.resourceSelectors[0].apiVersion: is empty", "spec.resourceSelectors[1].kind: is empty",
				"spec.resourceSelectors[2]: selects nothing", "spec.resourceSelectors[4]: has no effect",
				"spec.resourceSelectors[5].kind: selects nothing if", "spec.resourceSelectors[5]: no cluster serves v1 pods at present; did you mean v1 Pod?",
			},
		},
		"a kind in another version, a misspelled kind, and an unknown one": {
			spec: `{resourceSelectors: [{apiVersion: apps/v2, kind: Deployment}, {apiVersion: v1, kind: Pood}, {apiVersion: example.com/v1, kind: Thing}]}`,
			warnings: []string{
				"spec.resourceSelectors[0]: no cluster serves apps/v2 Deployment at present; did you mean apps/v1 Deployment?",
				"spec.resourceSelectors[1]: no cluster serves v1 Pood at present; did you mean v1 Pod?",
				"spec.resourceSelectors[2]: no cluster serves example.com/v1 Thing at present",
			},
		},
		"costly kinds of every cluster": {
			spec: `{resourceSelectors: [{apiVersion: v1, kind: Event}, {apiVersion: coordination.k8s.io/v1, kind: Lease}, {apiVersion: v1, kind: Secret}]}`,
			warnings: []string{
				"spec.resourceSelectors[0]: caches each Event of every cluster", "spec.resourceSelectors[1]: caches each Lease of every cluster",
				"spec.resourceSelectors[2]: caches each Secret of every cluster",
			},
		},
		"costly kinds of one cluster": {
			spec: `{targetCluster: {clusterNames: [m1]}, resourceSelectors: [{apiVersion: v1, kind: Event}]}`,
		},
		"a cluster that does not exist": {
			spec:     `{targetCluster: {clusterNames: [m2]}, resourceSelectors: [{apiVersion: v1, kind: Pod}]}`,
			warnings: []string{`spec.targetCluster.clusterNames[0]: there is no cluster "m2"; did you mean "m1"?`},
		},
		"an invalid registry can be deleted": {
			deleting: true, spec: `{resourceSelectors: [{apiVersion: a/b/c, kind: Deployment}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			registry := &searchv1alpha1.ResourceRegistry{ObjectMeta: metav1.ObjectMeta{Name: "r"}}
			if test.name != "" {
				registry.Name = test.name
			}
			if test.deleting {
				registry.DeletionTimestamp = &metav1.Time{}
			}
			if err := yaml.UnmarshalStrict([]byte(test.spec), &registry.Spec); err != nil {
				t.Fatal(err)
			}
			errs, warnings := registryRules().ValidateRegistry(registry)
			messages := []string{}
			for _, err := range errs {
				messages = append(messages, err.Error())
			}
			comparePrefixes(t, "error", test.errors, messages)
			comparePrefixes(t, "warning", test.warnings, warnings)
		})
	}
}

func TestRegistryOfManyKindsOfEveryClusterCausesAWarning(t *testing.T) {
	t.Parallel()
	registry := &searchv1alpha1.ResourceRegistry{ObjectMeta: metav1.ObjectMeta{Name: "r"}}
	for i := range manyKinds {
		registry.Spec.ResourceSelectors = append(registry.Spec.ResourceSelectors,
			searchv1alpha1.ResourceSelector{APIVersion: "example.com/v1", Kind: "Kind" + strings.Repeat("x", i)})
	}
	_, warnings := Options{}.ValidateRegistry(registry)
	comparePrefixes(t, "warning", []string{"spec: caches 20 kinds of every cluster"}, warnings)
	registry.Spec.TargetCluster.ClusterNames = []string{"m1"}
	if _, warnings = (Options{}).ValidateRegistry(registry); len(warnings) > 0 {
		t.Errorf("a registry of one cluster causes the warnings %q", warnings)
	}
}

func registryRules() Options {
	return Options{
		ClusterNames: func([]string) sets.Set[string] { return sets.New("m1") },
		ServedByClusters: func() sets.Set[schema.GroupVersionKind] {
			return sets.New(
				schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, schema.GroupVersionKind{Version: "v1", Kind: "Pod"},
				schema.GroupVersionKind{Version: "v1", Kind: "Event"}, schema.GroupVersionKind{Version: "v1", Kind: "Secret"},
				schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"},
			)
		},
	}
}

// comparePrefixes reports the messages that do not begin with the expected prefixes.
func comparePrefixes(t *testing.T, what string, want, got []string) {
	t.Helper()
	cut := make([]string, len(got))
	for i, message := range got {
		cut[i] = message
		if i < len(want) && strings.HasPrefix(message, want[i]) {
			cut[i] = want[i]
		}
	}
	if want == nil {
		want = []string{}
	}
	if diff := cmp.Diff(want, cut); diff != "" {
		t.Errorf("%ss (-want +got):\n%s", what, diff)
	}
}
