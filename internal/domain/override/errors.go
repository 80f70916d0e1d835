package override

import (
	"errors"
	"fmt"
	"strings"
)

// RuleError tells which line of which policy does not fit a manifest and what its
// author can do about it. It is the user's to fix: trying again changes nothing.
type RuleError struct {
	// Policy is kind and name of the policy.
	Policy string
	// Rule counts the policy's rules from 0.
	Rule int
	// Overrider names the kind of overrider, as in the policy: "plaintext". It is
	// empty when no single entry is to blame.
	Overrider string
	// Field is where the failing entry stands in the policy.
	Field string
	// Path is the JSON pointer into the manifest; empty when the entry has none.
	Path string
	// Remedy is a hint, an imperative clause; empty when there is none to give.
	Remedy string
	// Err is the cause.
	Err error
}

func (e *RuleError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "applying %s, %s", e.Policy, e.Field)
	if e.Path != "" {
		fmt.Fprintf(&text, " at %q", e.Path)
	}
	fmt.Fprintf(&text, ": %v", e.Err)
	if e.Remedy != "" {
		fmt.Fprintf(&text, "; %s", e.Remedy)
	}
	return text.String()
}

// Unwrap is the cause.
func (e *RuleError) Unwrap() error { return e.Err }

// mismatchError is a cause that knows its place in the manifest and its remedy.
type mismatchError struct {
	path   string
	remedy string
	// orphan tells that what should hold the field is missing too.
	orphan bool
	err    error
}

func (m *mismatchError) Error() string { return m.err.Error() }
func (m *mismatchError) Unwrap() error { return m.err }

func mismatchf(path, remedy, format string, args ...any) error {
	return &mismatchError{path: path, remedy: remedy, err: fmt.Errorf(format, args...)}
}

func (r rule) fail(overrider string, index int, err error) error {
	return placed(r.at(overrider, index, err))
}

func (r rule) at(overrider string, index int, err error) *RuleError {
	return &RuleError{
		Policy: r.policy, Rule: r.index, Overrider: overrider,
		Field: fmt.Sprintf("%s.%s[%d]", r.field, overrider, index), Err: err,
	}
}

// spoiled says that every entry of the rule fits, but what they leave together is
// no object.
func (r rule) spoiled(err error) error {
	return placed(&RuleError{Policy: r.policy, Rule: r.index, Field: r.field, Err: err})
}

func placed(failure *RuleError) *RuleError {
	var place *mismatchError
	if errors.As(failure.Err, &place) {
		failure.Path, failure.Remedy = place.path, place.remedy
	}
	return failure
}
