package policy

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// Policies provides the existing policies to Decide. Index implements it.
type Policies interface {
	// Get returns a policy by name, or nil. namespace is empty for a
	// ClusterPropagationPolicy.
	Get(namespace, name string) Object
	// Best returns the policy that is best for an unclaimed template, or nil.
	Best(template *unstructured.Unstructured) Object
}

// Decision is the action for one template: IgnoreTemplate, WaitForPolicy, ApplyPolicy, ReleaseClaim
// or RetryLater.
type Decision interface{ isDecision() }

// IgnoreTemplate means that no policy applies, because the template does not exist or belongs to a
// controller. The caller stops tracking the template, even if it waits for a policy.
type IgnoreTemplate struct{}

// WaitForPolicy means that no policy selects the template yet. The caller tracks the template, so
// that it is reconciled when a matching policy is created.
type WaitForPolicy struct{}

// ApplyPolicy means that the caller claims the template for the policy and updates its binding, as
// soon as the overrides that the policy depends on exist (CheckDependentOverrides).
type ApplyPolicy struct{ Policy Object }

// ReleaseClaim means that the caller removes the claim from the binding and then from the template,
// because the policy was deleted or no longer selects the template. The update of the template
// triggers the next decision.
type ReleaseClaim struct{ Claim Claim }

// RetryLater means that no decision is possible yet. Err is the reason.
type RetryLater struct{ Err error }

func (IgnoreTemplate) isDecision() {}
func (WaitForPolicy) isDecision()  {}
func (ApplyPolicy) isDecision()    {}
func (ReleaseClaim) isDecision()   {}
func (RetryLater) isDecision()     {}

// ErrTerminating reports that the policy that claims a template is being deleted. The template is
// released when the policy is deleted.
var ErrTerminating = errors.New("the claiming policy is being deleted")

// ErrNoPermanentID reports that a policy cannot claim templates, because it did not pass admission.
var ErrNoPermanentID = errors.New("the policy has no permanent id")

// Decide returns the decision for one template. A nil template means that the template does not
// exist. A claimed template stays with its policy. The policy is looked up by name, so a recreated
// policy takes over the template with its new ID.
func Decide(template *unstructured.Unstructured, policies Policies) Decision {
	if template == nil || template.GetLabels()[workv1alpha2.ResourceTemplateClaimedByLabel] != "" {
		return IgnoreTemplate{}
	}
	if claim, claimed := ClaimedBy(template); claimed {
		return decideClaimed(template, claim, policies.Get(claim.Namespace, claim.Name))
	}
	policy := policies.Best(template)
	if policy == nil {
		return WaitForPolicy{}
	}
	return decideApply(policy)
}

func decideClaimed(template *unstructured.Unstructured, claim Claim, policy Object) Decision {
	if policy == nil {
		return ReleaseClaim{Claim: claim}
	}
	if isTerminating(policy) {
		return RetryLater{Err: fmt.Errorf("policy %s: %w", claim, ErrTerminating)}
	}
	// The scope is checked although the template has a claim, because a template that was copied
	// from another namespace still has the labels of the claim there.
	if !inScope(policy, template) || !Selects(policy, template) {
		return ReleaseClaim{Claim: claim}
	}
	return decideApply(policy)
}

func decideApply(policy Object) Decision {
	if claim := ClaimOf(policy); claim.ID == "" {
		return RetryLater{Err: fmt.Errorf("policy %s: %w", claim, ErrNoPermanentID)}
	}
	return ApplyPolicy{Policy: policy}
}

// DependentOverrides returns the override policies that must exist before the
// policy is applied: OverridePolicies in the namespace of the policy, or
// ClusterOverridePolicies if the namespace is empty.
func DependentOverrides(policy Object) []types.NamespacedName {
	names := policy.PropagationSpec().DependentOverrides
	overrides := make([]types.NamespacedName, 0, len(names))
	for _, name := range names {
		overrides = append(overrides, types.NamespacedName{Namespace: policy.GetNamespace(), Name: name})
	}
	return overrides
}

// CheckDependentOverrides returns a *MissingOverridesError if an override policy
// that the policy depends on does not exist.
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

// MissingOverridesError lists the overrides that a policy waits for.
type MissingOverridesError struct{ Names []string }

// Error implements error.
func (m *MissingOverridesError) Error() string {
	return "waiting for dependent overrides: " + strings.Join(m.Names, ", ")
}
