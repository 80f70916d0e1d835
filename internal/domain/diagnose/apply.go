package diagnose

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

// rejection is a class of errors with which a member rejects a manifest.
type rejection struct {
	reason string
	// pattern matches the condition's message, which contains the error text of the member.
	pattern *regexp.Regexp
	// remedy is a format string for the name of the cluster.
	remedy string
}

// rejections returns all classes. The first class that matches applies.
func rejections() []rejection {
	return []rejection{
		{ReasonConflict, regexp.MustCompile(`already exists in the cluster`),
			"delete the object in cluster %s, or permit the takeover with conflictResolution: Overwrite in the policy"},
		{ReasonNamespaceTerminates, regexp.MustCompile(`because it is being terminated|is being terminated`),
			"wait until the namespace is deleted in cluster %s; then Karmada creates it again"},
		{ReasonNamespaceMissing, regexp.MustCompile(`namespaces "[^"]*" not found`),
			"create the namespace in the control plane, so that Karmada creates it in cluster %s"},
		{ReasonQuotaExceeded, regexp.MustCompile(`exceeded quota`),
			"raise the ResourceQuota in cluster %s, or lower the replicas or their requests"},
		{ReasonAdmissionDenied, regexp.MustCompile(`admission webhook "[^"]*"|denied request|violates PodSecurity|failed calling webhook`),
			"change the template as cluster %s requires, or the admission policy of that cluster"},
		{ReasonAPINotServed, regexp.MustCompile(`no matches for kind|could not find the requested resource`),
			"install the CustomResourceDefinition in cluster %s: propagate it with a policy"},
		{ReasonInvalid, regexp.MustCompile(`field is immutable|is invalid:`),
			"change the field that the message names for cluster %s: in the template, or with an override policy"},
	}
}

// explainRejection describes why the member rejects the Work.
func (c *clusterFacts) explainRejection(link Link, applied *metav1.Condition) Link {
	link.Reason, link.Message = applied.Reason, applied.Message
	link.Remedy = "kubectl describe " + kubectlWork(c.work)
	if applied.Reason == workv1alpha1.WorkMemberForbidsReason {
		link.Remedy = fmt.Sprintf("grant Karmada the permission that the message names in cluster %s", c.name)
		return link
	}
	for _, class := range rejections() {
		if class.pattern.MatchString(applied.Message) {
			link.Reason, link.Remedy = class.reason, fmt.Sprintf(class.remedy, c.name)
			break
		}
	}
	return c.withNamespaceState(link)
}

// withNamespaceState returns the link with another reason if the namespace is missing in the member or is being
// deleted.
func (c *clusterFacts) withNamespaceState(link Link) Link {
	if !c.observed.HasNamespace || c.observed.Namespace.Err != nil || c.Key.Namespace == "" {
		return link
	}
	namespace := c.observed.Namespace.Value
	switch {
	case namespace == nil:
		link.Reason = ReasonNamespaceMissing
		link.Message = fmt.Sprintf("namespace %s does not exist in cluster %s: %s", c.Key.Namespace, c.name, link.Message)
	case namespace.DeletionTimestamp != nil || namespace.Status.Phase == corev1.NamespaceTerminating:
		link.Reason = ReasonNamespaceTerminates
		link.Message = fmt.Sprintf("namespace %s is being deleted in cluster %s%s: %s", c.Key.Namespace, c.name, describeRemaining(namespace),
			link.Message)
	default:
		return link
	}
	for _, class := range rejections() {
		if class.reason == link.Reason {
			link.Remedy = fmt.Sprintf(class.remedy, c.name)
		}
	}
	return link
}

// describeRemaining returns the messages of a terminating namespace about its remaining content.
func describeRemaining(namespace *corev1.Namespace) string {
	var texts []string
	for i := range namespace.Status.Conditions {
		condition := &namespace.Status.Conditions[i]
		if condition.Status == corev1.ConditionTrue && condition.Message != "" {
			texts = append(texts, condition.Message)
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return " (" + strings.Join(texts, "; ") + ")"
}
