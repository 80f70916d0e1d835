package simulation

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"karmada.io/karmada/internal/domain/admission"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/diagnose"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/domain/tenancy"
)

// PreparePolicy returns the given policy as the control plane would store it. It would replace the stored
// policy, which may be nil. PreparePolicy returns an error if the control plane would reject the policy.
func PreparePolicy(given, stored policy.Object) (policy.Object, error) {
	prepared, _ := given.DeepCopyObject().(policy.Object)
	var old runtime.Object
	if stored != nil {
		old = stored
		prepared.SetUID(stored.GetUID())
		prepared.SetLabels(withKarmadaKeys(prepared.GetLabels(), stored.GetLabels()))
	}
	if err := admission.Default(prepared, old, func() string { return changedVersion }); err != nil {
		return nil, err
	}
	errs, _ := admission.Options{}.Validate(prepared, old)
	return prepared, errs.ToAggregate()
}

// bindTemplate makes the detector's decision: it chooses the policy that claims the candidate's template, and
// creates or updates the template's binding.
func (s *simulator) bindTemplate(ctx context.Context, c candidate) {
	key := s.bindingKeyOf(c.template)
	claim, _ := policy.ClaimedBy(c.template)
	chosen, missing := s.choosePolicy(c.template)
	if !c.isGiven && !s.isGivenClaim(claim) && !s.isGivenPolicy(chosen) {
		return
	}
	of := s.subjects[key]
	if of == nil {
		of = &subject{leaving: map[string]string{}}
		s.subjects[key] = of
	}
	if of.bound != nil {
		if err := policy.CheckBindingOwner(of.bound, c.template); err != nil {
			// The owner of the binding stays in the result under the name of the binding.
			key.Name += " of " + c.template.GetAPIVersion()
			s.subjects[key] = &subject{resource: referenceOf(c.template), isSelected: true,
				failure: finding{diagnose.ReasonNameCollision, err.Error()}}
			return
		}
	}
	of.resource, of.labels, of.isSelected, of.policy = referenceOf(c.template), c.template.GetLabels(), true, ""
	if chosen == nil {
		of.releaseBinding(claim, missing)
		return
	}
	of.policy = policy.DisplayName(chosen)
	s.applyPolicy(ctx, of, c, chosen)
}

// choosePolicy returns the policy that claims the template after the changes. If there is none, it
// returns the reason. It removes a claim that no longer holds from the template.
func (s *simulator) choosePolicy(template *unstructured.Unstructured) (policy.Object, finding) {
	rules := tenancy.PropagationRules{APIs: tenancy.DefaultSkippedAPIs()}
	if err := rules.Check(template.GroupVersionKind(),
		types.NamespacedName{Namespace: template.GetNamespace(), Name: template.GetName()}); err != nil {
		return nil, finding{diagnose.ReasonNeverPropagated, err.Error()}
	}
	claim, claimed := policy.ClaimedBy(template)
	if claimed {
		if preemptor := s.preemptorOf(template, claim); preemptor != nil {
			return preemptor, finding{}
		}
	}
	decision := policy.Decide(template, s.policies)
	if release, isReleased := decision.(policy.ReleaseClaim); isReleased && release.Claim.Remove(template) {
		decision = policy.Decide(template, s.policies)
	}
	switch decision := decision.(type) {
	case policy.ApplyPolicy:
		return decision.Policy, finding{}
	case policy.RetryLater:
		return nil, finding{ReasonPolicyUndecided, decision.Err.Error()}
	case policy.IgnoreTemplate:
		return nil, finding{diagnose.ReasonCreatedByDistributor, "a controller distributes the object without a policy"}
	default:
		missing := finding{diagnose.ReasonNoPolicyMatches, "no policy selects it"}
		if miss, ok := s.policies.NearestMiss(template); ok {
			missing.message += "; " + miss.String()
		}
		return nil, missing
	}
}

// preemptorOf returns the given policy that preempts the policy that claims the template, or nil.
func (s *simulator) preemptorOf(template *unstructured.Unstructured, claim policy.Claim) policy.Object {
	if !s.Settings.Preemption {
		return nil
	}
	for _, each := range s.GivenPolicies {
		inScope := policy.IsCluster(each) || each.GetNamespace() == template.GetNamespace()
		if !inScope || !policy.CanPreempt(each) || !policy.Selects(each, template) {
			continue
		}
		if preempts, err := policy.Preempts(each, claim, s.policies.Get(claim.Namespace, claim.Name)); err == nil && preempts {
			return each
		}
	}
	return nil
}

func (s *simulator) isGivenClaim(claim policy.Claim) bool {
	return claim != policy.Claim{} && slices.ContainsFunc(s.GivenPolicies, claim.MatchesPolicy)
}

func (s *simulator) isGivenPolicy(chosen policy.Object) bool {
	return chosen != nil && s.isGivenClaim(policy.ClaimOf(chosen))
}

// releaseBinding records that no policy claims the template. The copies of a released binding stay.
func (s *subject) releaseBinding(claim policy.Claim, missing finding) {
	if s.bound == nil {
		s.failure = missing
		return
	}
	claim.Remove(s.edit())
	if len(s.bound.BindingSpec().RequiredBy) > 0 {
		return
	}
	s.waiting = missing
	if missing.reason == diagnose.ReasonNoPolicyMatches {
		s.waiting.message = "its copies stay, and changes do not reach them: " + missing.message
	}
}

// applyPolicy creates or updates the binding of a template that the chosen policy claims.
func (s *simulator) applyPolicy(ctx context.Context, of *subject, c candidate, chosen policy.Object) {
	cause := policy.PolicyChanged
	if c.isGiven {
		cause = policy.TemplateChanged
	}
	activation, err := policy.DecideActivation(chosen, c.template, metadataOf(of.bound), cause)
	if err != nil {
		of.failure = finding{ReasonTemplateInvalid, err.Error()}
		return
	}
	if activation.Deferred {
		of.waiting = finding{diagnose.ReasonLazyPolicyWaits, of.policy + " is Lazy: it takes effect when the object changes"}
		return
	}
	input := policy.BindingInput{
		Template: c.template, Policy: chosen, WorkloadAffinity: s.Settings.Features.WorkloadAffinity, UserState: activation.UserState,
	}
	if _, err := input.Interpret(ctx, s.Rules.Rules(c.template.GroupVersionKind()), s.Settings.Features.MultiplePodTemplates); err != nil {
		of.failure = finding{ReasonTemplateInvalid, fmt.Sprintf("interpreting the object: %v", err)}
		return
	}
	of.bind(input, s.bindingKeyOf(c.template).Name)
	if chosen.PropagationSpec().PropagateDeps {
		if of.dependencies, err = s.dependenciesOf(ctx, c.template); err != nil {
			of.failure = finding{ReasonTemplateInvalid, fmt.Sprintf("finding the dependencies of the object: %v", err)}
		}
	}
}

// bind updates the binding, or creates a binding with the given name.
func (s *subject) bind(input policy.BindingInput, newName string) {
	bound := s.edit()
	if bound == nil {
		bound = binding.New(input.Template.GetNamespace() != "")
		bound.SetName(newName)
	}
	// The PriorityClass of the policy affects only the order of scheduling.
	if priority := bound.BindingSpec().SchedulePriority; priority != nil && input.Policy.PropagationSpec().SchedulePriority != nil {
		input.SchedulePriority = new(priority.Priority)
	}
	if err := policy.UpdateBinding(bound, input); err != nil {
		s.failure = finding{diagnose.ReasonNameCollision, err.Error()}
		return
	}
	s.bound = bound
}
