package place

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"karmada.io/karmada/internal/cli/command"
)

// memberPatience is how long a member may take to answer at all. The control plane
// itself gives up a bit earlier and says more.
const memberPatience = 20 * time.Second

// Choice is the one place that the flags of a command choose.
type Choice struct {
	Access
	// Place is the chosen one, once Resolve has returned.
	Place Place

	scope   Scope
	cluster string
	// sides tells that the user may choose between the control plane and a member.
	sides bool
	// always tells that the command acts in members only.
	always bool
}

// AddEither adds flags that choose the control plane or a member.
func (c *Choice) AddEither(cmd *cobra.Command) {
	c.sides = true
	AddScope(cmd, &c.scope, "where to act: karmada, the control plane, or members, with --cluster", ScopeKarmada, ScopeMembers)
	c.addCluster(cmd, "member to act in")
}

// AddMember adds the flag that chooses a member.
func (c *Choice) AddMember(cmd *cobra.Command) {
	c.always = true
	c.addCluster(cmd, "member to act in; required")
}

func (c *Choice) addCluster(cmd *cobra.Command, usage string) {
	c.guess = c.Guess
	cmd.Flags().StringVarP(&c.cluster, "cluster", "C", "", usage)
	c.Program.CompleteClusters(cmd, "cluster", &c.Context)
}

// CheckFlags finds wrong usage before anybody is asked. Who names a member means
// it, unless the scope says otherwise.
func (c *Choice) CheckFlags() error {
	if c.cluster != "" {
		c.scope.Imply(ScopeMembers)
	}
	member := c.always || c.sides && c.scope.Members()
	switch {
	case strings.Contains(c.cluster, ","):
		return command.Wrong("--cluster %s: this command acts in one member; name one", c.cluster)
	case c.always && c.cluster == "":
		return command.Wrong("a cluster must be specified: name the member with --cluster")
	case member && c.cluster == "":
		return command.Wrong("a member cluster must be specified: --operation-scope members needs --cluster")
	case !member && c.cluster != "":
		return command.Wrong("--cluster needs --operation-scope members, not karmada")
	}
	return nil
}

// Resolve sets Place. There must be a control plane, and a member must be a Cluster
// of it; the error lists those that are.
func (c *Choice) Resolve(ctx context.Context) error {
	if c.cluster == "" {
		return c.Check()
	}
	clusters, err := c.Clusters()
	if err != nil {
		return err
	}
	if _, err := clusters.Get(ctx, c.cluster); err != nil {
		return err
	}
	c.Place = Place{Cluster: c.cluster}
	return c.tryMember(ctx)
}

// tryMember finds out early that a member does not answer, or not this user: kubectl
// would try for a long time, and tell less.
func (c *Choice) tryMember(ctx context.Context) error {
	late := fmt.Errorf("no answer from %s within %s: \"%s get clusters\" shows whether it is ready", c.Place, memberPatience, c.Program.Name)
	ctx, cancel := context.WithTimeoutCause(ctx, memberPatience, late)
	defer cancel()
	err := Reach(ctx, c.Factory(&c.Place, 0), c.Place)
	if errors.Is(err, context.DeadlineExceeded) {
		return context.Cause(ctx)
	}
	return err
}

// Guess sets Place without asking anybody whether it is there.
func (c *Choice) Guess() {
	if c.CheckFlags() == nil {
		c.Place = Place{Cluster: c.cluster}
	}
}
