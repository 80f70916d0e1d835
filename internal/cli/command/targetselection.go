package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// memberTimeout is the time limit for a member's first response. The cluster proxy has a shorter limit and returns
// a more precise error.
const memberTimeout = 20 * time.Second

// Selection is the target that a command's flags select.
type Selection struct {
	ClientFlags
	// Target is the selected target. Resolve sets it.
	Target Target

	scope   Scope
	cluster string
	// hasScope is true if the command has the flag --operation-scope.
	hasScope bool
	// isMemberRequired is true if the command acts only in members.
	isMemberRequired bool
}

// AddScopeFlags adds the flags that select the control plane or a member.
func (s *Selection) AddScopeFlags(cmd *cobra.Command) {
	s.hasScope = true
	AddScope(cmd, &s.scope, "cluster to act in: karmada for the control plane, or members together with --cluster", ScopeKarmada, ScopeMembers)
	s.addClusterFlag(cmd, "member to act in")
}

// AddMemberFlag adds the flag that selects a member.
func (s *Selection) AddMemberFlag(cmd *cobra.Command) {
	s.isMemberRequired = true
	s.addClusterFlag(cmd, "member to act in; required")
}

func (s *Selection) addClusterFlag(cmd *cobra.Command, usage string) {
	s.setTarget = s.SetFromFlags
	cmd.Flags().StringVarP(&s.cluster, "cluster", "C", "", usage)
	s.Program.CompleteClusters(cmd, "cluster", &s.Context)
}

// ValidateFlags returns a usage error if the flags are invalid. It sends no request. If the user named a member
// without a scope, ValidateFlags sets the scope to members.
func (s *Selection) ValidateFlags() error {
	if s.cluster != "" {
		s.scope.SetDefault(ScopeMembers)
	}
	member := s.isMemberRequired || s.hasScope && s.scope.IncludesMembers()
	switch {
	case strings.Contains(s.cluster, ","):
		return NewUsageError("--cluster %s: this command acts in one member only", s.cluster)
	case s.isMemberRequired && s.cluster == "":
		return NewUsageError("a cluster must be specified: set the member with --cluster")
	case member && s.cluster == "":
		return NewUsageError("a member cluster must be specified: --operation-scope members needs --cluster")
	case !member && s.cluster != "":
		return NewUsageError("--cluster needs --operation-scope members, not karmada")
	}
	return nil
}

// Resolve sets Target. It returns an error if the kubeconfig has no control plane, or if the member does not exist;
// the error then lists the existing members.
func (s *Selection) Resolve(ctx context.Context) error {
	if s.cluster == "" {
		return s.VerifyKubeconfig()
	}
	clusters, err := s.ClusterClient()
	if err != nil {
		return err
	}
	if _, err := clusters.Get(ctx, s.cluster); err != nil {
		return err
	}
	s.Target = Target{Cluster: s.cluster}
	return s.verifyMember(ctx)
}

// verifyMember returns an error if the member does not respond or rejects the user. Without it, kubectl would retry
// for a long time and return a less precise error.
func (s *Selection) verifyMember(ctx context.Context) error {
	timeoutErr := fmt.Errorf("no response from %s within %s: \"%s get clusters\" shows whether it is ready", s.Target, memberTimeout,
		s.Program.Name)
	ctx, cancel := context.WithTimeoutCause(ctx, memberTimeout, timeoutErr)
	defer cancel()
	err := VerifyReachable(ctx, s.NewFactory(&s.Target, 0), s.Target)
	if errors.Is(err, context.DeadlineExceeded) {
		return context.Cause(ctx)
	}
	return err
}

// SetFromFlags sets Target without sending a request.
func (s *Selection) SetFromFlags() {
	if s.ValidateFlags() == nil {
		s.Target = Target{Cluster: s.cluster}
	}
}
