package controllermanager

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/controllers/binding"
	"karmada.io/karmada/internal/controllers/cluster"
	"karmada.io/karmada/internal/controllers/dependencies"
	"karmada.io/karmada/internal/controllers/detector"
	"karmada.io/karmada/internal/controllers/execution"
	"karmada.io/karmada/internal/controllers/namespace"
	"karmada.io/karmada/internal/domain/tenancy"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/flags"
)

// Workers contains, for each kind of object, the number of objects that are reconciled in
// parallel. Namespaces is a factor: see NamespaceClusterPairs.
type Workers struct {
	Clusters, Templates, Dependents              int
	Policies, ClusterPolicies                    int
	Bindings, ClusterBindings, Works, Namespaces int
}

// DefaultWorkers returns the default number of workers for each kind of object.
func DefaultWorkers() Workers {
	templates, bindings := detector.DefaultOptions(), binding.DefaultOptions()
	return Workers{
		Clusters: cluster.DefaultOptions().Workers, Templates: templates.Workers, Dependents: dependencies.DefaultOptions().Workers,
		Policies: templates.PolicyWorkers, ClusterPolicies: templates.ClusterPolicyWorkers,
		Bindings: bindings.Workers, ClusterBindings: bindings.ClusterWorkers, Works: execution.DefaultOptions().Workers, Namespaces: 1,
	}
}

// NamespaceClusterPairs returns the number of pairs of a Namespace and a cluster that are
// reconciled in parallel. It is a multiple of Namespaces.
func (w *Workers) NamespaceClusterPairs() int {
	return w.Namespaces * namespace.DefaultOptions().Workers
}

// workersFlag is a flag for the number of parallel workers of a kind.
type workersFlag struct {
	flag, objects string
	count         *int
}

func (w *Workers) rows() []workersFlag {
	return []workersFlag{
		{"concurrent-cluster-propagation-policy-syncs", "ClusterPropagationPolicies", &w.ClusterPolicies},
		{"concurrent-cluster-syncs", "Clusters", &w.Clusters},
		{"concurrent-clusterresourcebinding-syncs", "ClusterResourceBindings", &w.ClusterBindings},
		{"concurrent-dependent-resource-syncs", "dependencies of templates", &w.Dependents},
		{"concurrent-namespace-syncs", "Namespaces, each for five clusters,", &w.Namespaces},
		{"concurrent-propagation-policy-syncs", "PropagationPolicies", &w.Policies},
		{"concurrent-resource-template-syncs", "resource templates", &w.Templates},
		{"concurrent-resourcebinding-syncs", "ResourceBindings", &w.Bindings},
		{"concurrent-work-syncs", "Works of each cluster", &w.Works},
	}
}

// AddFlags implements programs.Options.
func (w *Workers) AddFlags(set *pflag.FlagSet) {
	for _, row := range w.rows() {
		set.IntVar(row.count, row.flag, *row.count, "Number of "+row.objects+" that are reconciled in parallel.")
	}
}

// Validate implements programs.Options.
func (w *Workers) Validate() error {
	var errs []error
	for _, row := range w.rows() {
		if *row.count < 1 {
			errs = append(errs, fmt.Errorf("--%s %d: must be at least 1", row.flag, *row.count))
		}
	}
	return errors.Join(errs...)
}

// Propagation selects the APIs and namespaces that are never propagated. The APIs and namespaces
// of Karmada are always excluded.
type Propagation struct {
	// SkippedAPIs are APIs in the format of --skipped-propagating-apis.
	SkippedAPIs string
	// SkippedNamespaces are regular expressions that must match the full name of a namespace.
	SkippedNamespaces []string
}

// DefaultPropagation skips the namespaces of Kubernetes.
func DefaultPropagation() Propagation { return Propagation{SkippedNamespaces: []string{"kube-.*"}} }

// AddFlags implements programs.Options.
func (p *Propagation) AddFlags(set *pflag.FlagSet) {
	set.StringVar(&p.SkippedAPIs, "skipped-propagating-apis", p.SkippedAPIs,
		"APIs whose objects are never propagated, in addition to the APIs of Karmada: group, group/version, v1/kind or group/version/kind,kind; separated by semicolons.")
	set.StringSliceVar(&p.SkippedNamespaces, "skipped-propagating-namespaces", p.SkippedNamespaces,
		"Regular expressions for the names of namespaces that are never propagated. An expression must match the full name. Objects in these namespaces are not propagated either.")
}

// Validate implements programs.Options.
func (p *Propagation) Validate() error {
	_, err := p.rules()
	return err
}

// rules parses the options and returns the resulting rules.
func (p *Propagation) rules() (tenancy.PropagationRules, error) {
	apis, apiErr := tenancy.ParseSkippedAPIs(p.SkippedAPIs)
	if apiErr != nil {
		apiErr = fmt.Errorf("--skipped-propagating-apis: %w", apiErr)
	}
	namespaces, err := tenancy.ParseSkippedNamespaces(p.SkippedNamespaces)
	if err != nil {
		err = fmt.Errorf("--skipped-propagating-namespaces: %w", err)
	}
	return tenancy.PropagationRules{APIs: apis, Namespaces: namespaces}, errors.Join(apiErr, err)
}

// Members are the options for connections to members, and the resync period.
type Members struct {
	// Rate limits the requests to each member.
	Rate flags.Rate
	// Resync is the time between two resyncs, which process all objects in all caches again. 0
	// disables resyncs.
	Resync time.Duration
}

// DefaultMembers returns the default options, which do not limit the rate of requests.
func DefaultMembers() Members { return Members{Rate: flags.DefaultRate()} }

// AddFlags implements programs.Options.
func (m *Members) AddFlags(set *pflag.FlagSet) {
	m.Rate.AddFlags(set, "cluster-api", "the API server of each member cluster")
	set.DurationVar(&m.Resync, "resync-period", m.Resync,
		"Period at which all watched objects are reconciled again. 0 disables these resyncs, because watches already deliver every change.")
}

// Validate implements programs.Options.
func (m *Members) Validate() error {
	return errors.Join(m.Rate.Validate(), flags.ValidateNotNegative("resync-period", m.Resync))
}

func (m *Members) configureHost(o *programs.HostOptions) {
	o.Resync = m.Resync
	if qps, burst := m.Rate.Limit(); qps > 0 {
		o.MemberThrottle = member.Throttle{QPS: qps, Burst: burst}
	}
}
