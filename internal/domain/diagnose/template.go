package diagnose

import (
	"cmp"
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

// diagnoseTemplate checks that the template exists and may be propagated.
func (p *pipeline) diagnoseTemplate() []Link {
	link := Link{Stage: StageTemplate, Result: Failed}
	template := p.Template.Value
	switch {
	case p.Template.Err != nil:
		link = link.unreadable(p.describeTemplate(), p.Template.Err)
	case template == nil:
		link.Reason = ReasonNotFound
		link.Message = p.describeTemplate() + " does not exist in the control plane"
		link.Remedy = "create the object in the control plane, or check its name and namespace"
	case template.GetDeletionTimestamp() != nil:
		link.Result, link.Reason = Pending, ReasonTerminating
		link.Message = fmt.Sprintf("%s is being deleted since %s; finalizers: %s", p.describeTemplate(),
			formatTime(template.GetDeletionTimestamp()), cmp.Or(strings.Join(template.GetFinalizers(), ", "), "none"))
	default:
		rules := tenancy.PropagationRules{APIs: tenancy.DefaultSkippedAPIs()}
		if err := rules.Check(p.Kind, p.Key); err != nil {
			link.Reason, link.Message = ReasonNeverPropagated, err.Error()
			break
		}
		link.Result, link.Reason, link.Message = OK, ReasonFound, p.describeTemplate()
		if replicas, found, err := unstructured.NestedInt64(template.Object, "spec", "replicas"); err == nil && found {
			link.Message += " wants " + count(replicas, "replica")
		}
	}
	return []Link{link}
}

// diagnoseBinding checks that the template has a binding, and that the interpreter can read the template.
func (p *pipeline) diagnoseBinding() []Link {
	link := Link{Stage: StageBinding, Result: Failed}
	bound := p.Binding.Value
	if p.Binding.Err != nil {
		return []Link{link.unreadable("the binding", p.Binding.Err)}
	}
	if bound == nil {
		return []Link{p.explainMissingBinding(link)}
	}
	if err := policy.CheckBindingOwner(bound, p.Template.Value); err != nil {
		link.Reason, link.Message = ReasonNameCollision, err.Error()
		return []Link{link}
	}
	link.Result, link.Reason, link.Message = OK, ReasonBound, "ResourceBinding "+objectPath(bound)
	if !binding.IsNamespaced(bound) {
		link.Message = "ClusterResourceBinding " + bound.GetName()
	}
	if bound.GetDeletionTimestamp() != nil {
		link.Result, link.Reason = Pending, ReasonTerminating
		link.Message += " is being deleted since " + formatTime(bound.GetDeletionTimestamp())
		return []Link{link}
	}
	if link = link.withInterpretation(bound); link.Result != OK {
		return []Link{link}
	}
	if isBehind, err := policy.LacksTemplateState(bound, p.Template.Value); err == nil && isBehind {
		link.Result, link.Reason, link.Remedy = Pending, ReasonTemplateNotRecorded, "kubectl describe "+p.kubectlTemplate()
		link.Message += " does not have the latest change of the template yet: the members keep the state before it. If this lasts, " +
			"the events of the template explain why, for example because a FederatedResourceQuota is exceeded"
	}
	return []Link{link}
}

// explainMissingBinding returns the link of a template without a binding.
func (p *pipeline) explainMissingBinding(link Link) Link {
	link.Result, link.Reason, link.Message = NotApplicable, ReasonNoBinding, "there is no binding"
	if _, claimed := policy.ClaimedBy(p.Template.Value); !claimed || p.Template.Value.GetDeletionTimestamp() != nil {
		return link
	}
	if p.InterpretationErr != nil {
		link.Result, link.Reason, link.Remedy = Failed, workv1alpha2.InterpreterFailedReason, interpreterRemedy
		link.Message = fmt.Sprintf("there is no binding, because the replicas cannot be interpreted: %v", p.InterpretationErr)
		return link
	}
	link.Result, link.Remedy = Pending, "kubectl describe "+p.kubectlTemplate()
	link.Message = "the policy claims the template, and there is no binding yet"
	return link
}

// interpreterRemedy lists the objects whose scripts and webhooks interpret templates.
const interpreterRemedy = "kubectl get resourceinterpretercustomizations,resourceinterpreterwebhookconfigurations"

// withInterpretation returns the link with the first interpretation that failed. If none failed, it returns
// the link unchanged.
func (link Link) withInterpretation(bound binding.Object) Link {
	for _, conditionType := range []string{workv1alpha2.TemplateInterpreted, workv1alpha2.DependenciesInterpreted,
		workv1alpha2.StatusAggregated} {
		failed := conditions.Get(bound.BindingStatus().Conditions, conditionType)
		if failed == nil || failed.Status != metav1.ConditionFalse {
			continue
		}
		link.Result, link.Reason, link.Message, link.Remedy = Failed, failed.Reason, failed.Message, interpreterRemedy
		return link
	}
	return link
}

// unreadable returns the link for a fact that could not be read.
func (link Link) unreadable(what string, err error) Link {
	link.Result, link.Reason = Unknown, ReasonUnreadable
	link.Message = fmt.Sprintf("%s could not be read: %v", what, err)
	return link
}

// objectPath returns namespace/name, or only the name of a cluster-scoped object.
func objectPath(object metav1.Object) string {
	if object.GetNamespace() == "" {
		return object.GetName()
	}
	return object.GetNamespace() + "/" + object.GetName()
}
