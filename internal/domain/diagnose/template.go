package diagnose

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/domain/tenancy"
)

// checkTemplate checks that the template exists and can be propagated.
func checkTemplate(f *Facts) Link {
	link := Link{Stage: StageTemplate, Verdict: Failed}
	template := f.Template.Value
	switch {
	case f.Template.Err != nil:
		return unreadable(link, f.describeTemplate(), f.Template.Err)
	case template == nil:
		link.Reason = ReasonNotFound
		link.Message = f.describeTemplate() + " does not exist in the control plane"
		link.Remedy = "create the object in the control plane, or check its name and namespace"
	case template.GetDeletionTimestamp() != nil:
		link.Verdict, link.Reason = Pending, ReasonTerminating
		link.Message = fmt.Sprintf("%s is being deleted since %s; finalizers: %s", f.describeTemplate(),
			formatTime(template.GetDeletionTimestamp()), orNone(strings.Join(template.GetFinalizers(), ", ")))
	default:
		rules := tenancy.PropagationRules{APIs: tenancy.DefaultSkippedAPIs()}
		if refusal := rules.Check(f.Kind, f.Key); refusal != nil {
			link.Reason, link.Message = ReasonNeverPropagated, refusal.Error()
			return link
		}
		link.Verdict, link.Reason = OK, ReasonFound
		link.Message = f.describeTemplate() + describeReplicas(template)
	}
	return link
}

func describeReplicas(template *unstructured.Unstructured) string {
	replicas, found, err := unstructured.NestedInt64(template.Object, "spec", "replicas")
	if err != nil || !found {
		return ""
	}
	return fmt.Sprintf(" wants %s", count(replicas, "replica"))
}

// checkBinding checks that the template has a binding.
func checkBinding(f *Facts) Link {
	link := Link{Stage: StageBinding, Verdict: Failed}
	bound := f.Binding.Value
	if f.Binding.Err != nil {
		return unreadable(link, "the binding", f.Binding.Err)
	}
	if bound == nil {
		link.Verdict, link.Reason, link.Message = NotApplicable, ReasonNoBinding, "there is no binding"
		if _, claimed := policy.ClaimedBy(f.Template.Value); claimed && f.Template.Value.GetDeletionTimestamp() == nil {
			link.Verdict = Pending
			link.Message = "the policy claims the template, and there is no binding yet"
			link.Remedy = "kubectl describe " + f.kubectlTemplate()
		}
		return link
	}
	if err := policy.CheckBindingOwner(bound, f.Template.Value); err != nil {
		link.Reason, link.Message = ReasonNameCollision, err.Error()
		return link
	}
	kind := "ResourceBinding "
	if bound.GetNamespace() == "" {
		kind = "ClusterResourceBinding "
	}
	if bound.GetDeletionTimestamp() != nil {
		link.Verdict, link.Reason = Pending, ReasonTerminating
		link.Message = fmt.Sprintf("%s%s is being deleted since %s", kind, objectPath(bound), formatTime(bound.GetDeletionTimestamp()))
		return link
	}
	link.Verdict, link.Reason, link.Message = OK, ReasonBound, kind+objectPath(bound)
	return link
}

func unreadable(link Link, what string, err error) Link {
	link.Verdict, link.Reason = Unknown, ReasonUnreadable
	link.Message = fmt.Sprintf("%s could not be read: %v", what, err)
	return link
}

func objectPath(object metav1.Object) string {
	if object.GetNamespace() == "" {
		return object.GetName()
	}
	return object.GetNamespace() + "/" + object.GetName()
}
