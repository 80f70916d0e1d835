package scheduling

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/descheduler"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/flags"
	"karmada.io/karmada/internal/programs/gates"
)

// DeschedulerOptions are the options of the descheduler that flags set.
type DeschedulerOptions struct {
	Descheduler descheduler.Options
	Estimators  EstimatorClientOptions
}

// DefaultDeschedulerOptions returns the default options.
func DefaultDeschedulerOptions() *DeschedulerOptions {
	return &DeschedulerOptions{Descheduler: descheduler.DefaultOptions(), Estimators: DefaultEstimatorClientOptions()}
}

// NewDescheduler returns the component with its default options.
func NewDescheduler(*gates.Set) programs.Component { return DefaultDeschedulerOptions().Component() }

// Component returns the component with these options.
func (o *DeschedulerOptions) Component() programs.Component {
	return programs.Component{
		Name: programs.Descheduler, Help: "removes replicas from clusters that cannot run them",
		RequiredKinds: []client.Object{&clusterv1alpha1.Cluster{}, &workv1alpha2.ResourceBinding{}},
		Options:       o, Add: o.add, OwnGates: true,
		NewProgram: programs.Process{HealthAddress: ":10358", HasMasterFlag: true}.New,
	}
}

func (o *DeschedulerOptions) add(h *programs.Host) error {
	pool, err := o.Estimators.AddPool(h, false)
	if err != nil {
		return err
	}
	return descheduler.Add(h.Manager, pool, o.Descheduler)
}

// AddFlags implements programs.Options.
func (o *DeschedulerOptions) AddFlags(set *pflag.FlagSet) {
	o.Estimators.AddFlags(set)
	set.DurationVar(&o.Descheduler.Interval, "descheduling-interval", o.Descheduler.Interval,
		"Interval at which the descheduler searches for bindings whose replicas are not ready.")
	set.DurationVar(&o.Descheduler.UnschedulableThreshold, "unschedulable-threshold", o.Descheduler.UnschedulableThreshold,
		"How long a Pod must be unschedulable before its replica is removed from the cluster.")
}

// Validate implements programs.Options.
func (o *DeschedulerOptions) Validate() error {
	errs := []error{o.Estimators.Validate(), flags.ValidateNotNegative("unschedulable-threshold", o.Descheduler.UnschedulableThreshold)}
	if o.Descheduler.Interval <= 0 {
		errs = append(errs, fmt.Errorf("--descheduling-interval %s: must be positive", o.Descheduler.Interval))
	}
	return errors.Join(errs...)
}
