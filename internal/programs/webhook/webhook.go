// Package webhook runs admission outside an API server: the program karmada-webhook validates,
// defaults and converts objects of Karmada over HTTPS.
//
// Replicas need no leader election, because they are stateless. A new serving certificate is
// loaded without a restart.
package webhook

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/dynamic"

	"karmada.io/karmada/internal/access/quotas"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/servers/admission"
)

// New returns the component with its default options. If a control plane runs in one process, it
// runs admission inside its API server, with the rules of these options. Then the server of the
// component only converts objects.
func New(set *gates.Set) programs.Component {
	return programs.Component{
		Name: programs.Webhook, Help: "validates, defaults and converts the objects of Karmada for its API server",
		Options: &Rules{gates: set}, Server: &programs.Server{New: newConversionServer}, Metrics: programs.CollectedMetrics(newCollectors),
		NewProgram: func(_ programs.Component, set *gates.Set) command.Options { return NewOptions(set) },
	}
}

// Run serves until ctx ends.
func (o *Options) Run(ctx context.Context) error {
	reviewer, err := o.reviewer(ctx)
	if err != nil {
		return err
	}
	server, err := NewServer(ctx, o, reviewer)
	if err != nil {
		return err
	}
	return server.Run(ctx)
}

// reviewer returns the reviewer that the flags configure. The reviewer reads from the control
// plane. If it enforces quotas, it watches the control plane until ctx ends.
func (o *Options) reviewer(ctx context.Context) (admission.Reviewer, error) {
	config, err := o.Connection.Config(programs.Webhook)
	if err != nil {
		return admission.Reviewer{}, err
	}
	reviewer, err := o.Rules.Reviewer(config) //nolint:contextcheck // requests share the lists of the reviewer, also while the server drains
	if err != nil || !reviewer.EnforceQuotas {
		return reviewer, err
	}
	karmada, err := dynamic.NewForConfig(config)
	if err != nil {
		return reviewer, fmt.Errorf("making a client of the control plane: %w", err)
	}
	enforcer := quotas.NewEnforcer(karmada, false, time.Now)
	go enforcer.Run(ctx)
	reviewer.Quota = enforcer.Check
	return reviewer, nil
}
