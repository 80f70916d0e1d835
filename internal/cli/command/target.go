package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// KarmadaName is the value of the column CLUSTER for the control plane. No member can have this
// name, because names of Clusters are in lower case.
const KarmadaName = "Karmada"

// Target is the cluster in which a command acts: the control plane or a member, which commands reach through the
// cluster proxy with the caller's credentials. The zero value is the control plane.
type Target struct {
	// Cluster is the name of the member. Empty means the control plane.
	Cluster string
}

// IsMember reports whether the target is a member.
func (t Target) IsMember() bool { return t.Cluster != "" }

// Name returns the value of the column CLUSTER.
func (t Target) Name() string {
	if t.IsMember() {
		return t.Cluster
	}
	return KarmadaName
}

// String returns the text that describes the target in messages.
func (t Target) String() string {
	if t.IsMember() {
		return fmt.Sprintf("member %q", t.Cluster)
	}
	return "the control plane"
}

// PrefixError adds the name of the member to the error of a member. It returns an error of the
// control plane unchanged.
func (t Target) PrefixError(err error) error {
	if err == nil || !t.IsMember() {
		return err
	}
	return fmt.Errorf("cluster(%s): %w", t.Cluster, err)
}

// host returns the address of the target. karmada is the address of the control plane.
func (t Target) host(karmada string) string {
	if t.IsMember() {
		return ProxyURL(karmada, t.Cluster)
	}
	return karmada
}

// MergeErrors returns the targets' errors. It adds the members' names to their errors. Members with the same error
// share one line, so that a missing object is not reported once for each member. It returns an error of the control
// plane unchanged.
func MergeErrors(targets []Target, errs []error) []error {
	var merged []error
	isReported := map[string]bool{}
	for i, err := range errs {
		switch {
		case err == nil || isReported[err.Error()]:
		case targets[i].IsMember():
			isReported[err.Error()] = true
			merged = append(merged, fmt.Errorf("cluster(%s): %w", strings.Join(membersWithError(err, targets[i:], errs[i:]), ","), err))
		default:
			merged = append(merged, err)
		}
	}
	return merged
}

// membersWithError returns the names of the members whose errors have the same text.
func membersWithError(wanted error, targets []Target, errs []error) []string {
	var names []string
	for i, err := range errs {
		if targets[i].IsMember() && err != nil && err.Error() == wanted.Error() {
			names = append(names, targets[i].Name())
		}
	}
	return names
}

// JoinErrors returns the merged errors as one error, or nil if there are none.
func JoinErrors(targets []Target, errs []error) error {
	return errors.Join(MergeErrors(targets, errs)...)
}

// The values of --operation-scope.
const (
	ScopeKarmada = "karmada"
	ScopeMembers = "members"
	ScopeAll     = "all"
)

// Scope is the value of --operation-scope: the control plane, members or both.
type Scope struct {
	value   string
	allowed []string
	isSet   bool
}

// AddScope adds the flag --operation-scope with the allowed values. The default is karmada.
func AddScope(cmd *cobra.Command, scope *Scope, usage string, allowed ...string) {
	*scope = Scope{value: ScopeKarmada, allowed: allowed}
	cmd.Flags().VarP(scope, "operation-scope", "s", usage)
	_ = cmd.RegisterFlagCompletionFunc("operation-scope", cobra.FixedCompletions(allowed, cobra.ShellCompDirectiveNoFileComp))
}

// String returns the value.
func (s *Scope) String() string { return s.value }

// Type returns the name of the type in help.
func (s *Scope) Type() string { return "operationScope" }

// Set sets one of the allowed values.
func (s *Scope) Set(value string) error {
	if !slices.Contains(s.allowed, value) {
		last := len(s.allowed) - 1
		return fmt.Errorf("unsupported value %q of --operation-scope: use %s or %s", value, strings.Join(s.allowed[:last], ", "), s.allowed[last])
	}
	s.value, s.isSet = value, true
	return nil
}

// SetDefault sets the value if the user has not set the flag.
func (s *Scope) SetDefault(value string) {
	if !s.isSet {
		s.value = value
	}
}

// IncludesKarmada reports whether the scope includes the control plane.
func (s *Scope) IncludesKarmada() bool { return s.value != ScopeMembers }

// IncludesMembers reports whether the scope includes members.
func (s *Scope) IncludesMembers() bool { return s.value != ScopeKarmada }
