package loop

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/dependency"
)

// Indexes that several controllers read, or that functions of this package read for them.
var (
	// WorksByBindingID finds the Works with the permanent ID of a binding. ListWorksOfBinding reads this
	// index.
	WorksByBindingID = Index{Name: "works/binding-id", Types: indexedWorks, Keys: bindingIDs}
	// WorksByBinding finds the Works whose annotations name a binding. Its keys come from
	// binding.ReferenceKey.
	WorksByBinding = Index{Name: "works/binding", Types: indexedWorks, Keys: bindingKeys}
	// WorksByQuota finds the Works that contain the ResourceQuotas of a FederatedResourceQuota, by the
	// namespace and name of the FederatedResourceQuota. QuotaOfWork returns its keys.
	WorksByQuota = Index{Name: "works/quota", Types: indexedWorks, Keys: quotaKeys}
	// BindingsByCluster finds the bindings that are scheduled to a cluster or evicted from it.
	BindingsByCluster = Index{Name: "bindings/cluster", Types: indexedBindings, Keys: clustersOf}
	// BindingsByTarget finds the bindings that need a Work in a cluster: the cluster is a target of
	// the binding, or of another binding that requires this binding as a dependency.
	BindingsByTarget = Index{Name: "bindings/target", Types: indexedBindings, Keys: targetsOf}
	// BindingsByTemplate finds the bindings of templates by the kind or the namespace of the
	// template. TemplateKindKey and TemplateNamespaceKey return its keys.
	BindingsByTemplate = Index{Name: "bindings/template", Types: indexedBindings, Keys: templateKeys}
	// BindingsByDependent finds the bindings of the dependencies of a binding, by the
	// namespace and name of that binding.
	BindingsByDependent = Index{Name: "bindings/dependent", Types: indexedBindings, Keys: dependentsOf}
	// BindingsByPolicy finds the bindings that a policy claims, by the permanent ID of the policy.
	BindingsByPolicy = Index{Name: "bindings/policy", Types: indexedBindings, Keys: policyIDs}
)

var (
	indexedWorks    = []client.Object{&workv1alpha1.Work{}}
	indexedBindings = []client.Object{binding.New(true), binding.New(false)}
)

// TemplateKindKey returns the key of BindingsByTemplate for the templates of a kind in a namespace, or
// in all namespaces if the namespace is empty.
func TemplateKindKey(namespace, apiVersion, kind string) string {
	return namespace + "|" + apiVersion + "|" + kind
}

// TemplateNamespaceKey returns the key of BindingsByTemplate for the templates in a namespace.
func TemplateNamespaceKey(namespace string) string { return namespace + "|" }

// bindingIDs returns index keys that contain the name of the ID label, because a ResourceBinding
// and a ClusterResourceBinding may have the same ID.
func bindingIDs(object client.Object) []string {
	var ids []string
	for _, label := range []string{workv1alpha2.ResourceBindingPermanentIDLabel, workv1alpha2.ClusterResourceBindingPermanentIDLabel} {
		if id := object.GetLabels()[label]; id != "" {
			ids = append(ids, bindingIDKey(label, id))
		}
	}
	return ids
}

func bindingIDKey(label, id string) string { return label + "=" + id }

func bindingKeys(object client.Object) []string {
	var keys []string
	for _, namespaced := range []bool{true, false} {
		if key, ok := binding.ReferencedBinding(object, namespaced); ok {
			keys = append(keys, key.String())
		}
	}
	return keys
}

// QuotaOfWork returns the FederatedResourceQuota whose ResourceQuota a Work contains.
func QuotaOfWork(karmadaWork client.Object) (types.NamespacedName, bool) {
	labels := karmadaWork.GetLabels()
	key := types.NamespacedName{
		Namespace: labels[policyv1alpha1.FederatedResourceQuotaNamespaceLabel], Name: labels[policyv1alpha1.FederatedResourceQuotaNameLabel],
	}
	return key, key.Namespace != "" && key.Name != ""
}

func quotaKeys(object client.Object) []string {
	if key, ok := QuotaOfWork(object); ok {
		return []string{key.String()}
	}
	return nil
}

// clustersOf returns the clusters to which a binding is scheduled or from which it is evicted,
// without duplicates.
func clustersOf(object client.Object) []string {
	bound, ok := object.(binding.Object)
	if !ok {
		return nil
	}
	spec := bound.BindingSpec()
	names := make([]string, 0, len(spec.Clusters)+len(spec.GracefulEvictionTasks))
	for i := range spec.Clusters {
		names = append(names, spec.Clusters[i].Name)
	}
	for i := range spec.GracefulEvictionTasks {
		names = append(names, spec.GracefulEvictionTasks[i].FromCluster)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func targetsOf(object client.Object) []string {
	bound, ok := object.(binding.Object)
	if !ok {
		return nil
	}
	targets := binding.TargetClusters(bound.BindingSpec())
	names := make([]string, 0, len(targets))
	for _, target := range targets {
		names = append(names, target.Name)
	}
	return names
}

func templateKeys(object client.Object) []string {
	bound, ok := object.(binding.Object)
	if !ok {
		return nil
	}
	template := bound.BindingSpec().Resource
	keys := []string{TemplateKindKey("", template.APIVersion, template.Kind)}
	if template.Namespace != "" {
		keys = append(keys, TemplateKindKey(template.Namespace, template.APIVersion, template.Kind), TemplateNamespaceKey(template.Namespace))
	}
	return keys
}

func dependentsOf(object client.Object) []string {
	bound, ok := object.(binding.Object)
	if !ok {
		return nil
	}
	snapshots := bound.BindingSpec().RequiredBy
	keys := make([]string, 0, len(snapshots))
	for _, snapshot := range snapshots {
		keys = append(keys, dependency.DependentKey(snapshot).String())
	}
	return keys
}

func policyIDs(object client.Object) []string {
	var ids []string
	for _, label := range []string{policyv1alpha1.PropagationPolicyPermanentIDLabel, policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel} {
		if id := object.GetLabels()[label]; id != "" {
			ids = append(ids, id)
		}
	}
	return ids
}
