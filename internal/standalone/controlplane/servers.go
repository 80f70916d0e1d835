package controlplane

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"karmada.io/karmada/internal/install/rendering"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/components"
	"karmada.io/karmada/internal/standalone"
)

// startedServers are the servers of components that run in this process.
type startedServers struct {
	// addresses are the addresses of the servers by name of the component.
	addresses map[string]rendering.Address
	// apiServices are the names of the APIServices of the servers.
	apiServices []string
	// absentAPIServices are the names of the APIServices of the servers that the user excludes. They
	// may exist from an earlier start.
	absentAPIServices []string
}

// startServers starts the servers of the components, and waits until the servers respond.
func (c *ControlPlane) startServers(ctx context.Context) (*startedServers, error) {
	c.configuration.SetReviewer(c.newReviewer)
	started := &startedServers{addresses: map[string]rendering.Address{}}
	selected := c.configuration.Servers(c.options.Components)
	for _, component := range c.configuration.Servers(components.SelectableNames()) {
		if !slices.ContainsFunc(selected, func(s programs.Component) bool { return s.Name == component.Name }) {
			started.absentAPIServices = append(started.absentAPIServices, component.Server.APIServices...)
		}
	}
	for _, component := range selected {
		port, err := c.startServer(ctx, &component)
		if err != nil {
			return nil, err
		}
		started.addresses[component.Name] = rendering.Address{Host: "localhost", Port: port}
		started.apiServices = append(started.apiServices, component.Server.APIServices...)
	}
	return started, nil
}

// startServer starts the server of one component and returns its port.
func (c *ControlPlane) startServer(ctx context.Context, component *programs.Component) (int, error) {
	listener, err := standalone.Listen(standalone.Loopback, c.options.Ports[component.Name])
	if err != nil {
		return 0, err
	}
	certFile, keyFile := c.ServingCert()
	server, err := component.Server.New(ctx, programs.ControlPlane{
		Karmada: c.InProcessConfig(), EtcdFlags: c.EtcdFlags(), Listener: listener, CertFile: certFile, KeyFile: keyFile,
		Dir: filepath.Join(c.options.Dir, component.Name),
	})
	if err != nil {
		return 0, fmt.Errorf("creating %s: %w", component.Name, err)
	}
	c.Run(ctx, component.Name, server.Run)
	port := standalone.ListenerPort(listener)
	if server.Ready == nil {
		return port, nil
	}
	select {
	case <-server.Ready:
		return port, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(availableTimeout):
		return 0, fmt.Errorf("%s is not ready after %s", component.Name, availableTimeout)
	}
}
