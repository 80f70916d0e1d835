package policy

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// Policies is what Decide needs to know of the policies that exist. Index
// provides it.
type Policies interface {
	// Get returns a policy by name, or nil; namespace is empty for a
	// ClusterPropagationPolicy.
	Get(namespace, name string) Object
	// Best returns the policy for an unclaimed template, or nil.
	Best(template *unstructured.Unstructured) Object
}

// Decision is what to do about one template: one of Ignore, Wait, Apply, Release
// and Retry.
type Decision interface{ isDecision() }

// Ignore means that policies have no say: the template is gone or belongs to a
// controller. Forget it, also as a waiting one.
type Ignore struct{}

// Wait means that no policy wants the template yet. Remember it, so that a
// policy that comes later finds it.
type Wait struct{}

// Apply means: claim the template for the policy and bring its binding in line,
// once the overrides that the policy depends on exist (MissingOverrides).
type Apply struct{ Policy Object }

// Release means: remove the claim from the binding, then from the template. The
// policy is gone, or selects the template no longer. That change of the template
// leads to the next decision.
type Release struct{ Claim Claim }

// Retry means that nothing can be decided now; Err says why.
type Retry struct{ Err error }

func (Ignore) isDecision()  {}
func (Wait) isDecision()    {}
func (Apply) isDecision()   {}
func (Release) isDecision() {}
func (Retry) isDecision()   {}

// ErrTerminating says that the policy that claims a template is being deleted:
// its own deletion is about to release the template.
var ErrTerminating = errors.New("the claiming policy is being deleted")

// ErrNoPermanentID says that a policy passed no admission and cannot claim.
var ErrNoPermanentID = errors.New("the policy has no permanent id")

// Decide answers for one template; nil means that it does not exist. A claimed
// template stays with its policy, found by name: one that was deleted and
// created anew takes over with its new id.
func Decide(template *unstructured.Unstructured, policies Policies) Decision {
	if template == nil || template.GetLabels()[workv1alpha2.ResourceTemplateClaimedByLabel] != "" {
		return Ignore{}
	}
	if claim, claimed := ClaimedBy(template); claimed {
		return decideClaimed(template, claim, policies.Get(claim.Namespace, claim.Name))
	}
	policy := policies.Best(template)
	if policy == nil {
		return Wait{}
	}
	return apply(policy)
}

func decideClaimed(template *unstructured.Unstructured, claim Claim, policy Object) Decision {
	if policy == nil {
		return Release{Claim: claim}
	}
	if isTerminating(policy) {
		return Retry{Err: fmt.Errorf("policy %s: %w", claim, ErrTerminating)}
	}
	// A policy never reaches into other namespaces, even if a template copied
	// from there, marks and all, says that it is claimed.
	if !inScope(policy, template) || !Selects(policy, template) {
		return Release{Claim: claim}
	}
	return apply(policy)
}

func apply(policy Object) Decision {
	if claim := ClaimOf(policy); claim.ID == "" {
		return Retry{Err: fmt.Errorf("policy %s: %w", claim, ErrNoPermanentID)}
	}
	return Apply{Policy: policy}
}

// DependentOverrides names the override policies that must exist before the
// policy is applied: OverridePolicies of the policy's namespace, or
// ClusterOverridePolicies when the namespace is empty.
func DependentOverrides(policy Object) []types.NamespacedName {
	names := policy.PropagationSpec().DependentOverrides
	overrides := make([]types.NamespacedName, 0, len(names))
	for _, name := range names {
		overrides = append(overrides, types.NamespacedName{Namespace: policy.GetNamespace(), Name: name})
	}
	return overrides
}

// CheckDependentOverrides returns a *MissingOverridesError when any override
// policy does not exist that the policy depends on.
func CheckDependentOverrides(policy Object, exists func(types.NamespacedName) bool) error {
	var missing []string
	for _, override := range DependentOverrides(policy) {
		if !exists(override) {
			missing = append(missing, override.Name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return &MissingOverridesError{Names: missing}
}

// MissingOverridesError says which overrides a policy is waiting for.
type MissingOverridesError struct{ Names []string }

// Error implements error.
func (e *MissingOverridesError) Error() string {
	return "waiting for dependent overrides: " + strings.Join(e.Names, ", ")
}
