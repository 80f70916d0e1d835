package agent

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// These constants limit the status that an agent reports. Each limit is far above the values of the
// largest clusters. Together the limits keep a Cluster below the size limit of etcd.
const (
	// MaxNodes is the largest number of nodes of a cluster.
	MaxNodes = 1_000_000
	// MaxGroupVersions and MaxAPIs limit status.apiEnablements.
	MaxGroupVersions = 2_000
	MaxAPIs          = 20_000
	// MaxResources limits each list of status.resourceSummary, and its modelings.
	MaxResources = 256
	// maxNameBytes limits the names of groups, resources, kinds and versions.
	maxNameBytes = 320
	// maxReasonBytes and maxMessageBytes are the limits of Kubernetes for the reason and the
	// message of any condition.
	maxReasonBytes, maxMessageBytes = 1024, 32768
)

// ReportedConditions returns the types of a Cluster's conditions that its agent writes, or that another
// component in the cluster writes with the agent's credentials.
func ReportedConditions() []string {
	return []string{
		clusterv1alpha1.ClusterConditionReady, clusterv1alpha1.ClusterConditionResponding, clusterv1alpha1.ClusterConditionCompleteAPIEnablements,
		clusterv1alpha1.ClusterConditionCredentialsValid, clusterv1alpha1.ClusterConditionIdentityMismatch,
		clusterv1alpha1.ClusterConditionWithinBounds, clusterv1alpha1.ServiceDomainNameResolutionReady,
	}
}

// ValidateStatus returns an error for each invalid field in a Cluster's status that an agent writes. It
// validates only fields that the agent changes, so that an invalid stored status does not block the agent.
// It accepts other users' writes.
func ValidateStatus(user string, written, stored *clusterv1alpha1.Cluster) field.ErrorList {
	if !IsAgent(user) {
		return nil
	}
	path := field.NewPath("status")
	if own, ok := ClusterOf(user); !ok || written.Name != own {
		return field.ErrorList{field.Forbidden(field.NewPath("metadata", "name"),
			fmt.Sprintf("user %s may report on its own Cluster only", user))}
	}
	after, before := &written.Status, &stored.Status
	errs := validateConditions(after.Conditions, before.Conditions, path.Child("conditions"))
	if after.KubernetesVersion != before.KubernetesVersion && len(after.KubernetesVersion) > maxNameBytes {
		errs = append(errs, field.TooLong(path.Child("kubernetesVersion"), "", maxNameBytes))
	}
	if !equality.Semantic.DeepEqual(after.RemedyActions, before.RemedyActions) {
		errs = append(errs, field.Forbidden(path.Child("remedyActions"),
			"the control plane sets it according to the Remedies; keep the stored value"))
	}
	if !equality.Semantic.DeepEqual(after.APIEnablements, before.APIEnablements) {
		errs = append(errs, validateEnablements(after.APIEnablements, path.Child("apiEnablements"))...)
	}
	if !equality.Semantic.DeepEqual(after.NodeSummary, before.NodeSummary) {
		errs = append(errs, validateNodes(after.NodeSummary, path.Child("nodeSummary"))...)
	}
	if !equality.Semantic.DeepEqual(after.ResourceSummary, before.ResourceSummary) {
		errs = append(errs, validateResources(after.ResourceSummary, path.Child("resourceSummary"))...)
	}
	return errs
}

func validateConditions(after, before []metav1.Condition, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, condition := range after {
		at := path.Index(i)
		if seen[condition.Type] {
			errs = append(errs, field.Duplicate(at.Child("type"), shortened(condition.Type)))
		}
		seen[condition.Type] = true
		if !slices.ContainsFunc(before, func(c metav1.Condition) bool { return equality.Semantic.DeepEqual(c, condition) }) {
			errs = append(errs, validateCondition(&condition, at)...)
		}
	}
	for _, condition := range before {
		if !seen[condition.Type] && !slices.Contains(ReportedConditions(), condition.Type) {
			errs = append(errs, field.Forbidden(path.Key(condition.Type), "the control plane sets this condition; keep the stored value"))
		}
	}
	return errs
}

func validateCondition(condition *metav1.Condition, path *field.Path) field.ErrorList {
	if !slices.Contains(ReportedConditions(), condition.Type) {
		return field.ErrorList{field.NotSupported(path.Child("type"), shortened(condition.Type), ReportedConditions())}
	}
	var errs field.ErrorList
	if statuses := []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}; !slices.Contains(statuses,
		condition.Status) {
		errs = append(errs, field.NotSupported(path.Child("status"), metav1.ConditionStatus(shortened(string(condition.Status))), statuses))
	}
	if len(condition.Reason) > maxReasonBytes {
		errs = append(errs, field.TooLong(path.Child("reason"), "", maxReasonBytes))
	}
	if len(condition.Message) > maxMessageBytes {
		errs = append(errs, field.TooLong(path.Child("message"), "", maxMessageBytes))
	}
	return errs
}

func validateEnablements(enablements []clusterv1alpha1.APIEnablement, path *field.Path) field.ErrorList {
	if len(enablements) > MaxGroupVersions {
		return field.ErrorList{field.TooMany(path, len(enablements), MaxGroupVersions)}
	}
	var errs field.ErrorList
	total := 0
	for i, version := range enablements {
		at := path.Index(i)
		if total += len(version.Resources); total > MaxAPIs {
			return append(errs, field.TooMany(at.Child("resources"), total, MaxAPIs))
		}
		if len(version.GroupVersion) > maxNameBytes {
			errs = append(errs, field.TooLong(at.Child("groupVersion"), "", maxNameBytes))
		}
		if slices.ContainsFunc(version.Resources, func(r clusterv1alpha1.APIResource) bool {
			return len(r.Name) > maxNameBytes || len(r.Kind) > maxNameBytes
		}) {
			errs = append(errs, field.TooLong(at.Child("resources"), "", maxNameBytes))
		}
	}
	return errs
}

func validateNodes(nodes *clusterv1alpha1.NodeSummary, path *field.Path) field.ErrorList {
	if nodes == nil {
		return nil
	}
	return append(validateCount(int64(nodes.TotalNum), path.Child("totalNum")),
		validateCount(int64(nodes.ReadyNum), path.Child("readyNum"))...)
}

func validateResources(summary *clusterv1alpha1.ResourceSummary, path *field.Path) field.ErrorList {
	if summary == nil {
		return nil
	}
	errs := validateQuantities(summary.Allocatable, path.Child("allocatable"))
	errs = append(errs, validateQuantities(summary.Allocating, path.Child("allocating"))...)
	errs = append(errs, validateQuantities(summary.Allocated, path.Child("allocated"))...)
	return append(errs, validateModelings(summary.AllocatableModelings, path.Child("allocatableModelings"))...)
}

func validateQuantities(list corev1.ResourceList, path *field.Path) field.ErrorList {
	if len(list) > MaxResources {
		return field.ErrorList{field.TooMany(path, len(list), MaxResources)}
	}
	names := make([]string, 0, len(list))
	for name := range list {
		names = append(names, string(name))
	}
	slices.Sort(names)
	var errs field.ErrorList
	for _, name := range names {
		quantity := list[corev1.ResourceName(name)]
		if len(name) > maxNameBytes {
			errs = append(errs, field.TooLong(path, "", maxNameBytes))
		}
		if quantity.Sign() < 0 {
			errs = append(errs, field.Invalid(path.Key(shortened(name)), quantity.String(), "a cluster has 0 or more of a resource"))
		}
	}
	return errs
}

func validateModelings(modelings []clusterv1alpha1.AllocatableModeling, path *field.Path) field.ErrorList {
	if len(modelings) > MaxResources {
		return field.ErrorList{field.TooMany(path, len(modelings), MaxResources)}
	}
	var errs field.ErrorList
	seen := map[uint]bool{}
	for i, modeling := range modelings {
		if seen[modeling.Grade] {
			errs = append(errs, field.Duplicate(path.Index(i).Child("grade"), modeling.Grade))
		}
		seen[modeling.Grade] = true
		errs = append(errs, validateCount(int64(modeling.Count), path.Index(i).Child("count"))...)
	}
	return errs
}

func validateCount(count int64, path *field.Path) field.ErrorList {
	if count < 0 || count > MaxNodes {
		return field.ErrorList{field.Invalid(path, count, fmt.Sprintf("a cluster has 0 to %d nodes", MaxNodes))}
	}
	return nil
}

// shortened returns the beginning of a text from an agent, for use in a message.
func shortened(text string) string { return text[:min(len(text), 63)] }
