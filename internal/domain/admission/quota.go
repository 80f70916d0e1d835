package admission

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

// maxQuotaNameLength is the maximum length of a label value, because the quota's Works have the quota's
// name as a label value.
const maxQuotaNameLength = validation.LabelValueMaxLength

func (r *report) validateFederatedResourceQuota(quota, old *policyv1alpha1.FederatedResourceQuota) {
	if len(quota.Name) > maxQuotaNameLength {
		r.addErrors(field.TooLong(field.NewPath("metadata", "name"), quota.Name, maxQuotaNameLength))
	}
	path := specPath()
	r.validateQuotaList(path.Child("overall"), quota.Spec.Overall)
	r.validateAssignments(path, &quota.Spec)
	r.validateQuotaStatus(field.NewPath("status"), &quota.Status)
	if len(r.errors) == 0 && (old == nil || !equality.Semantic.DeepEqual(old.Spec, quota.Spec)) {
		r.warnIneffectiveQuota(path, quota)
	}
}

// warnIneffectiveQuota warns about limits and assignments that have no effect, or a different effect than
// users expect.
func (r *report) warnIneffectiveQuota(path *field.Path, quota *policyv1alpha1.FederatedResourceQuota) {
	assigned, names := map[corev1.ResourceName]bool{}, make([]string, len(quota.Spec.StaticAssignments))
	for i, assignment := range quota.Spec.StaticAssignments {
		itemPath := path.Child("staticAssignments").Index(i).Child("clusterName")
		if slices.Contains(names[:i], assignment.ClusterName) {
			r.addWarning(itemPath, "has no effect: cluster %q already has an assignment", assignment.ClusterName)
		}
		names[i] = assignment.ClusterName
		for name := range assignment.Hard {
			assigned[name] = true
		}
	}
	r.warnUnknownClusters(path.Child("staticAssignments"), names)
	r.warnDisabledGate(path.Child("overall"), gateFederatedQuotaEnforcement, len(names) == 0)
	for _, name := range sortedNames(quota.Spec.Overall) {
		itemPath, limit, used := path.Child("overall").Key(string(name)), quota.Spec.Overall[name], quota.Status.OverallUsed[name]
		if !isRequestedByContainers(string(name)) && !assigned[name] {
			r.addWarning(itemPath, "limits nothing: only resources that workloads request, such as cpu and memory, are counted")
		}
		if used.Cmp(limit) > 0 {
			r.addWarning(itemPath, "%s is less than the current usage %s: nothing is evicted, but no workload can grow",
				limit.String(), used.String())
		}
	}
}

// isRequestedByContainers reports whether containers can request the resource under this name.
func isRequestedByContainers(name string) bool {
	return !isObjectCount(name) && !strings.HasPrefix(name, corev1.DefaultResourceRequestsPrefix) && !strings.HasPrefix(name, "limits.")
}

func (r *report) validateAssignments(path *field.Path, spec *policyv1alpha1.FederatedResourceQuotaSpec) {
	assigned := corev1.ResourceList{}
	for i, assignment := range spec.StaticAssignments {
		itemPath := path.Child("staticAssignments").Index(i)
		r.validateClusterName(itemPath.Child("clusterName"), assignment.ClusterName)
		r.validateQuotaList(itemPath.Child("hard"), assignment.Hard)
		for _, name := range sortedNames(assignment.Hard) {
			if _, limited := spec.Overall[name]; !limited {
				r.addErrors(field.Invalid(itemPath.Child("hard").Key(string(name)), string(name), "is not limited by overall; add it there"))
			}
			sum := assigned[name]
			sum.Add(assignment.Hard[name])
			assigned[name] = sum
		}
	}
	for _, name := range sortedNames(spec.Overall) {
		overall, sum := spec.Overall[name], assigned[name]
		if overall.Cmp(sum) < 0 {
			r.addErrors(field.Invalid(path.Child("overall").Key(string(name)), overall.String(),
				"is less than the sum of the assignments, "+sum.String()))
		}
	}
}

func (r *report) validateQuotaStatus(path *field.Path, status *policyv1alpha1.FederatedResourceQuotaStatus) {
	r.validateQuotaList(path.Child("overall"), status.Overall)
	r.validateQuotaList(path.Child("overallUsed"), status.OverallUsed)
	for i, item := range status.AggregatedStatus {
		itemPath := path.Child("aggregatedStatus").Index(i)
		r.validateClusterName(itemPath.Child("clusterName"), item.ClusterName)
		r.validateQuotaList(itemPath.Child("hard"), item.Hard)
		r.validateQuotaList(itemPath.Child("used"), item.Used)
	}
}

func (r *report) validateQuotaList(path *field.Path, list corev1.ResourceList) {
	for _, name := range sortedNames(list) {
		itemPath := path.Key(string(name))
		r.validateQuotaResource(itemPath, string(name))
		r.validateQuotaQuantity(itemPath, name, list[name])
	}
}

// validateQuotaResource validates a resource name by the rules of ResourceQuota: the name must have a
// domain, or be one of Kubernetes' standard resources.
func (r *report) validateQuotaResource(path *field.Path, name string) {
	if problems := validation.IsQualifiedName(name); len(problems) > 0 {
		r.addInvalid(path, name, problems)
		return
	}
	if !strings.Contains(name, "/") && !isComputeResource(name) && !isObjectCount(name) {
		r.addErrors(field.Invalid(path, name, "must be a standard resource for quota, or have a domain"))
	}
}

func (r *report) validateQuotaQuantity(path *field.Path, name corev1.ResourceName, quantity resource.Quantity) {
	if quantity.Sign() < 0 {
		r.addErrors(field.Invalid(path, quantity.String(), "must not be negative"))
	}
	// RoundUp returns true if the quantity was an integer. It is exact for quantities of any size.
	if rounded := quantity.DeepCopy(); isInteger(string(name)) && !rounded.RoundUp(0) {
		r.addErrors(field.Invalid(path, quantity.String(), "must be an integer"))
	}
}

// isComputeResource reports whether the name is one of the containers' compute or storage resources, or
// the requests or limits of such a resource.
func isComputeResource(name string) bool {
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

func isObjectCount(name string) bool {
	switch corev1.ResourceName(name) {
	case corev1.ResourcePods, corev1.ResourceQuotas, corev1.ResourceServices, corev1.ResourceReplicationControllers,
		corev1.ResourceSecrets, corev1.ResourceConfigMaps, corev1.ResourcePersistentVolumeClaims,
		corev1.ResourceServicesNodePorts, corev1.ResourceServicesLoadBalancers:
		return true
	}
	return strings.HasPrefix(name, "count/")
}

// isInteger reports whether the resource's quantities must be integers. This applies to object counts
// and to extended resources, which have a domain other than that of Kubernetes.
func isInteger(name string) bool {
	if isObjectCount(name) {
		return true
	}
	return strings.Contains(name, "/") && !strings.Contains(name, corev1.ResourceDefaultNamespacePrefix) &&
		!strings.HasPrefix(name, corev1.DefaultResourceRequestsPrefix) &&
		len(validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+name)) == 0
}

// validateClusterName validates that a Cluster can have the given name.
func (r *report) validateClusterName(path *field.Path, name string) {
	if len(name) > clusterv1alpha1.ClusterNameMaxLength {
		r.addErrors(field.TooLong(path, name, clusterv1alpha1.ClusterNameMaxLength))
	}
	r.addInvalid(path, name, validation.IsDNS1123Label(name))
}

// isValidClusterName reports whether a Cluster can have the given name.
func isValidClusterName(name string) bool {
	return len(name) <= clusterv1alpha1.ClusterNameMaxLength && len(validation.IsDNS1123Label(name)) == 0
}

// sortedNames returns the resource names in a stable order for error messages.
func sortedNames(list corev1.ResourceList) []corev1.ResourceName {
	return slices.Sorted(maps.Keys(list))
}
