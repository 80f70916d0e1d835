package simulation

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"karmada.io/karmada/internal/domain/admission"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/domain/tenancy"
)

// PreparePolicy returns a policy in the form in which the control plane would store it instead of the
// stored policy, which may be nil. It returns an error if the control plane would reject the policy.
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

// bindTemplate decides which policy claims a template, and makes the binding of the template.
func (r *run) bindTemplate(ctx context.Context, c candidate) {
	key := r.bindingKeyOf(c.template)
	claim, _ := policy.ClaimedBy(c.template)
	chosen, missing := r.choosePolicy(c.template)
	if !c.isGiven && !r.isGivenClaim(claim) && !r.isGivenPolicy(chosen) {
		return
	}
	of := r.subjects[key]
	if of == nil {
		of = &subject{leaving: map[string]string{}}
		r.subjects[key] = of
	}
	if of.bound != nil {
		if err := policy.CheckBindingOwner(of.bound, c.template); err != nil {
			// The owner of the binding stays in the result under the name of the binding.
			key.Name += " of " + c.template.GetAPIVersion()
			r.subjects[key] = &subject{resource: referenceOf(c.template), isSelected: true, failure: finding{ReasonNameCollision, err.Error()}}
			return
		}
	}
	of.resource, of.labels, of.isSelected, of.policy = referenceOf(c.template), c.template.GetLabels(), true, ""
	if chosen == nil {
		of.release(claim, missing)
		return
	}
	of.policy = policy.DisplayName(chosen)
	r.applyPolicy(ctx, of, c, chosen)
}

// choosePolicy returns the policy that claims the template after the changes. If there is none, it
// returns the reason. It removes a claim that no longer holds from the template.
func (r *run) choosePolicy(template *unstructured.Unstructured) (policy.Object, finding) {
	kind := template.GroupVersionKind()
	if tenancy.DefaultSkippedAPIs().Skips(kind) || (tenancy.SkippedNamespaces{}).Skips(kind, template.GetNamespace(), template.GetName()) {
		return nil, finding{ReasonNeverPropagated, "objects of this kind or namespace belong to the control plane and are never propagated"}
	}
	claim, claimed := policy.ClaimedBy(template)
	if claimed {
		if preemptor := r.preemptorOf(template, claim); preemptor != nil {
			return preemptor, finding{}
		}
	}
	decision := policy.Decide(template, r.policies)
	if release, isReleased := decision.(policy.ReleaseClaim); isReleased && release.Claim.Remove(template) {
		decision = policy.Decide(template, r.policies)
	}
	switch decision := decision.(type) {
	case policy.ApplyPolicy:
		return decision.Policy, finding{}
	case policy.RetryLater:
		return nil, finding{ReasonPolicyUndecided, decision.Err.Error()}
	case policy.IgnoreTemplate:
		return nil, finding{ReasonClaimedByController, "a controller distributes the object without a policy"}
	default:
		return nil, r.describeNoPolicy(template)
	}
}

func (r *run) describeNoPolicy(template *unstructured.Unstructured) finding {
	message := "no policy selects it"
	if miss, ok := r.policies.NearestMiss(template); ok {
		message += "; " + miss.String()
	}
	return finding{ReasonNoPolicyMatches, message}
}

// preemptorOf returns the given policy that takes the template over from the policy that claims it, or
// nil.
func (r *run) preemptorOf(template *unstructured.Unstructured, claim policy.Claim) policy.Object {
	if !r.Settings.Preemption {
		return nil
	}
	for _, each := range r.GivenPolicies {
		inScope := policy.IsCluster(each) || each.GetNamespace() == template.GetNamespace()
		if !inScope || !policy.CanPreempt(each) || !policy.Selects(each, template) {
			continue
		}
		if yields, err := policy.Preempts(each, claim, r.policies.Get(claim.Namespace, claim.Name)); err == nil && yields {
			return each
		}
	}
	return nil
}

func (r *run) isGivenClaim(claim policy.Claim) bool {
	return claim != policy.Claim{} && slices.ContainsFunc(r.GivenPolicies, claim.MatchesPolicy)
}

func (r *run) isGivenPolicy(chosen policy.Object) bool {
	return chosen != nil && r.isGivenClaim(policy.ClaimOf(chosen))
}

// release records that no policy claims the template. The copies of a released binding stay.
func (s *subject) release(claim policy.Claim, missing finding) {
	if s.bound == nil {
		s.failure = missing
		return
	}
	claim.Remove(s.edit())
	if len(s.bound.BindingSpec().RequiredBy) > 0 {
		return
	}
	s.waiting = missing
	if missing.reason == ReasonNoPolicyMatches {
		s.waiting.message = "its copies stay, and changes do not reach them: " + missing.message
	}
}

// applyPolicy makes or updates the binding of a template that the policy claims.
func (r *run) applyPolicy(ctx context.Context, of *subject, c candidate, chosen policy.Object) {
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
		of.waiting = finding{ReasonLazyPolicyWaits, of.policy + " is Lazy: it takes effect when the object changes"}
		return
	}
	input := policy.BindingInput{
		Template: c.template, Policy: chosen, WorkloadAffinity: r.Settings.Features.WorkloadAffinity, UserState: activation.UserState,
	}
	if _, err := input.Interpret(ctx, r.Rules.Rules(c.template.GroupVersionKind()), r.Settings.Features.MultiplePodTemplates); err != nil {
		of.failure = finding{ReasonTemplateInvalid, fmt.Sprintf("interpreting the object: %v", err)}
		return
	}
	of.bind(input, r.bindingKeyOf(c.template).Name)
	if chosen.PropagationSpec().PropagateDeps {
		if of.dependencies, err = r.dependenciesOf(ctx, c.template); err != nil {
			of.failure = finding{ReasonTemplateInvalid, fmt.Sprintf("finding the dependencies of the object: %v", err)}
		}
	}
}

// bind updates the binding, or makes a binding with the given name.
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
		s.failure = finding{ReasonNameCollision, err.Error()}
		return
	}
	s.bound = bound
}
