package override

import (
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"karmada.io/karmada/internal/domain/tenancy"
)

// restrictions defines what the policies of a scope must not change, and records the entries that violate
// this. Only the result of all entries matters, because an entry may revert another entry's change.
type restrictions struct {
	// identity is the manifest's required identity, or nil if the identity may change.
	identity *tenancy.Identity
	// original is the manifest before the policies are applied, or nil if its content may change.
	original *unstructured.Unstructured
	remedy   string
	// changes holds the error for the first violation in each field, by field path.
	changes map[string]*RuleError
}

// clusterRestrictions returns the restrictions for ClusterOverridePolicies.
func clusterRestrictions(manifest *unstructured.Unstructured, allowed Options) *restrictions {
	if allowed.AllowIdentityChange {
		return &restrictions{}
	}
	identity := tenancy.IdentityOf(manifest)
	return &restrictions{
		identity: &identity,
		remedy:   "remove the entry, or enable the feature gate OverrideIdentity",
	}
}

// namespaceRestrictions returns the restrictions for OverridePolicies, whose authors may have permissions
// only in the policy's namespace.
func namespaceRestrictions(manifest *unstructured.Unstructured) *restrictions {
	identity := tenancy.IdentityOf(manifest)
	limits := &restrictions{identity: &identity, remedy: "remove the entry: an OverridePolicy must not change the identity of an object"}
	if tenancy.GrantsRights(manifest.GroupVersionKind().GroupKind()) {
		limits.original = manifest.DeepCopy()
	}
	return limits
}

// recordViolations records the rule's entry if the manifest violates a restriction after the entry was
// applied.
func (b *restrictions) recordViolations(manifest *unstructured.Unstructured, r rule, overrider string, index int) {
	for _, change := range b.violations(manifest) {
		if b.changes[change.Path] != nil {
			continue
		}
		failure := r.newRuleError(overrider, index, change.Err)
		failure.Path, failure.Remedy = change.Path, change.Remedy
		if b.changes == nil {
			b.changes = map[string]*RuleError{}
		}
		b.changes[change.Path] = failure
	}
}

// validateResult returns the error for the first entry whose violation remains in the result.
func (b *restrictions) validateResult(manifest *unstructured.Unstructured) error {
	changed := b.violations(manifest)
	if len(changed) == 0 {
		return nil
	}
	failure := b.changes[changed[0].Path]
	if failure == nil {
		return &changed[0]
	}
	failure.Err = changed[0].Err
	return failure
}

var errPrivilegedContent = errors.New("an OverridePolicy must not change an object that grants permissions, limits the namespace or routes traffic")

// violations returns the manifest's current violations in a fixed order, without the entries that caused
// them.
func (b *restrictions) violations(manifest *unstructured.Unstructured) []RuleError {
	var changed []RuleError
	if b.identity != nil {
		if current := tenancy.IdentityOf(manifest); current != *b.identity {
			for _, violation := range b.identity.Violations(current) {
				changed = append(changed, RuleError{Path: violation.Path, Remedy: b.remedy, Err: violation})
			}
		}
	}
	if b.original != nil {
		if path, hasChanged := tenancy.FirstChangedField(b.original, manifest); hasChanged {
			changed = append(changed, RuleError{Path: path, Remedy: "use a ClusterOverridePolicy", Err: errPrivilegedContent})
		}
	}
	return changed
}
