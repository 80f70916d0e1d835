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
	// maxNearMisses is the maximum number of policies that nearly select the template in a message.
	maxNearMisses = 3
	// maxOtherPolicies is the maximum number of further matching policies in a message.
	maxOtherPolicies = 3
)

// checkPolicy checks that a policy claims the template.
func checkPolicy(f *Facts) Link {
	link := Link{Stage: StagePolicy, Verdict: Failed}
	if f.Policies.Err != nil {
		return unreadable(link, "the policies", f.Policies.Err)
	}
	template := f.Template.Value
	index := policy.NewIndex()
	for _, each := range f.Policies.Value {
		index.Put(each)
	}
	switch decision := policy.Decide(template, index).(type) {
	case policy.IgnoreTemplate:
		link.Verdict, link.Reason = NotApplicable, ReasonCreatedByDistributor
		link.Message = "the object belongs to a controller of Karmada that distributes it without a policy: label " +
			workv1alpha2.ResourceTemplateClaimedByLabel + "=" + template.GetLabels()[workv1alpha2.ResourceTemplateClaimedByLabel]
		return link
	case policy.WaitForPolicy:
		return withoutPolicy(f, link)
	case policy.ReleaseClaim:
		link.Verdict, link.Reason = Pending, ReasonPolicyGone
		link.Message = fmt.Sprintf("%s claims the template, but does not exist or does not select the template any more", decision.Claim.DisplayName())
		link.Remedy = "correct the resourceSelectors of the policy, or create a policy that selects the template"
		return link
	case policy.RetryLater:
		return undecided(f, link, decision.Err)
	case policy.ApplyPolicy:
		return checkClaim(f, link, decision.Policy)
	}
	return link
}

// withoutPolicy describes a template that no policy selects.
func withoutPolicy(f *Facts, link Link) Link {
	template := f.Template.Value
	link.Reason = ReasonNoPolicyMatches
	bound := f.Binding.Value
	if f.ownsBinding() && len(bound.BindingSpec().RequiredBy) > 0 {
		link.Verdict, link.Reason = OK, ReasonAttached
		link.Message = "no policy selects it: it follows its dependents " + describeDependents(bound.BindingSpec().RequiredBy)
		return link
	}
	if owner := metav1.GetControllerOf(template); owner != nil {
		link.Verdict, link.Reason = NotApplicable, ReasonManagedByController
		link.Message = fmt.Sprintf("no policy selects it: %s %s created it", owner.Kind, owner.Name)
		link.Remedy = fmt.Sprintf("propagate %s %s", owner.Kind, owner.Name)
		return link
	}
	link.Message = "no policy selects it"
	for _, miss := range policy.NearMisses(template, f.Policies.Value, f.serves, maxNearMisses) {
		link.Message += fmt.Sprintf("; %s nearly does: %s", policy.DisplayName(miss.Policy), strings.Join(miss.Differences, "; "))
	}
	link.Remedy = "correct the resourceSelectors of a policy, or create a policy that selects the template"
	if f.ownsBinding() && policy.IsReleased(bound) {
		link.Message += fmt.Sprintf("; the policy that claimed it was deleted or no longer selects it, and binding %s is kept unchanged", objectPath(bound))
	}
	return link
}

func describeDependents(snapshots []workv1alpha2.BindingSnapshot) string {
	names := make([]string, 0, len(snapshots))
	for i := range snapshots {
		names = append(names, strings.TrimPrefix(snapshots[i].Namespace+"/"+snapshots[i].Name, "/"))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// undecided describes a policy that cannot claim the template now.
func undecided(f *Facts, link Link, err error) Link {
	link.Message = err.Error()
	switch {
	case errors.Is(err, policy.ErrTerminating):
		link.Verdict, link.Reason = Pending, ReasonPolicyTerminating
	case errors.Is(err, policy.ErrNoPermanentID):
		link.Reason = ReasonNoPermanentID
		link.Remedy = "check the admission webhook of Karmada, and create the policy again"
	default:
		link.Verdict, link.Reason = Unknown, ReasonUnreadable
		link.Remedy = "kubectl describe " + f.kubectlTemplate()
	}
	return link
}

// checkClaim checks that the policy has claimed the template and takes effect.
func checkClaim(f *Facts, link Link, chosen policy.Object) Link {
	claim, claimed := policy.ClaimedBy(f.Template.Value)
	link.Message = policy.DisplayName(chosen)
	if err := checkOverrides(f, chosen); err != nil {
		var missing *policy.MissingOverridesError
		if !errors.As(err, &missing) {
			return unreadable(link, "the override policies that "+policy.DisplayName(chosen)+" depends on", err)
		}
		link.Verdict, link.Reason = Pending, ReasonOverridesMissing
		link.Message += " is " + missing.Error()
		link.Remedy = "create the override policies, or remove them from dependentOverrides of the policy"
		return link
	}
	switch {
	case waitsForChange(f, chosen):
		link.Verdict, link.Reason = Pending, ReasonLazyPolicyWaits
		link.Message += " is Lazy: it takes effect at the next change of the template"
		link.Remedy = "change the template, or set activationPreference of the policy to \"\""
	case !claimed:
		link.Verdict, link.Reason = Pending, ReasonNotClaimed
		link.Message += " selects the template, and has not claimed it yet"
		link.Remedy = "check that karmada-controller-manager runs; kubectl describe " + f.kubectlTemplate()
	default:
		link.Verdict, link.Reason = OK, ReasonClaimed
		describeOthers(f, &link, claim, chosen)
	}
	return link
}

func checkOverrides(f *Facts, chosen policy.Object) error {
	if len(policy.DependentOverrides(chosen)) == 0 {
		return nil
	}
	if f.Overrides.Err != nil {
		return f.Overrides.Err
	}
	return policy.CheckDependentOverrides(chosen, func(name types.NamespacedName) bool {
		return slices.ContainsFunc(f.Overrides.Value, func(each override.Object) bool {
			return each.GetNamespace() == name.Namespace && each.GetName() == name.Name
		})
	})
}

// waitsForChange reports whether a Lazy policy waits for a change of the template: its binding does
// not exist, or has other settings than the policy.
func waitsForChange(f *Facts, chosen policy.Object) bool {
	if !policy.IsLazy(chosen) || f.Binding.Err != nil {
		return false
	}
	bound := f.Binding.Value
	if bound != nil {
		claim, _ := policy.ClaimedBy(bound)
		if claim == policy.ClaimOf(chosen) && equality.Semantic.DeepEqual(bound.BindingSpec().Placement, &chosen.PropagationSpec().Placement) {
			return false
		}
	}
	activation, err := policy.DecideActivation(chosen, f.Template.Value, bindingMeta(f), policy.PolicyChanged)
	return err == nil && activation.Deferred
}

// bindingMeta returns the binding, or an untyped nil if there is none.
func bindingMeta(f *Facts) metav1.Object {
	if f.Binding.Value == nil {
		return nil
	}
	return f.Binding.Value
}

// describeOthers adds the policies that also select the template to the message.
func describeOthers(f *Facts, link *Link, claim policy.Claim, chosen policy.Object) {
	unclaimed := f.Template.Value.DeepCopy()
	claim.Remove(unclaimed)
	best := policy.Best(unclaimed, f.Policies.Value)
	if best != nil && !claim.MatchesPolicy(best) {
		link.Reason = ReasonClaimedByOther
		link.Message += fmt.Sprintf(" claims it; %s has precedence for new objects, but does not take this one over", policy.DisplayName(best))
		link.Remedy = fmt.Sprintf("if %s should apply: set preemption: Always in it (needs the feature gate PropagationPolicyPreemption, a name in its selector and a higher priority), or change %s so that it does not select the object",
			policy.DisplayName(best), policy.DisplayName(chosen))
		return
	}
	var others []string
	for _, each := range f.Policies.Value {
		inScope := policy.IsCluster(each) || each.GetNamespace() == f.Key.Namespace
		if inScope && !claim.MatchesPolicy(each) && policy.Selects(each, f.Template.Value) {
			others = append(others, policy.DisplayName(each))
		}
	}
	if len(others) == 0 {
		return
	}
	slices.Sort(others)
	text := strings.Join(others[:min(len(others), maxOtherPolicies)], ", ")
	if more := len(others) - maxOtherPolicies; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	link.Message += fmt.Sprintf(" (also selected by %s)", text)
}
