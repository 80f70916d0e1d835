package admission

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// maxQuotaNameLength leaves the name fit for a label value: the Works of the
// quota are labelled with it.
const maxQuotaNameLength = validation.LabelValueMaxLength

func (r *report) federatedResourceQuota(quota *policyv1alpha1.FederatedResourceQuota) {
	if len(quota.Name) > maxQuotaNameLength {
		r.add(field.TooLong(field.NewPath("metadata", "name"), quota.Name, maxQuotaNameLength))
	}
	path := specPath()
	r.quotaList(path.Child("overall"), quota.Spec.Overall)
	r.assignments(path, &quota.Spec)
	r.quotaStatus(field.NewPath("status"), &quota.Status)
}

func (r *report) assignments(path *field.Path, spec *policyv1alpha1.FederatedResourceQuotaSpec) {
	assigned := corev1.ResourceList{}
	r.needsGate(path.Child("overall"), gateFederatedQuotaEnforcement, len(spec.StaticAssignments) == 0)
	for i, assignment := range spec.StaticAssignments {
		at := path.Child("staticAssignments").Index(i)
		r.clusterName(at.Child("clusterName"), assignment.ClusterName)
		r.quotaList(at.Child("hard"), assignment.Hard)
		for _, name := range sortedNames(assignment.Hard) {
			if _, limited := spec.Overall[name]; !limited {
				r.add(field.Invalid(at.Child("hard").Key(string(name)), string(name), "is not limited by overall; add it there"))
			}
			sum := assigned[name]
			sum.Add(assignment.Hard[name])
			assigned[name] = sum
		}
	}
	for _, name := range sortedNames(spec.Overall) {
		overall, sum := spec.Overall[name], assigned[name]
		if overall.Cmp(sum) < 0 {
			r.add(field.Invalid(path.Child("overall").Key(string(name)), overall.String(),
				"is less than the sum of the assignments, "+sum.String()))
		}
	}
}

func (r *report) quotaStatus(path *field.Path, status *policyv1alpha1.FederatedResourceQuotaStatus) {
	r.quotaList(path.Child("overall"), status.Overall)
	r.quotaList(path.Child("overallUsed"), status.OverallUsed)
	for i, item := range status.AggregatedStatus {
		at := path.Child("aggregatedStatus").Index(i)
		r.clusterName(at.Child("clusterName"), item.ClusterName)
		r.quotaList(at.Child("hard"), item.Hard)
		r.quotaList(at.Child("used"), item.Used)
	}
}

func (r *report) quotaList(path *field.Path, list corev1.ResourceList) {
	for _, name := range sortedNames(list) {
		at := path.Key(string(name))
		r.quotaResource(at, string(name))
		r.quotaQuantity(at, name, list[name])
	}
}

// quotaResource wants what a ResourceQuota takes: a name with a domain, or one
// of those that Kubernetes knows.
func (r *report) quotaResource(path *field.Path, name string) {
	if problems := validation.IsQualifiedName(name); len(problems) > 0 {
		r.invalid(path, name, problems)
		return
	}
	if !strings.Contains(name, "/") && !isMeasured(name) && !isCounted(name) {
		r.add(field.Invalid(path, name, "must be a standard resource for quota, or have a domain"))
	}
}

func (r *report) quotaQuantity(path *field.Path, name corev1.ResourceName, quantity resource.Quantity) {
	if quantity.Sign() < 0 {
		r.add(field.Invalid(path, quantity.String(), "must not be negative"))
	}
	// RoundUp is exact for any size, and says whether there was nothing to round.
	if rounded := quantity.DeepCopy(); isWhole(string(name)) && !rounded.RoundUp(0) {
		r.add(field.Invalid(path, quantity.String(), "must be an integer"))
	}
}

// isMeasured reports whether the resource comes in amounts: requests and limits
// of containers, and storage.
func isMeasured(name string) bool {
	if strings.HasPrefix(name, corev1.ResourceHugePagesPrefix) || strings.HasPrefix(name, corev1.ResourceRequestsHugePagesPrefix) {
		return true
	}
	switch corev1.ResourceName(name) {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage,
		corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory, corev1.ResourceRequestsStorage, corev1.ResourceRequestsEphemeralStorage,
		corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory, corev1.ResourceLimitsEphemeralStorage:
		return true
	}
	return false
}

// isCounted reports whether the resource is a number of objects.
func isCounted(name string) bool {
	switch corev1.ResourceName(name) {
	case corev1.ResourcePods, corev1.ResourceQuotas, corev1.ResourceServices, corev1.ResourceReplicationControllers,
		corev1.ResourceSecrets, corev1.ResourceConfigMaps, corev1.ResourcePersistentVolumeClaims,
		corev1.ResourceServicesNodePorts, corev1.ResourceServicesLoadBalancers:
		return true
	}
	return strings.HasPrefix(name, "count/")
}

// isWhole reports whether the resource comes in whole numbers: objects, and
// devices, which are the resources of domains other than Kubernetes' own.
func isWhole(name string) bool {
	if isCounted(name) {
		return true
	}
	return strings.Contains(name, "/") && !strings.Contains(name, corev1.ResourceDefaultNamespacePrefix) &&
		!strings.HasPrefix(name, corev1.DefaultResourceRequestsPrefix) &&
		len(validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+name)) == 0
}

// clusterName wants a name that a Cluster can have.
func (r *report) clusterName(path *field.Path, name string) {
	if len(name) > clusterv1alpha1.ClusterNameMaxLength {
		r.add(field.TooLong(path, name, clusterv1alpha1.ClusterNameMaxLength))
	}
	r.invalid(path, name, validation.IsDNS1123Label(name))
}

// canNameCluster reports whether there can be a cluster of that name.
func canNameCluster(name string) bool {
	return len(name) <= clusterv1alpha1.ClusterNameMaxLength && len(validation.IsDNS1123Label(name)) == 0
}

// sortedNames gives errors a stable order.
func sortedNames(list corev1.ResourceList) []corev1.ResourceName {
	return slices.Sorted(maps.Keys(list))
}
