package diagnose

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/conditions"
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
			if f.Interpretation != nil {
				link.Verdict, link.Reason = Failed, workv1alpha2.InterpreterFailedReason
				link.Message = fmt.Sprintf("there is no binding, because the replicas cannot be interpreted: %v", f.Interpretation)
				link.Remedy = remedyOfInterpreter
			}
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
	return withInterpretation(link, bound)
}

// remedyOfInterpreter lists the objects whose scripts and webhooks interpret templates.
const remedyOfInterpreter = "kubectl get resourceinterpretercustomizations,resourceinterpreterwebhookconfigurations"

// withInterpretation returns the link with the first interpretation that failed, or the link itself
// if none failed.
func withInterpretation(link Link, bound binding.Object) Link {
	for _, conditionType := range []string{workv1alpha2.TemplateInterpreted, workv1alpha2.DependenciesInterpreted, workv1alpha2.StatusAggregated} {
		failed := conditions.Get(bound.BindingStatus().Conditions, conditionType)
		if failed == nil || failed.Status != metav1.ConditionFalse {
			continue
		}
		link.Verdict, link.Reason, link.Message, link.Remedy = Failed, failed.Reason, failed.Message, remedyOfInterpreter
		return link
	}
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
