package override

import (
	"errors"
	"fmt"
	"strings"

	"karmada.io/karmada/internal/domain/jsonedit"
)

// RuleError identifies a policy's entry that cannot be applied to a manifest, and describes how to
// correct it. A retry helps only after a user has changed the policy.
type RuleError struct {
	// Policy is the policy's kind and name.
	Policy string
	// Rule is the rule's index in the policy.
	Rule int
	// Overrider is the overrider's field in the policy, such as "plaintext". It is empty if the error
	// is not caused by a single entry.
	Overrider string
	// Field is the entry's field path in the policy.
	Field string
	// Path is a JSON pointer into the manifest. It may be empty.
	Path string
	// Remedy tells the policy's author what to do, as an imperative clause. It may be empty.
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

// mismatchError is a cause of a RuleError that has a path in the manifest and a remedy.
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

// invalidResultError returns the error for a rule whose result is not a valid object.
func (r rule) invalidResultError(err error) error {
	return withLocation(&RuleError{Policy: r.policy, Rule: r.index, Field: r.field, Err: err})
}

func withLocation(failure *RuleError) *RuleError {
	failure.Path, failure.Remedy = locate(failure.Err)
	return failure
}

// locate returns the path in the manifest and the remedy of err. Either may be empty.
func locate(err error) (path, remedy string) {
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
