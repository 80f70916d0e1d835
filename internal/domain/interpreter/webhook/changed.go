package webhook

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	"karmada.io/karmada/internal/domain/interpreter"
)

// maxListedKinds is the maximum number of kinds that Changed compares. More kinds count as all kinds.
const maxListedKinds = 1000

// Changed returns the kinds whose interpretation may differ between two results of Hooks, because
// another webhook is called for an operation, or the same one with another address, CA bundle or
// timeout. It returns all kinds if a rule with "*" for groups, versions or kinds was added, changed or
// removed.
func Changed(before, after []*Hook) interpreter.Kinds {
	candidates, ok := listKinds(append(rulesWithout(before, after), rulesWithout(after, before)...))
	if !ok {
		return interpreter.AllKinds()
	}
	return interpreter.KindsOf(slices.DeleteFunc(candidates, func(kind schema.GroupVersionKind) bool {
		return haveEqualHooks(before, after, kind)
	})...)
}

// rulesWithout returns the rules of hooks that no equal webhook in others has.
func rulesWithout(hooks, others []*Hook) []configv1alpha1.RuleWithOperations {
	var found []configv1alpha1.RuleWithOperations
	for _, hook := range hooks {
		for _, rule := range hook.Rules {
			if !slices.ContainsFunc(others, func(other *Hook) bool { return hook.CallsLike(other) && other.hasRule(rule) }) {
				found = append(found, rule)
			}
		}
	}
	return found
}

// CallsLike reports whether both webhooks have the same ID, address, CA bundle and timeout, or are both
// nil.
func (h *Hook) CallsLike(other *Hook) bool {
	if h == other {
		return true
	}
	return h != nil && other != nil && h.ID == other.ID && h.Timeout == other.Timeout && h.SendsTimeout == other.SendsTimeout &&
		reflect.DeepEqual(h.Client, other.Client)
}

func (h *Hook) hasRule(rule configv1alpha1.RuleWithOperations) bool {
	return slices.ContainsFunc(h.Rules, func(each configv1alpha1.RuleWithOperations) bool { return reflect.DeepEqual(each, rule) })
}

// listKinds returns the kinds that the rules select. ok is false if a rule contains "*", or if there are
// more than maxListedKinds.
func listKinds(rules []configv1alpha1.RuleWithOperations) (kinds []schema.GroupVersionKind, ok bool) {
	for _, rule := range rules {
		if slices.Contains(rule.APIGroups, all) || slices.Contains(rule.APIVersions, all) || slices.Contains(rule.Kinds, all) {
			return nil, false
		}
		for _, group := range rule.APIGroups {
			for _, version := range rule.APIVersions {
				for _, kind := range rule.Kinds {
					if len(kinds) == maxListedKinds {
						return nil, false
					}
					kinds = append(kinds, schema.GroupVersionKind{Group: group, Version: version, Kind: kind})
				}
			}
		}
	}
	return kinds, true
}

func haveEqualHooks(before, after []*Hook, kind schema.GroupVersionKind) bool {
	return !slices.ContainsFunc(interpreter.ScriptOperations(), func(operation interpreter.ScriptOperation) bool {
		return !HookFor(before, operation.Name, kind).CallsLike(HookFor(after, operation.Name, kind))
	})
}
