package binding

import (
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/override"
	"karmada.io/karmada/internal/domain/tenancy"
	"karmada.io/karmada/internal/loop"
)

// The indexes that only this controller needs.
var (
	// overridesByKind finds the ClusterOverridePolicies that select a kind. The key is
	// loop.TemplateKindKey without a namespace, or anyKind for a policy that selects every kind.
	overridesByKind = loop.Index{
		Name: Name + "/selected-kind", Types: []client.Object{&policyv1alpha1.ClusterOverridePolicy{}}, Keys: selectedKinds,
	}
	// overridesByAttributes finds the override policies that select clusters by attributes that can
	// change. Its only key is byAttributes.
	overridesByAttributes = loop.Index{
		Name: Name + "/cluster-attributes", Keys: attributeKeys,
		Types: []client.Object{&policyv1alpha1.ClusterOverridePolicy{}, &policyv1alpha1.OverridePolicy{}},
	}
	// clustersByCredentials finds the Clusters whose credentials are stored in a Secret.
	clustersByCredentials = loop.Index{Name: Name + "/credentials", Types: []client.Object{&clusterv1alpha1.Cluster{}}, Keys: credentialKeys}
)

const (
	anyKind      = "*"
	byAttributes = "true"
)

// indexes returns all indexes that the controllers of both scopes read.
func indexes() []loop.Index {
	return []loop.Index{
		loop.WorksByBindingID, loop.WorksByBinding, loop.BindingsByTemplate, loop.BindingsByTarget,
		overridesByKind, overridesByAttributes, clustersByCredentials,
	}
}

func credentialKeys(object client.Object) []string {
	cluster, ok := object.(*clusterv1alpha1.Cluster)
	if !ok {
		return nil
	}
	var keys []string
	for _, secret := range tenancy.CredentialSecrets(cluster) {
		keys = append(keys, secret.String())
	}
	return keys
}

func selectedKinds(object client.Object) []string {
	policy, ok := object.(override.Object)
	if !ok {
		return nil
	}
	kinds := sets.New[string]()
	for _, selector := range policy.OverrideSpec().ResourceSelectors {
		kinds.Insert(loop.TemplateKindKey("", selector.APIVersion, selector.Kind))
	}
	if len(kinds) == 0 {
		return []string{anyKind}
	}
	return sets.List(kinds)
}

func attributeKeys(object client.Object) []string {
	policy, ok := object.(override.Object)
	if !ok {
		return nil
	}
	spec := policy.OverrideSpec()
	affinities := []*policyv1alpha1.ClusterAffinity{spec.TargetCluster}
	for _, rule := range spec.OverrideRules {
		affinities = append(affinities, rule.TargetCluster)
	}
	for _, affinity := range affinities {
		if affinity != nil && (affinity.LabelSelector != nil || affinity.FieldSelector != nil) {
			return []string{byAttributes}
		}
	}
	return nil
}
