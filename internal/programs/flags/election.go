package flags

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// Election configures leader election among the replicas of a program. The replicas compete for a
// Lease in the control plane.
type Election struct {
	// Enabled is false for a program that runs as a single replica.
	Enabled bool
	// Namespace and Name identify the Lease.
	Namespace, Name string
	// LeaseDuration is how long other replicas wait after the last renewal by the leader.
	// RenewDeadline is how long a leader tries to renew the Lease before it gives up. RetryPeriod
	// is the time between two attempts.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

// DefaultElection returns a leader election with a Lease of the given name.
func DefaultElection(name string) Election {
	return Election{
		Enabled: true, Namespace: clusterv1alpha1.NamespaceKarmadaSystem, Name: name,
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
	}
}

// AddFlags adds the flags of all components that have leader election.
func (e *Election) AddFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&e.Enabled, "leader-elect", e.Enabled,
		"Elect a leader among the replicas; the other replicas stand by. A single replica needs no election.")
	flags.StringVar(&e.Namespace, "leader-elect-resource-namespace", e.Namespace, "Namespace of the leader election Lease.")
	flags.DurationVar(&e.LeaseDuration, "leader-elect-lease-duration", e.LeaseDuration,
		"How long standby replicas wait after the last renewal of the leader before they take over.")
	flags.DurationVar(&e.RenewDeadline, "leader-elect-renew-deadline", e.RenewDeadline,
		"How long a leader tries to renew its Lease before it exits. Must be less than the lease duration.")
	flags.DurationVar(&e.RetryPeriod, "leader-elect-retry-period", e.RetryPeriod,
		"Time between two attempts to acquire or renew the Lease. Must be less than the renew deadline.")
}

// AddNameFlag adds the flag for the name of the Lease, which some components have.
func (e *Election) AddNameFlag(flags *pflag.FlagSet) {
	flags.StringVar(&e.Name, "leader-elect-resource-name", e.Name, "Name of the leader election Lease.")
}

// jitterFactor is the factor by which client-go may extend the retry period.
const jitterFactor = 1.2

// Validate returns the errors in the values of the flags.
func (e *Election) Validate() error {
	if !e.Enabled {
		return nil
	}
	var errs []error
	if e.Name == "" {
		errs = append(errs, errors.New("--leader-elect-resource-name must not be empty: leader election needs a Lease"))
	}
	if e.Namespace == "" {
		errs = append(errs, errors.New("--leader-elect-resource-namespace must not be empty: leader election needs a Lease"))
	}
	if e.RetryPeriod <= 0 {
		errs = append(errs, fmt.Errorf("--leader-elect-retry-period %s: must be positive", e.RetryPeriod))
	}
	if float64(e.RenewDeadline) <= jitterFactor*float64(e.RetryPeriod) {
		errs = append(errs, fmt.Errorf("--leader-elect-renew-deadline %s: must exceed %v times the retry period of %s, otherwise one failed renewal ends the leader",
			e.RenewDeadline, jitterFactor, e.RetryPeriod))
	}
	if e.LeaseDuration < time.Second || e.LeaseDuration <= e.RenewDeadline {
		errs = append(errs, fmt.Errorf("--leader-elect-lease-duration %s: must be at least 1s and exceed the renew deadline of %s, otherwise two replicas could lead at the same time",
			e.LeaseDuration, e.RenewDeadline))
	}
	return errors.Join(errs...)
}
