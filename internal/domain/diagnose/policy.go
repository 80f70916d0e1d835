package diagnose

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/override"
	"karmada.io/karmada/internal/domain/policy"
)

const (
	// maxNearMisses limits how many policies that nearly select the template a message names.
	maxNearMisses = 3
	// maxOtherPolicies limits how many further matching policies a message names.
	maxOtherPolicies = 3
)

// diagnosePolicy checks that a policy claims the template.
func (p *pipeline) diagnosePolicy() []Link {
	return []Link{p.explainDecision(Link{Stage: StagePolicy, Result: Failed})}
}

// explainDecision describes the detector's decision about the template.
func (p *pipeline) explainDecision(link Link) Link {
	if p.Policies.Err != nil {
		return link.unreadable("the policies", p.Policies.Err)
	}
	template := p.Template.Value
	index := policy.NewIndex()
	for _, each := range p.Policies.Value {
		index.Put(each)
	}
	switch decision := policy.Decide(template, index).(type) {
	case policy.IgnoreTemplate:
		link.Result, link.Reason = NotApplicable, ReasonCreatedByDistributor
		link.Message = "the object belongs to a controller of Karmada that distributes it without a policy: label " +
			workv1alpha2.ResourceTemplateClaimedByLabel + "=" + template.GetLabels()[workv1alpha2.ResourceTemplateClaimedByLabel]
		return link
	case policy.WaitForPolicy:
		return p.explainNoPolicy(link)
	case policy.ReleaseClaim:
		link.Result, link.Reason = Pending, ReasonPolicyGone
		link.Message = fmt.Sprintf("%s claims the template, but does not exist or does not select the template any more",
			decision.Claim.DisplayName())
		link.Remedy = "correct the resourceSelectors of the policy, or create a policy that selects the template"
		return link
	case policy.RetryLater:
		return p.explainRetry(link, decision.Err)
	case policy.ApplyPolicy:
		return p.explainClaim(link, decision.Policy)
	}
	return link
}

// explainNoPolicy describes a template that no policy selects.
func (p *pipeline) explainNoPolicy(link Link) Link {
	template := p.Template.Value
	link.Reason = ReasonNoPolicyMatches
	bound := p.Binding.Value
	if p.ownsBinding() && len(bound.BindingSpec().RequiredBy) > 0 {
		link.Result, link.Reason = OK, ReasonAttached
		link.Message = "no policy selects it: it follows its dependents " + DescribeDependents(bound.BindingSpec().RequiredBy)
		return link
	}
	if owner := metav1.GetControllerOf(template); owner != nil {
		link.Result, link.Reason = NotApplicable, ReasonManagedByController
		link.Message = fmt.Sprintf("no policy selects it: %s %s created it", owner.Kind, owner.Name)
		link.Remedy = fmt.Sprintf("propagate %s %s", owner.Kind, owner.Name)
		return link
	}
	link.Message = "no policy selects it"
	for _, miss := range policy.NearMisses(template, p.Policies.Value, p.isServed, maxNearMisses) {
		link.Message += fmt.Sprintf("; %s nearly does: %s", policy.DisplayName(miss.Policy), strings.Join(miss.Differences, "; "))
	}
	link.Remedy = "correct the resourceSelectors of a policy, or create a policy that selects the template"
	if p.ownsBinding() && policy.IsReleased(bound) {
		link.Message += fmt.Sprintf("; the policy that claimed it was deleted or no longer selects it, and binding %s is kept unchanged",
			objectPath(bound))
	}
	return link
}

// maxDependents limits how many dependents a message names.
const maxDependents = 3

// DescribeDependents lists the bindings whose clusters an attached binding follows.
func DescribeDependents(snapshots []workv1alpha2.BindingSnapshot) string {
	names := make([]string, 0, len(snapshots))
	for i := range snapshots {
		names = append(names, strings.TrimPrefix(snapshots[i].Namespace+"/"+snapshots[i].Name, "/"))
	}
	slices.Sort(names)
	named := min(len(names), maxDependents)
	return JoinLimited(names[:named], len(names)-named)
}

// explainRetry describes a policy that cannot claim the template now.
func (p *pipeline) explainRetry(link Link, err error) Link {
	link.Message = err.Error()
	switch {
	case errors.Is(err, policy.ErrTerminating):
		link.Result, link.Reason = Pending, ReasonPolicyTerminating
	case errors.Is(err, policy.ErrNoPermanentID):
		link.Reason = ReasonNoPermanentID
		link.Remedy = "check the admission webhook of Karmada, and create the policy again"
	default:
		link.Result, link.Reason = Unknown, ReasonUnreadable
		link.Remedy = "kubectl describe " + p.kubectlTemplate()
	}
	return link
}

// explainClaim checks that the chosen policy has claimed the template and takes effect.
func (p *pipeline) explainClaim(link Link, chosen policy.Object) Link {
	claim, claimed := policy.ClaimedBy(p.Template.Value)
	link.Message = policy.DisplayName(chosen)
	if err := p.verifyDependentOverrides(chosen); err != nil {
		var missing *policy.MissingOverridesError
		if !errors.As(err, &missing) {
			return link.unreadable("the override policies that "+policy.DisplayName(chosen)+" depends on", err)
		}
		link.Result, link.Reason = Pending, ReasonOverridesMissing
		link.Message += " is " + missing.Error()
		link.Remedy = "create the override policies, or remove them from dependentOverrides of the policy"
		return link
	}
	switch {
	case p.isWaitingForChange(chosen):
		link.Result, link.Reason = Pending, ReasonLazyPolicyWaits
		link.Message += " is Lazy: it takes effect at the next change of the template"
		link.Remedy = "change the template, or set activationPreference of the policy to \"\""
	case !claimed:
		link.Result, link.Reason = Pending, ReasonNotClaimed
		link.Message += " selects the template, and has not claimed it yet"
		link.Remedy = "check that karmada-controller-manager runs; kubectl describe " + p.kubectlTemplate()
	default:
		link.Result, link.Reason = OK, ReasonClaimed
		p.addOtherPolicies(&link, claim, chosen)
	}
	return link
}

// verifyDependentOverrides returns an error if an override policy on which the chosen policy depends does
// not exist.
func (p *pipeline) verifyDependentOverrides(chosen policy.Object) error {
	if len(policy.DependentOverrides(chosen)) == 0 {
		return nil
	}
	if p.Overrides.Err != nil {
		return p.Overrides.Err
	}
	return policy.CheckDependentOverrides(chosen, func(name types.NamespacedName) bool {
		return slices.ContainsFunc(p.Overrides.Value, func(each override.Object) bool {
			return each.GetNamespace() == name.Namespace && each.GetName() == name.Name
		})
	})
}

// isWaitingForChange reports whether the chosen policy is Lazy and waits for a change of the template,
// because the binding does not exist yet or has other settings than the policy.
func (p *pipeline) isWaitingForChange(chosen policy.Object) bool {
	if !policy.IsLazy(chosen) || p.Binding.Err != nil {
		return false
	}
	bound := p.Binding.Value
	var metadata metav1.Object // an untyped nil if there is no binding
	if bound != nil {
		metadata = bound
		claim, _ := policy.ClaimedBy(bound)
		if claim == policy.ClaimOf(chosen) && equality.Semantic.DeepEqual(bound.BindingSpec().Placement, &chosen.PropagationSpec().Placement) {
			return false
		}
	}
	activation, err := policy.DecideActivation(chosen, p.Template.Value, metadata, policy.PolicyChanged)
	return err == nil && activation.Deferred
}

// addOtherPolicies adds the other policies that select the template to the link.
func (p *pipeline) addOtherPolicies(link *Link, claim policy.Claim, chosen policy.Object) {
	unclaimed := p.Template.Value.DeepCopy()
	claim.Remove(unclaimed)
	best := policy.Best(unclaimed, p.Policies.Value)
	if best != nil && !claim.MatchesPolicy(best) {
		link.Reason = ReasonClaimedByOther
		link.Message += fmt.Sprintf(" claims it; %s has precedence for new objects, but does not take this one over", policy.DisplayName(best))
		link.Remedy = fmt.Sprintf("if %s should apply: set preemption: Always in it (needs the feature gate PropagationPolicyPreemption, a name in its selector and a higher priority), or change %s so that it does not select the object",
			policy.DisplayName(best), policy.DisplayName(chosen))
		return
	}
	var others []string
	for _, each := range p.Policies.Value {
		inScope := policy.IsCluster(each) || each.GetNamespace() == p.Key.Namespace
		if inScope && !claim.MatchesPolicy(each) && policy.Selects(each, p.Template.Value) {
			others = append(others, policy.DisplayName(each))
		}
	}
	if len(others) == 0 {
		return
	}
	slices.Sort(others)
	named := min(len(others), maxOtherPolicies)
	link.Message += fmt.Sprintf(" (also selected by %s)", JoinLimited(others[:named], len(others)-named))
}
