package targetcluster

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// The values of --operation-scope.
const (
	ScopeKarmada = "karmada"
	ScopeMembers = "members"
	ScopeAll     = "all"
)

// Scope is the value of --operation-scope. It selects the control plane, members or both.
type Scope struct {
	value   string
	allowed []string
	isSet   bool
}

// AddScope adds the flag --operation-scope. The default is karmada.
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
