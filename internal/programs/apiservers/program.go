package apiservers

import (
	"context"
	"errors"
	"net"

	"github.com/spf13/pflag"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/restclient" // registers the metrics of requests to the control plane

	"karmada.io/karmada/internal/access/podenvironment"
	"karmada.io/karmada/internal/extensionserver"
	"karmada.io/karmada/internal/programs/command"
)

// Server are the options of an aggregated API server.
type Server interface {
	AddFlags(flags *pflag.FlagSet)
	// Validate returns all mistakes in the options.
	Validate() []error
	// Complete applies the flags that change other options, such as --feature-gates.
	Complete() error
	// Common returns the options that all aggregated API servers have.
	Common() *extensionserver.Options
}

// Start creates a server from its parsed flags, and returns the function that runs it.
type Start[S Server] func(ctx context.Context, server S, flags *pflag.FlagSet) (run func(context.Context) error, err error)

// Program is an aggregated API server that runs as a separate program. It implements command.Options.
type Program[S Server] struct {
	Server S

	name  string
	start Start[S]
	flags *pflag.FlagSet
	// initErr is the error of creating Server, which Validate returns.
	initErr error
}

// NewProgram returns the program with the given name. err is the error of creating server.
func NewProgram[S Server](name string, server S, err error, start Start[S]) *Program[S] {
	if err == nil {
		server.Common().Server.SecureServing.BindAddress = net.ParseIP(podenvironment.DefaultListenAddress(net.IPv4zero.String()))
	}
	return &Program[S]{Server: server, name: name, start: start, initErr: err}
}

// AddFlags implements command.Options.
func (p *Program[S]) AddFlags(set *pflag.FlagSet) {
	if p.initErr == nil {
		p.flags = set
		p.Server.AddFlags(set)
	}
}

// Validate implements command.Options. If the flags are valid, it applies --feature-gates.
func (p *Program[S]) Validate() error {
	if p.initErr != nil {
		return p.initErr
	}
	if errs := p.Server.Validate(); len(errs) > 0 {
		return errors.Join(errs...)
	}
	return p.Server.Complete()
}

// Run implements command.Options.
func (p *Program[S]) Run(ctx context.Context) error {
	if err := command.RegisterBuildInfo(legacyregistry.Registerer()); err != nil {
		return err
	}
	if err := p.Connect(); err != nil {
		return err
	}
	run, err := p.start(ctx, p.Server, p.flags)
	if err != nil {
		return err
	}
	return runWithStorage(ctx, p.Server.Common().Karmada, run)
}
