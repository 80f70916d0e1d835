// Package webhook answers "how does admission run outside an API server?": the program
// karmada-webhook validates, defaults and converts objects of Karmada over HTTPS.
//
// Replicas need no leader election, because they are stateless. A new serving certificate is
// loaded without a restart.
package webhook

import (
	"context"
	"fmt"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/component-base/featuregate"

	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/servers/admission"
)

// Name is the name of the program.
const Name = "karmada-webhook"

// Program is karmada-webhook.
func Program() command.Program {
	return command.Program{
		Name: Name,
		Help: "validates, defaults and converts the objects of Karmada for its API server",
		New:  func(set *gates.Set) command.Options { return NewOptions(set) },
	}
}

// Run serves until ctx ends.
func (o *Options) Run(ctx context.Context) error {
	reviewer, err := o.reviewer()
	if err != nil {
		return err
	}
	server, err := New(ctx, o, reviewer)
	if err != nil {
		return err
	}
	return server.Run(ctx)
}

// reviewer returns the reviewer that is configured by the flags and reads from the control
// plane.
func (o *Options) reviewer() (admission.Reviewer, error) {
	config, err := o.Connection.Config(Name)
	if err != nil {
		return admission.Reviewer{}, err
	}
	karmada, err := dynamic.NewForConfig(config)
	if err != nil {
		return admission.Reviewer{}, fmt.Errorf("making a client of the control plane: %w", err)
	}
	resources, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return admission.Reviewer{}, fmt.Errorf("making a client of the control plane: %w", err)
	}
	reviewer := admission.Reviewer{Rules: admission.DefaultRules(), Customizations: admission.StoredCustomizations(karmada)}
	reviewer.Rules.ServedKinds, reviewer.Rules.ClusterNames = admission.ServedKinds(resources), admission.StoredClusters(karmada)
	reviewer.Rules.AllowNoExecuteTaints = o.AllowNoExecuteTaints
	reviewer.Rules.MultiplePodTemplates = o.gates.Enabled(gates.MultiplePodTemplatesScheduling)
	reviewer.Rules.OverrideIdentity = o.gates.Enabled(gates.OverrideIdentity)
	reviewer.LargeStatus = o.gates.Enabled(gates.LargeStatus)
	reviewer.Rules.IsGateDisabled = func(gate string) bool { return !o.gates.Enabled(featuregate.Feature(gate)) }
	return reviewer, nil
}
