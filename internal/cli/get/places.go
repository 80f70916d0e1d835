package get

import (
	"context"
	"slices"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"karmada.io/karmada/internal/cli/command"
)

// karmadaName is what the column CLUSTER says of the control plane.
const karmadaName = "Karmada"

// place is where objects are looked for.
type place struct {
	name string
	// member tells a member from the control plane.
	member bool
}

// places are where the user wants to look: the control plane first, then members
// by name.
func (o *options) places(ctx context.Context) ([]place, error) {
	config, err := o.program.Karmada(o.karmadaContext).Config()
	if err != nil {
		return nil, err
	}
	var found []place
	if o.scope != scopeMembers {
		found = append(found, place{name: karmadaName})
	}
	if o.scope == scopeKarmada {
		return found, nil
	}
	clusters, err := command.OpenClusters(config)
	if err != nil {
		return nil, err
	}
	existing, err := clusters.Names(ctx)
	if err != nil {
		return nil, err
	}
	if err := command.Missing(o.clusters, existing); err != nil {
		return nil, err
	}
	for _, name := range existing {
		if len(o.clusters) == 0 || slices.Contains(o.clusters, name) {
			found = append(found, place{name: name, member: true})
		}
	}
	return found, nil
}

// factory makes the clients of a place.
func (o *options) factory(where place) cmdutil.Factory {
	flags := genericclioptions.NewConfigFlags(true).WithDiscoveryQPS(command.QueriesPerSecond).WithDiscoveryBurst(command.Burst)
	flags.KubeConfig, flags.Context, flags.Namespace = &o.program.Kubeconfig, &o.karmadaContext, &o.namespace
	flags.WrapConfigFn = func(config *rest.Config) *rest.Config {
		config.QPS, config.Burst = command.QueriesPerSecond, command.Burst
		if where.member {
			config.Host = command.ProxyURL(config.Host, where.name)
		}
		return config
	}
	return cmdutil.NewFactory(flags)
}
