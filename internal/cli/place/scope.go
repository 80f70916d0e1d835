package place

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Scopes of an operation.
const (
	ScopeKarmada = "karmada"
	ScopeMembers = "members"
	ScopeAll     = "all"
)

// Scope is the value of --operation-scope: on which side of the control plane a
// command acts.
type Scope struct {
	value   string
	allowed []string
	given   bool
}

// AddScope adds the flag. The scope is karmada unless the user says otherwise.
func AddScope(cmd *cobra.Command, scope *Scope, usage string, allowed ...string) {
	*scope = Scope{value: ScopeKarmada, allowed: allowed}
	cmd.Flags().VarP(scope, "operation-scope", "s", usage)
	_ = cmd.RegisterFlagCompletionFunc("operation-scope", cobra.FixedCompletions(allowed, cobra.ShellCompDirectiveNoFileComp))
}

// String is the scope.
func (s *Scope) String() string { return s.value }

// Type is the name of the type in help.
func (s *Scope) Type() string { return "operationScope" }

// Set takes one of the allowed scopes.
func (s *Scope) Set(value string) error {
	if !slices.Contains(s.allowed, value) {
		last := len(s.allowed) - 1
		return fmt.Errorf("unsupported value %q of --operation-scope: use %s or %s", value, strings.Join(s.allowed[:last], ", "), s.allowed[last])
	}
	s.value, s.given = value, true
	return nil
}

// Imply sets what follows from other flags, unless the user gave a scope.
func (s *Scope) Imply(value string) {
	if !s.given {
		s.value = value
	}
}

// Karmada tells whether the scope includes the control plane.
func (s *Scope) Karmada() bool { return s.value != ScopeMembers }

// Members tells whether the scope includes members.
func (s *Scope) Members() bool { return s.value != ScopeKarmada }
