package override

import (
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"karmada.io/karmada/internal/domain/reach"
)

// bounds are what the policies of one scope must leave as it is, and which entries
// changed it. Only the result counts: an entry may undo what another one did.
type bounds struct {
	// identity is nil if the policies may make another object of the manifest.
	identity *reach.Identity
	// granting is the manifest before the policies if they must not change its content.
	granting *unstructured.Unstructured
	remedy   string
	// changes are the entries that changed what they must not, by the path of the field.
	changes map[string]*RuleError
}

// clusterBounds are those of ClusterOverridePolicies.
func clusterBounds(manifest *unstructured.Unstructured, allowed Allowed) *bounds {
	if allowed.Identity {
		return &bounds{}
	}
	identity := reach.IdentityOf(manifest)
	return &bounds{
		identity: &identity,
		remedy:   "remove the entry, or switch on the feature gate OverrideIdentity",
	}
}

// namespaceBounds are those of OverridePolicies. Whoever writes one has rights in its
// namespace only.
func namespaceBounds(manifest *unstructured.Unstructured) *bounds {
	identity := reach.IdentityOf(manifest)
	within := &bounds{identity: &identity, remedy: "remove the entry: an OverridePolicy changes what an object says, and not which object it is"}
	if reach.Granting(manifest.GroupVersionKind().GroupKind()) {
		within.granting = manifest.DeepCopy()
	}
	return within
}

// observe notes the entry of a rule that changes what must stay.
func (b *bounds) observe(manifest *unstructured.Unstructured, r rule, overrider string, index int) {
	for _, change := range b.violations(manifest) {
		if b.changes[change.Path] != nil {
			continue
		}
		failure := r.at(overrider, index, change.Err)
		failure.Path, failure.Remedy = change.Path, change.Remedy
		if b.changes == nil {
			b.changes = map[string]*RuleError{}
		}
		b.changes[change.Path] = failure
	}
}

// check returns the first entry that changed what must stay and is changed still.
func (b *bounds) check(manifest *unstructured.Unstructured) error {
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

var errGranting = errors.New("an OverridePolicy must not change what gives rights in its namespace, limits it or leads its traffic elsewhere")

// violations are what is changed, in a fixed order, without the entries that did it.
func (b *bounds) violations(manifest *unstructured.Unstructured) []RuleError {
	var changed []RuleError
	if b.identity != nil {
		if now := reach.IdentityOf(manifest); now != *b.identity {
			for _, violation := range b.identity.Violations(now) {
				changed = append(changed, RuleError{Path: violation.Path, Remedy: b.remedy, Err: violation})
			}
		}
	}
	if b.granting != nil {
		if path, is := reach.ChangedContent(b.granting, manifest); is {
			changed = append(changed, RuleError{Path: path, Remedy: "use a ClusterOverridePolicy", Err: errGranting})
		}
	}
	return changed
}
