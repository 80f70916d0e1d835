package programs

import (
	"context"
	"errors"

	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/flags"
	"karmada.io/karmada/internal/programs/gates"
)

// Process describes the separate program of a component that a host runs. The program has the
// flags of the component, and the flags that exist once in a process: the connection to the
// control plane, leader election, and the addresses of health and metrics.
type Process struct {
	// HealthAddress is the default address of the health server, such as ":10351".
	HealthAddress string
	// HasMasterFlag and HasElectionNameFlag add the flags that only some programs have.
	HasMasterFlag, HasElectionNameFlag bool
}

// New returns the flags of the program that runs a component. A component that a host runs has
// this function as its NewProgram.
func (p Process) New(component Component, set *gates.Set) command.Options {
	return newProcess(component, set, p)
}

// Program returns the executable that runs one component.
func Program(row func(*gates.Set) Component) command.Program {
	described := row(gates.New())
	return command.Program{
		Name: described.Name, Help: described.Help, OwnGates: described.OwnGates,
		New: func(set *gates.Set) command.Options {
			component := row(set)
			return component.NewProgram(component, set)
		},
	}
}

// process is the program of one component that a host runs.
type process struct {
	Process
	component  Component
	gates      *gates.Set
	connection flags.Connection
	election   flags.Election
	serving    flags.Serving
}

func newProcess(component Component, set *gates.Set, p Process) *process {
	return &process{
		Process: p, component: component, gates: set, connection: flags.DefaultConnection(),
		election: flags.DefaultElection(component.Name), serving: flags.DefaultServing(p.HealthAddress),
	}
}

// AddFlags implements command.Options.
func (p *process) AddFlags(set *pflag.FlagSet) {
	p.connection.AddFlags(set)
	if p.HasMasterFlag {
		p.connection.AddMasterFlag(set)
	}
	p.election.AddFlags(set)
	if p.HasElectionNameFlag {
		p.election.AddNameFlag(set)
	}
	p.serving.AddFlags(set)
	p.component.Options.AddFlags(set)
}

// Validate implements command.Options.
func (p *process) Validate() error {
	return errors.Join(p.connection.Validate(), p.election.Validate(), p.serving.Validate(), p.component.Options.Validate())
}

// Run implements command.Options.
func (p *process) Run(ctx context.Context) error {
	p.component.LogIneffectiveFlags(ctx)
	karmada, err := p.connection.Config(p.component.Name)
	if err != nil {
		return err
	}
	return Run(ctx, karmada, p.hostOptions(), p.component)
}

func (p *process) hostOptions() HostOptions {
	o := HostOptions{Gates: p.gates, Election: p.election, Serving: p.serving}
	if p.component.ConfigureHost != nil {
		p.component.ConfigureHost(&o)
	}
	return o
}
