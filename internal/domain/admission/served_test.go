package admission

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// newServedKinds returns the kinds of a small control plane in which the discovery of the group
// metrics.k8s.io failed.
func newServedKinds() *ServedKinds {
	group := func(name string, versions ...string) *metav1.APIGroup {
		return &metav1.APIGroup{Name: name, PreferredVersion: metav1.GroupVersionForDiscovery{Version: versions[0]}}
	}
	list := func(version string, resources ...metav1.APIResource) *metav1.APIResourceList {
		return &metav1.APIResourceList{GroupVersion: version, APIResources: resources}
	}
	deployments := []metav1.APIResource{{Name: "deployments", Kind: "Deployment", Namespaced: true}, {Name: "deployments/scale", Kind: "Scale", Namespaced: true}}
	return NewServedKinds(
		[]*metav1.APIGroup{group("", "v1"), group("apps", "v1"), group("autoscaling", "v2", "v1"), group("rbac.authorization.k8s.io", "v1")},
		[]*metav1.APIResourceList{
			list("v1", metav1.APIResource{Name: "configmaps", Kind: "ConfigMap", Namespaced: true}, metav1.APIResource{Name: "namespaces", Kind: "Namespace"}),
			list("apps/v1", deployments...),
			list("autoscaling/v1", metav1.APIResource{Name: "horizontalpodautoscalers", Kind: "HorizontalPodAutoscaler", Namespaced: true}),
			list("autoscaling/v2", metav1.APIResource{Name: "horizontalpodautoscalers", Kind: "HorizontalPodAutoscaler", Namespaced: true}),
			list("rbac.authorization.k8s.io/v1", metav1.APIResource{Name: "clusterroles", Kind: "ClusterRole"}),
		},
		[]schema.GroupVersion{{Group: "metrics.k8s.io", Version: "v1beta1"}},
	)
}

func TestWarnUnservedSelectors(t *testing.T) {
	tests := map[string]struct {
		apiVersion, kind string
		unknown          bool
		namespaced       []string
		clusterWide      []string
	}{
		"a served kind":                   {apiVersion: "apps/v1", kind: "Deployment"},
		"a misspelled kind":               {apiVersion: "apps/v1", kind: "Deploymint", namespaced: []string{"spec.resourceSelectors[0].kind: selects nothing: no API serves Deploymint of apps/v1; did you mean Deployment?"}, clusterWide: []string{"spec.resourceSelectors[0].kind: selects nothing: no API serves Deploymint of apps/v1; did you mean Deployment?"}},
		"a version that is not served":    {apiVersion: "apps/v1beta1", kind: "Deployment", namespaced: []string{"spec.resourceSelectors[0].apiVersion: selects nothing: apps/v1beta1 does not serve Deployment; use apps/v1"}, clusterWide: []string{"spec.resourceSelectors[0].apiVersion: selects nothing: apps/v1beta1 does not serve Deployment; use apps/v1"}},
		"a kind of another group":         {apiVersion: "v1", kind: "Deployment", namespaced: []string{"spec.resourceSelectors[0].apiVersion: selects nothing: no API serves Deployment of v1; did you mean apps/v1?"}, clusterWide: []string{"spec.resourceSelectors[0].apiVersion: selects nothing: no API serves Deployment of v1; did you mean apps/v1?"}},
		"an unknown group":                {apiVersion: "example.io/v1", kind: "Widget", namespaced: []string{"spec.resourceSelectors[0]: selects nothing until an API serves Widget of example.io/v1"}, clusterWide: []string{"spec.resourceSelectors[0]: selects nothing until an API serves Widget of example.io/v1"}},
		"a version that is not preferred": {apiVersion: "autoscaling/v1", kind: "HorizontalPodAutoscaler", namespaced: []string{"spec.resourceSelectors[0].apiVersion: selects nothing: the server prefers autoscaling/v2; use it"}, clusterWide: []string{"spec.resourceSelectors[0].apiVersion: selects nothing: the server prefers autoscaling/v2; use it"}},
		"a kind without namespaces":       {apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", namespaced: []string{"spec.resourceSelectors[0]: never matches: ClusterRole of rbac.authorization.k8s.io/v1 has no namespace; use a ClusterPropagationPolicy"}},
		"a group whose discovery failed":  {apiVersion: "metrics.k8s.io/v1beta1", kind: "PodMetrics"},
		"served kinds are unknown":        {apiVersion: "apps/v1", kind: "Deploymint", unknown: true},
		"a subresource is not a kind":     {apiVersion: "apps/v1", kind: "Scale", namespaced: []string{"spec.resourceSelectors[0]: selects nothing until an API serves Scale of apps/v1"}, clusterWide: []string{"spec.resourceSelectors[0]: selects nothing until an API serves Scale of apps/v1"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			rules := Options{ServedKinds: func(schema.GroupVersionKind) *ServedKinds { return newServedKinds() }}
			if test.unknown {
				rules.ServedKinds = func(schema.GroupVersionKind) *ServedKinds { return nil }
			}
			selectors := []policyv1alpha1.ResourceSelector{{APIVersion: test.apiVersion, Kind: test.kind}}
			cluster := &policyv1alpha1.ClusterPropagationPolicy{Spec: policyv1alpha1.PropagationSpec{ResourceSelectors: selectors}}
			namespaced := &policyv1alpha1.PropagationPolicy{Spec: policyv1alpha1.PropagationSpec{ResourceSelectors: selectors}}
			for object, want := range map[runtime.Object][]string{cluster: test.clusterWide, namespaced: test.namespaced} {
				if _, got := rules.Validate(object, nil); !cmp.Equal(want, got) {
					t.Errorf("warnings of %T (-want +got):\n%s", object, cmp.Diff(want, got))
				}
			}
		})
	}
}

func TestWarnOverridePolicyOfClusterScopedKinds(t *testing.T) {
	rules := Options{ServedKinds: func(schema.GroupVersionKind) *ServedKinds { return newServedKinds() }}
	spec := policyv1alpha1.OverrideSpec{ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "Namespace"}}}
	_, got := rules.Validate(&policyv1alpha1.OverridePolicy{Spec: spec}, nil)
	want := []string{"spec.resourceSelectors[0]: never matches: Namespace of v1 has no namespace; use a ClusterOverridePolicy"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	if _, got := rules.Validate(&policyv1alpha1.ClusterOverridePolicy{Spec: spec}, nil); len(got) > 0 {
		t.Errorf("warnings of a ClusterOverridePolicy: %v", got)
	}
}

func TestWarnUnknownClusters(t *testing.T) {
	tests := map[string]struct {
		known sets.Set[string]
		names []string
		want  []string
	}{
		"a cluster that exists":              {known: sets.New("member1"), names: []string{"member1"}},
		"a misspelled name":                  {known: sets.New("member1", "east"), names: []string{"east", "membr1"}, want: []string{`spec.placement.clusterAffinity.clusterNames[1]: there is no cluster "membr1"; did you mean "member1"?`}},
		"a cluster that has not joined":      {known: sets.New[string](), names: []string{"west"}, want: []string{`spec.placement.clusterAffinity.clusterNames[0]: there is no cluster "west" yet`}},
		"the clusters are unknown":           {names: []string{"west"}},
		"an invalid name causes one warning": {known: sets.New("member1"), names: []string{"Member_1"}, want: []string{`spec.placement.clusterAffinity.clusterNames[0]: selects nothing: no cluster can be named "Member_1"`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			rules := Options{ClusterNames: func([]string) sets.Set[string] { return test.known }}
			policy := &policyv1alpha1.ClusterPropagationPolicy{}
			policy.Spec.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: test.names}
			if _, got := rules.Validate(policy, nil); !cmp.Equal(test.want, got) {
				t.Errorf("warnings (-want +got):\n%s", cmp.Diff(test.want, got))
			}
		})
	}
}

func TestWarnUnknownClustersInAllFields(t *testing.T) {
	rules := Options{ClusterNames: func([]string) sets.Set[string] { return sets.New("member1") }}
	affinity := &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"membr1"}}
	propagation := &policyv1alpha1.ClusterPropagationPolicy{}
	propagation.Spec.Placement = policyv1alpha1.Placement{
		ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{{AffinityName: "a", ClusterAffinity: *affinity}},
		ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{WeightPreference: &policyv1alpha1.ClusterPreferences{
			StaticWeightList: []policyv1alpha1.StaticClusterWeight{{TargetCluster: *affinity}},
		}},
	}
	propagation.Spec.Suspension = &policyv1alpha1.Suspension{DispatchingOnClusters: &policyv1alpha1.SuspendClusters{ClusterNames: affinity.ClusterNames}}
	override := &policyv1alpha1.ClusterOverridePolicy{Spec: policyv1alpha1.OverrideSpec{OverrideRules: []policyv1alpha1.RuleWithCluster{{
		TargetCluster: &policyv1alpha1.ClusterAffinity{ExcludeClusters: affinity.ClusterNames},
	}}}}
	const text = `: there is no cluster "membr1"; did you mean "member1"?`
	for object, want := range map[runtime.Object][]string{
		propagation: {
			"spec.placement.clusterAffinities[0].clusterNames[0]" + text,
			"spec.placement.replicaScheduling.weightPreference.staticWeightList[0].targetCluster.clusterNames[0]" + text,
			"spec.suspension.dispatchingOnClusters.clusterNames[0]" + text,
		},
		override: {"spec.overrideRules[0].targetCluster.exclude[0]" + text},
	} {
		if _, got := rules.Validate(object, nil); !cmp.Equal(want, got) {
			t.Errorf("warnings of %T (-want +got):\n%s", object, cmp.Diff(want, got))
		}
	}
}

func TestOverridePathsBeginWithSlash(t *testing.T) {
	const hint = `: Invalid value: "spec/replicas": a JSON pointer begins with '/'; write "/spec/replicas"`
	overriders := policyv1alpha1.Overriders{Plaintext: []policyv1alpha1.PlaintextOverrider{{Path: "spec/replicas", Operator: policyv1alpha1.OverriderOpRemove}}}
	image := policyv1alpha1.Overriders{ImageOverrider: []policyv1alpha1.ImageOverrider{{Predicate: &policyv1alpha1.ImagePredicate{Path: "spec/replicas"}}}}
	document := policyv1alpha1.Overriders{FieldOverrider: []policyv1alpha1.FieldOverrider{{FieldPath: "spec/replicas", JSON: []policyv1alpha1.JSONPatchOperation{{Operator: policyv1alpha1.OverriderOpRemove}}}}}
	rule := func(overriders policyv1alpha1.Overriders) policyv1alpha1.OverrideSpec {
		return policyv1alpha1.OverrideSpec{OverrideRules: []policyv1alpha1.RuleWithCluster{{Overriders: overriders}}}
	}
	dotted := policyv1alpha1.Overriders{Plaintext: []policyv1alpha1.PlaintextOverrider{{Path: "$.spec.replicas"}}}
	whole := policyv1alpha1.Overriders{Plaintext: []policyv1alpha1.PlaintextOverrider{{Path: ""}}}
	tests := map[string]struct {
		spec policyv1alpha1.OverrideSpec
		old  *policyv1alpha1.OverrideSpec
		want []string
	}{
		"plaintext":                          {spec: rule(overriders), want: []string{"spec.overrideRules[0].overriders.plaintext[0].path" + hint}},
		"an image":                           {spec: rule(image), want: []string{"spec.overrideRules[0].overriders.imageOverrider[0].predicate.path" + hint}},
		"a document":                         {spec: rule(document), want: []string{"spec.overrideRules[0].overriders.fieldOverrider[0].fieldPath" + hint}},
		"plaintext in the deprecated field":  {spec: policyv1alpha1.OverrideSpec{Overriders: overriders}, want: []string{"spec.overriders.plaintext[0].path" + hint}},
		"an image in the deprecated field":   {spec: policyv1alpha1.OverrideSpec{Overriders: image}, want: []string{"spec.overriders.imageOverrider[0].predicate.path" + hint}},
		"a document in the deprecated field": {spec: policyv1alpha1.OverrideSpec{Overriders: document}, want: []string{"spec.overriders.fieldOverrider[0].fieldPath" + hint}},
		"a path with dots":                   {spec: rule(dotted), want: []string{`spec.overrideRules[0].overriders.plaintext[0].path: Invalid value: "$.spec.replicas": a JSON pointer begins with '/'; write "/spec/replicas"`}},
		"the whole object":                   {spec: rule(whole), want: []string{`spec.overrideRules[0].overriders.plaintext[0].path: Invalid value: "": an override must not change the whole manifest; use paths of single fields, such as /spec/replicas`}},
		"a stored path is not rejected":      {spec: rule(overriders), old: new(rule(overriders))},
		"a new path beside a stored path":    {spec: rule(dotted), old: new(rule(overriders)), want: []string{`spec.overrideRules[0].overriders.plaintext[0].path: Invalid value: "$.spec.replicas": a JSON pointer begins with '/'; write "/spec/replicas"`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var old runtime.Object
			if test.old != nil {
				old = &policyv1alpha1.ClusterOverridePolicy{Spec: *test.old}
			}
			broken, warnings := Options{}.Validate(&policyv1alpha1.ClusterOverridePolicy{Spec: test.spec}, old)
			var got []string
			for _, err := range broken {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if test.old != nil && test.want == nil && len(warnings) != 1 {
				t.Errorf("warnings: %v, want one for the stored path", warnings)
			}
		})
	}
}
