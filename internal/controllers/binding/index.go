package binding

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/override"
	"karmada.io/karmada/internal/domain/tenancy"
)

// Fields by which the caches are indexed, so that the cost grows with the size of a change.
const (
	// bindingIDField of a Work is the permanent ID of its binding.
	bindingIDField = Name + "/binding-id"
	// bindingKeyField of a Work is the namespace and name of its binding.
	bindingKeyField = Name + "/binding-key"
	// templateField of a binding is the kind and namespace of its template: the keys of
	// kindKey and namespaceKey.
	templateField = Name + "/template"
	// targetField of a binding is the name of each target cluster.
	targetField = Name + "/target"
	// selectedKindField of a ClusterOverridePolicy is each kind that it selects, or anyKind.
	selectedKindField = Name + "/selected-kind"
	// attributesField of an override policy is byAttributes when it selects clusters by
	// attributes that can change.
	attributesField = Name + "/cluster-attributes"
	// credentialsField of a Cluster is each Secret with its credentials.
	credentialsField = Name + "/credentials"
)

const (
	anyKind      = "*"
	byAttributes = "true"
)

// kindKey is the key of the templates of a kind in a namespace, or in all namespaces if that
// is empty.
func kindKey(namespace, apiVersion, kind string) string {
	return namespace + "|" + apiVersion + "|" + kind
}

// namespaceKey is the key of the templates in a namespace.
func namespaceKey(namespace string) string { return namespace + "|" }

func indexFields(indexer client.FieldIndexer) error {
	indices := []struct {
		object client.Object
		field  string
		values client.IndexerFunc
	}{
		{&workv1alpha1.Work{}, bindingIDField, bindingIDs},
		{&workv1alpha1.Work{}, bindingKeyField, bindingKeys},
		{&workv1alpha2.ResourceBinding{}, templateField, templateKeys},
		{&workv1alpha2.ClusterResourceBinding{}, templateField, templateKeys},
		{&workv1alpha2.ResourceBinding{}, targetField, targetNames},
		{&workv1alpha2.ClusterResourceBinding{}, targetField, targetNames},
		{&policyv1alpha1.ClusterOverridePolicy{}, selectedKindField, selectedKinds},
		{&policyv1alpha1.ClusterOverridePolicy{}, attributesField, attributeKeys},
		{&policyv1alpha1.OverridePolicy{}, attributesField, attributeKeys},
		{&clusterv1alpha1.Cluster{}, credentialsField, credentialKeys},
	}
	for _, i := range indices {
		if err := indexer.IndexField(context.Background(), i.object, i.field, i.values); err != nil {
			return fmt.Errorf("indexing %T by %s: %w", i.object, i.field, err)
		}
	}
	return nil
}

func bindingIDs(object client.Object) []string {
	var ids []string
	for _, label := range []string{workv1alpha2.ResourceBindingPermanentIDLabel, workv1alpha2.ClusterResourceBindingPermanentIDLabel} {
		if id := object.GetLabels()[label]; id != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

func bindingKeys(object client.Object) []string {
	var keys []string
	for _, namespaced := range []bool{true, false} {
		if key, ok := binding.ReferencedBinding(object, namespaced); ok {
			keys = append(keys, key.String())
		}
	}
	return keys
}

func templateKeys(object client.Object) []string {
	bound, ok := object.(binding.Object)
	if !ok {
		return nil
	}
	ref := bound.BindingSpec().Resource
	keys := []string{kindKey("", ref.APIVersion, ref.Kind)}
	if ref.Namespace != "" {
		keys = append(keys, kindKey(ref.Namespace, ref.APIVersion, ref.Kind), namespaceKey(ref.Namespace))
	}
	return keys
}

func targetNames(object client.Object) []string {
	bound, ok := object.(binding.Object)
	if !ok {
		return nil
	}
	var names []string
	for _, target := range binding.TargetClusters(bound.BindingSpec()) {
		names = append(names, target.Name)
	}
	return names
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
		kinds.Insert(kindKey("", selector.APIVersion, selector.Kind))
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
