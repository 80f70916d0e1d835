package override

import (
	"errors"
	"fmt"
	"strings"

	"karmada.io/karmada/internal/domain/jsonedit"
)

// RuleError identifies the entry of a policy that cannot be applied to a manifest, and describes
// how the author of the policy can correct the entry. Retries do not help until a user changes the
// policy.
type RuleError struct {
	// Policy is the kind and name of the policy.
	Policy string
	// Rule is the index of the rule in the policy, from 0.
	Rule int
	// Overrider is the field of the overrider in the policy, such as "plaintext". It is empty if no
	// single entry caused the error.
	Overrider string
	// Field is the path of the failed entry in the policy.
	Field string
	// Path is the JSON pointer into the manifest. It is empty if the entry has no JSON pointer.
	Path string
	// Remedy is a hint to the author of the policy, as an imperative clause. It may be empty.
	Remedy string
	// Err is the cause.
	Err error
}

func (r *RuleError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "applying %s, %s", r.Policy, r.Field)
	if r.Path != "" {
		fmt.Fprintf(&text, " at %q", r.Path)
	}
	fmt.Fprintf(&text, ": %v", r.Err)
	if r.Remedy != "" {
		fmt.Fprintf(&text, "; %s", r.Remedy)
	}
	return text.String()
}

// Unwrap returns the cause.
func (r *RuleError) Unwrap() error { return r.Err }

// mismatchError is the cause of a RuleError, with the path in the manifest and the remedy.
type mismatchError struct {
	path   string
	remedy string
	err    error
}

func (m *mismatchError) Error() string { return m.err.Error() }
func (m *mismatchError) Unwrap() error { return m.err }

func mismatchf(path, remedy, format string, args ...any) error {
	return &mismatchError{path: path, remedy: remedy, err: fmt.Errorf(format, args...)}
}

func (r rule) wrapError(overrider string, index int, err error) error {
	return withLocation(r.newRuleError(overrider, index, err))
}

func (r rule) newRuleError(overrider string, index int, err error) *RuleError {
	return &RuleError{
		Policy: r.policy, Rule: r.index, Overrider: overrider,
		Field: fmt.Sprintf("%s.%s[%d]", r.field, overrider, index), Err: err,
	}
}

// invalidResultError returns the error for a rule whose entries were all applied, but whose result is
// not a valid object.
func (r rule) invalidResultError(err error) error {
	return withLocation(&RuleError{Policy: r.policy, Rule: r.index, Field: r.field, Err: err})
}

func withLocation(failure *RuleError) *RuleError {
	failure.Path, failure.Remedy = placeOf(failure.Err)
	return failure
}

// placeOf returns the path in the manifest and the remedy that an error has. Both can be empty.
func placeOf(err error) (path, remedy string) {
	var mismatch *mismatchError
	if errors.As(err, &mismatch) {
		return mismatch.path, mismatch.remedy
	}
	var missing *jsonedit.PointerError
	if errors.As(err, &missing) {
		return missing.Pointer, missing.Remedy
	}
	return "", ""
}
