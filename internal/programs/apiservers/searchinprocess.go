package apiservers

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/servers/search"
)

// SearchInProcess are the options of the server in the process of a control plane.
type SearchInProcess struct {
	search.Settings

	flags *pflag.FlagSet
}

// AddFlags implements programs.Options.
func (i *SearchInProcess) AddFlags(set *pflag.FlagSet) {
	i.flags = set
	i.Settings.AddFlags(set)
}

// Validate implements programs.Options.
func (i *SearchInProcess) Validate() error { return errors.Join(i.Settings.Validate()...) }

// newServer returns the server. The server uses the etcd of the control plane.
func (i *SearchInProcess) newServer(ctx context.Context, control programs.ControlPlane) (*programs.RunningServer, error) {
	options, err := i.newOptions(control)
	if err != nil {
		return nil, err
	}
	server, err := search.New(ctx, options)
	if err != nil {
		return nil, err
	}
	return &programs.RunningServer{Run: server.Run, Ready: server.Ready()}, nil
}

// newOptions returns the options of the server.
func (i *SearchInProcess) newOptions(control programs.ControlPlane) (*search.Options, error) {
	options, err := search.NewOptions()
	if err != nil {
		return nil, err
	}
	options.Settings = withOptionalThrottle(i.Settings, i.flags)
	if options.Index == search.IndexDisk && options.IndexDirectory == "" {
		options.IndexDirectory = filepath.Join(control.Dir, "index")
	}
	options.Registerer = metrics.Registry
	// The Clusters are served only after this server is ready, so the server cannot wait for the
	// objects of clusters.
	options.StorageInitializationTimeout = 0
	return options, UseControlPlane(&options.Options, control)
}
