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
	// Get returns the named policy, or nil. namespace is empty for a ClusterPropagationPolicy.
	Get(namespace, name string) Object
	// Best returns the policy that takes precedence for an unclaimed template, or nil if no policy
	// selects the template.
	Best(template *unstructured.Unstructured) Object
}

// Decision is the action for a template: IgnoreTemplate, WaitForPolicy, ApplyPolicy, ReleaseClaim or
// RetryLater.
type Decision interface{ isDecision() }

// IgnoreTemplate means that no policy applies, because the template does not exist or is claimed by a
// controller. The caller stops tracking the template.
type IgnoreTemplate struct{}

// WaitForPolicy means that no policy selects the template yet. The caller tracks the template, so
// that it is reconciled when a matching policy is created.
type WaitForPolicy struct{}

// ApplyPolicy means that the caller claims the template for the policy and updates its binding, as soon
// as the override policies that the policy depends on exist (see CheckDependentOverrides).
type ApplyPolicy struct{ Policy Object }

// ReleaseClaim means that the caller removes the claim from the binding and then from the template,
// because the policy was deleted or no longer selects the template. The template's update triggers the
// next decision.
type ReleaseClaim struct{ Claim Claim }

// RetryLater means that no decision is possible yet. Err is the reason.
type RetryLater struct{ Err error }

func (IgnoreTemplate) isDecision() {}
func (WaitForPolicy) isDecision()  {}
func (ApplyPolicy) isDecision()    {}
func (ReleaseClaim) isDecision()   {}
func (RetryLater) isDecision()     {}

// ErrTerminating reports that the claiming policy is being deleted. The claim is released after the
// deletion.
var ErrTerminating = errors.New("the claiming policy is being deleted")

// ErrNoPermanentID reports that a policy cannot claim templates, because it did not pass admission.
var ErrNoPermanentID = errors.New("the policy has no permanent id")

// Decide returns the decision for the template, which is nil if it does not exist. A claimed template
// keeps its policy. The policy is found by name, so a recreated policy keeps its templates and claims
// them with its new ID.
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
	// The scope is compared although the template has a claim, because a template that was copied from
	// another namespace still has the claim's labels.
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

// DependentOverrides returns the override policies that must exist before the policy is applied:
// OverridePolicies in the policy's namespace, or ClusterOverridePolicies for a
// ClusterPropagationPolicy.
func DependentOverrides(policy Object) []types.NamespacedName {
	names := policy.PropagationSpec().DependentOverrides
	overrides := make([]types.NamespacedName, 0, len(names))
	for _, name := range names {
		overrides = append(overrides, types.NamespacedName{Namespace: policy.GetNamespace(), Name: name})
	}
	return overrides
}

// CheckDependentOverrides returns a *MissingOverridesError if an override policy that the policy depends
// on does not exist.
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

// MissingOverridesError lists the override policies for which a policy waits.
type MissingOverridesError struct{ Names []string }

// Error implements error.
func (m *MissingOverridesError) Error() string {
	return "waiting for dependent overrides: " + strings.Join(m.Names, ", ")
}
