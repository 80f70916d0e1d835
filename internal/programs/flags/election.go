package flags

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// Election is how the replicas of a program agree on the one that works. They
// compete for a Lease of the control plane.
type Election struct {
	// Enabled is off for a program that runs alone.
	Enabled bool
	// Namespace and Name are the Lease.
	Namespace, Name string
	// LeaseDuration is how long the others wait for a leader that is silent,
	// RenewDeadline how long a leader tries to renew before it gives up, RetryPeriod
	// the pause between two tries.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

// DefaultElection competes for a Lease of that name.
func DefaultElection(name string) Election {
	return Election{
		Enabled: true, Namespace: clusterv1alpha1.NamespaceKarmadaSystem, Name: name,
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
	}
}

// AddFlags adds the flags that all components with an election have.
func (e *Election) AddFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&e.Enabled, "leader-elect", e.Enabled,
		"Elect one of several replicas to work; the others stand by. A program that runs alone needs none.")
	flags.StringVar(&e.Namespace, "leader-elect-resource-namespace", e.Namespace, "Namespace of the Lease that replicas compete for.")
	flags.DurationVar(&e.LeaseDuration, "leader-elect-lease-duration", e.LeaseDuration,
		"How long replicas that stand by wait for a silent leader before they take over.")
	flags.DurationVar(&e.RenewDeadline, "leader-elect-renew-deadline", e.RenewDeadline,
		"How long a leader tries to renew its Lease before it ends. Less than the lease duration.")
	flags.DurationVar(&e.RetryPeriod, "leader-elect-retry-period", e.RetryPeriod,
		"Pause between two tries to take or renew the Lease. Less than the renew deadline.")
}

// AddNameFlag adds the flag for the name of the Lease, which some components have.
func (e *Election) AddNameFlag(flags *pflag.FlagSet) {
	flags.StringVar(&e.Name, "leader-elect-resource-name", e.Name, "Name of the Lease that replicas compete for.")
}

// jitter is how much longer than the retry period the library may wait.
const jitter = 1.2

// Validate returns the mistakes.
func (e *Election) Validate() error {
	if !e.Enabled {
		return nil
	}
	var errs []error
	if e.Name == "" {
		errs = append(errs, errors.New("--leader-elect-resource-name must not be empty: replicas need a Lease to compete for"))
	}
	if e.Namespace == "" {
		errs = append(errs, errors.New("--leader-elect-resource-namespace must not be empty: replicas need a Lease to compete for"))
	}
	if e.RetryPeriod <= 0 {
		errs = append(errs, fmt.Errorf("--leader-elect-retry-period %s: must be positive", e.RetryPeriod))
	}
	if float64(e.RenewDeadline) <= jitter*float64(e.RetryPeriod) {
		errs = append(errs, fmt.Errorf("--leader-elect-renew-deadline %s: must exceed %v times the retry period of %s, else one failure ends the leader",
			e.RenewDeadline, jitter, e.RetryPeriod))
	}
	if e.LeaseDuration < time.Second || e.LeaseDuration <= e.RenewDeadline {
		errs = append(errs, fmt.Errorf("--leader-elect-lease-duration %s: must be a second at least, and exceed the renew deadline of %s, else two would lead at once",
			e.LeaseDuration, e.RenewDeadline))
	}
	return errors.Join(errs...)
}
