// Package controllermanager defines the controllers and flags of karmada-controller-manager.
//
// The options of one controller are in its row of the table. Options that several controllers
// share are in groups. Flags set both kinds of options, which are passed to the controllers
// unchanged.
package controllermanager

import (
	"errors"

	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "karmada.io/karmada/api/apps/v1alpha1"
	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	remedyv1alpha1 "karmada.io/karmada/api/remedy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/controllers/clustermonitor"
	"karmada.io/karmada/internal/controllers/clusterstatus"
	"karmada.io/karmada/internal/controllers/quotaenforcement"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/flags"
	"karmada.io/karmada/internal/programs/gates"
)

// Options are the options of the controllers.
type Options struct {
	programs.ControllerOptions
	Workers     Workers
	Propagation Propagation
	Evictions   Evictions
	Members     Members
	Deletions   Deletions
	// ClusterStatus, Monitor and Quotas are the options of the controllers with these names.
	ClusterStatus ClusterStatus
	Monitor       Monitor
	Quotas        Quotas

	gates   *gates.Set
	ignored *programs.IgnoredFlags
	table   programs.ControllerTable
	flags   *pflag.FlagSet
}

// Default returns the default options. The feature gates may change until the component is added
// to a host.
func Default(set *gates.Set) *Options {
	o := &Options{
		ControllerOptions: programs.DefaultControllerOptions(), Workers: DefaultWorkers(), Propagation: DefaultPropagation(),
		Evictions: DefaultEvictions(), Members: DefaultMembers(), Deletions: DefaultDeletions(),
		ClusterStatus: ClusterStatus(clusterstatus.DefaultOptions()), Monitor: Monitor(clustermonitor.DefaultOptions()),
		Quotas: Quotas{Period: quotaenforcement.DefaultOptions().Period},
		gates:  set, ignored: newClusterAPIFlags(),
	}
	o.table = o.newTable()
	return o
}

// New returns the component with its default options.
func New(set *gates.Set) programs.Component { return Default(set).Component() }

// Component returns the component with these options.
func (o *Options) Component() programs.Component {
	return programs.Component{
		Name: programs.ControllerManager, Help: "propagates templates to member clusters and aggregates their status",
		RequiredKinds: []client.Object{
			&clusterv1alpha1.Cluster{}, &workv1alpha1.Work{}, &workv1alpha2.ResourceBinding{}, &workv1alpha2.ClusterResourceBinding{},
			&policyv1alpha1.PropagationPolicy{}, &policyv1alpha1.ClusterPropagationPolicy{},
			&policyv1alpha1.OverridePolicy{}, &policyv1alpha1.ClusterOverridePolicy{}, &policyv1alpha1.FederatedResourceQuota{},
			&remedyv1alpha1.Remedy{}, &appsv1alpha1.WorkloadRebalancer{},
		},
		Interprets: true,
		Options:    o, IneffectiveFlags: o.ineffectiveFlags, ConfigureHost: o.configureHost, Add: o.add,
		NewProgram: programs.Process{HealthAddress: ":10357"}.New,
	}
}

// groups returns the options that several controllers share.
func (o *Options) groups() []programs.Options {
	return []programs.Options{&o.Workers, &o.Propagation, &o.Evictions, &o.Members, &o.Deletions, o.ignored, o.table}
}

// AddFlags implements programs.Options.
func (o *Options) AddFlags(set *pflag.FlagSet) {
	o.flags = set
	o.ControllerOptions.AddFlags(set, o.table,
		"Applies to templates and policies, and only without the feature gate ControllerPriorityQueue: the priority queue reconciles changes before retries.")
	for _, group := range o.groups() {
		group.AddFlags(set)
	}
}

// Validate implements programs.Options.
func (o *Options) Validate() error {
	errs := []error{o.ControllerOptions.Validate(o.table)}
	for _, group := range o.groups() {
		errs = append(errs, group.Validate())
	}
	return errors.Join(errs...)
}

func (o *Options) configureHost(h *programs.HostOptions) {
	o.Members.configureHost(h)
	o.Deletions.configureHost(h)
}

// add adds the selected controllers.
func (o *Options) add(h *programs.Host) error { return o.table.AddTo(h, o.Selected) }

// ineffectiveFlags returns the flags that the user gave and that have no effect.
func (o *Options) ineffectiveFlags() []string {
	given := o.IneffectiveFlags(o.table, o.gates)
	if o.gates.Enabled(gates.ControllerPriorityQueue) {
		given = append(given, flags.GivenFlags(o.flags, flags.BackoffQPS, flags.BackoffBucketSize)...)
	}
	if !o.gates.Enabled(gates.Failover) {
		given = append(given, flags.GivenFlags(o.flags, "enable-no-execute-taint-eviction", "no-execute-taint-eviction-purge-mode",
			"resource-eviction-rate")...)
	}
	if !o.gates.Enabled(gates.FederatedQuotaEnforcement) {
		given = append(given, flags.GivenFlags(o.flags, quotaSyncPeriodFlag)...)
	}
	return given
}
