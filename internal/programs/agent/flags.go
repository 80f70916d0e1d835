package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	domain "karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/flags"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/grant"
)

// What --report-secrets knows.
const (
	kubeCredentials  = "KubeCredentials"
	kubeImpersonator = "KubeImpersonator"
	reportNone       = "None"
)

const withoutEffect = " Without effect: an agent has one cluster."

// AddFlags implements command.Options.
func (o *Options) AddFlags(set *pflag.FlagSet) {
	o.flags = set
	o.addSides(set)
	o.addCluster(set)
	o.addControllers(set)
	o.Election.AddFlags(set)
	o.Serving.AddFlags(set)
	flags.AddEvents(set, &o.Settings.Controllers.Events)
	const queues = "Objects wait for themselves only, so this limit has no effect."
	o.Backoff.AddFlags(set, "Unless --rate-limiter-max-delay is given it is 1m at most, and 30s for a Work that waits for its cluster.", queues)
	set.DurationVar(&o.Resync, "resync-period", o.Resync, "How often everything that is watched is handed out again. 0 is never: every change is told anyway.")
}

func (o *Options) addSides(set *pflag.FlagSet) {
	set.StringVar(&o.Kubeconfig, "karmada-kubeconfig", o.Kubeconfig,
		"Kubeconfig file of the control plane. When it changes, such as a mounted Secret does, its new credentials are used without a restart.")
	set.StringVar(&o.Context, "karmada-context", o.Context, "Context in that kubeconfig, instead of its current one.")
	o.Rate.AddFlags(set, "kube-api", "the API server of the control plane")
	set.StringVar(&o.Member.Kubeconfig, "kubeconfig", o.Member.Kubeconfig,
		"Kubeconfig file of the cluster that the agent is of. If empty, $KUBECONFIG, else the service account of the Pod that the agent runs in.")
	o.Members.AddFlags(set, "cluster-api", "the API server of the cluster")
}

func (o *Options) addCluster(set *pflag.FlagSet) {
	of, rotation := &o.Cluster, &o.Settings.Agent.Rotation
	set.StringVar(&of.Name, "cluster-name", of.Name, "Name of the cluster in the control plane: a DNS label of at most 48 characters. It is refused if another cluster has it.")
	set.StringVar(&of.ClusterNamespace, "cluster-namespace", of.ClusterNamespace, "Namespace, in the control plane and in the cluster, of the accounts and Secrets of the cluster.")
	set.StringVar(&of.Endpoint, "cluster-api-endpoint", of.Endpoint,
		"URL at which the control plane finds the API server of the cluster, for features that go through the control plane. If empty, the one that the agent uses.")
	set.StringVar(&of.ProxyURL, "proxy-server-address", of.ProxyURL, "URL of the proxy on the way from the control plane to the cluster; http, https or socks5.")
	set.StringVar(&of.Provider, "cluster-provider", of.Provider, "Provider of the cluster, for placements.")
	set.StringVar(&of.Region, "cluster-region", of.Region, "Region of the cluster, for placements.")
	set.StringSliceVar(&of.Zones, "cluster-zones", of.Zones, "Zones of the cluster, for placements.")
	set.StringSliceVar(&o.ReportSecrets, "report-secrets", o.ReportSecrets,
		"What the control plane is told: KubeCredentials to do everything in the cluster, KubeImpersonator to act for the users of the cluster proxy, or None.")
	set.StringVar(&rotation.Namespace, "karmada-kubeconfig-namespace", rotation.Namespace,
		"Namespace, in the cluster, of the Secret karmada-kubeconfig that holds the kubeconfig of the control plane.")
	set.DurationVar(&rotation.Interval, "cert-rotation-checking-interval", rotation.Interval, "How often the controller certRotation looks at the client certificate.")
	set.Float64Var(&rotation.Threshold, "cert-rotation-remaining-time-threshold", rotation.Threshold, "Part of its life that is left when the certificate is renewed, between 0 and 1.")
}

func (o *Options) addControllers(set *pflag.FlagSet) {
	known, off := programs.NamesOf(programs.AgentControllers())
	set.StringSliceVar(&o.Controllers, "controllers", o.Controllers, fmt.Sprintf(
		"Controllers to run: * is all that are on by default, x is the controller x, -x is all but x.\nAll controllers: %s.\nOff by default: %s.",
		strings.Join(known, ", "), strings.Join(off, ", ")))
	of, lease := &o.Settings.Controllers, &o.Settings.Agent.Lease
	set.IntVar(&of.Workers.Clusters, "concurrent-cluster-syncs", of.Workers.Clusters, "Clusters that are worked on at once."+withoutEffect)
	set.IntVar(&of.Workers.Works, "concurrent-work-syncs", of.Workers.Works, "Works that are worked on at once.")
	set.DurationVar(&of.StatusPeriod, "cluster-status-update-frequency", of.StatusPeriod, "How often the cluster is looked at.")
	set.DurationVar(&of.Thresholds.Failure, "cluster-failure-threshold", of.Thresholds.Failure, "How long the cluster must be seen failing before it is not Ready.")
	set.DurationVar(&of.Thresholds.Success, "cluster-success-threshold", of.Thresholds.Success, "How long the cluster must be seen healthy before it is Ready again.")
	set.DurationVar(&of.MemberSettle, "cluster-cache-sync-timeout", of.MemberSettle, "How long the first lists of nodes and Pods may take.")
	set.BoolVar(&of.Inventory, "enable-cluster-resource-modeling", of.Inventory, "Watch nodes and Pods of the cluster to sum up its resources and to grade its nodes.")
	set.DurationVar(&lease.Duration, "cluster-lease-duration", lease.Duration, "How long the control plane may count on the agent after a sign of life.")
	set.Float64Var(&lease.RenewFraction, "cluster-lease-renew-interval-fraction", lease.RenewFraction, "Part of that time between two signs of life, between 0 and 1.")
}

// Validate implements command.Options.
func (o *Options) Validate() error {
	known, _ := programs.NamesOf(programs.AgentControllers())
	election, of, agent := o.Election, o.Settings.Controllers, o.Settings.Agent
	election.Name = domain.LeaderLeasePrefix + o.Cluster.Name
	report, err := reported(o.ReportSecrets)
	o.Cluster.Report = report
	errs := []error{
		o.validateName(), err, o.Rate.Validate(), o.Members.Validate(),
		election.Validate(), o.Serving.Validate(), o.Backoff.Validate(),
		programs.CheckSelection("controllers", "controller", o.Controllers, known),
		flags.Positive("cluster-status-update-frequency", of.StatusPeriod), flags.Positive("cluster-lease-duration", agent.Lease.Duration),
		flags.Positive("cert-rotation-checking-interval", agent.Rotation.Interval),
		flags.NotNegative("cluster-failure-threshold", of.Thresholds.Failure), flags.NotNegative("cluster-success-threshold", of.Thresholds.Success),
		flags.NotNegative("cluster-cache-sync-timeout", of.MemberSettle), flags.NotNegative("resync-period", o.Resync),
		fraction("cluster-lease-renew-interval-fraction", agent.Lease.RenewFraction),
		fraction("cert-rotation-remaining-time-threshold", agent.Rotation.Threshold),
	}
	if o.Kubeconfig == "" {
		errs = append(errs, errors.New("--karmada-kubeconfig must name the kubeconfig file of the control plane"))
	}
	if o.Cluster.ClusterNamespace == "" {
		errs = append(errs, errors.New("--cluster-namespace must not be empty: accounts and Secrets of the cluster are there"))
	}
	if of.Workers.Works < 1 {
		errs = append(errs, fmt.Errorf("--concurrent-work-syncs %d: must be at least 1", of.Workers.Works))
	}
	return errors.Join(errs...)
}

func (o *Options) validateName() error {
	switch name := o.Cluster.Name; {
	case name == "":
		return errors.New("--cluster-name must not be empty: the cluster needs a name in the control plane")
	case registration.ValidateName(name) != nil:
		return fmt.Errorf("--cluster-name: %w", registration.ValidateName(name))
	case !domain.ValidName(name):
		return fmt.Errorf("--cluster-name %q: no cluster with an agent can have this name, for names that belong to Karmada come from it; choose another one", name)
	}
	return nil
}

// reported reads --report-secrets.
func reported(names []string) (grant.Reported, error) {
	report := grant.Reported{
		Credentials: slices.Contains(names, kubeCredentials), Impersonator: slices.Contains(names, kubeImpersonator),
	}
	for _, name := range names {
		if name != kubeCredentials && name != kubeImpersonator && name != reportNone {
			return report, fmt.Errorf("--report-secrets %q: must be %s, %s or %s", name, kubeCredentials, kubeImpersonator, reportNone)
		}
	}
	if slices.Contains(names, reportNone) && (report.Credentials || report.Impersonator) {
		return report, fmt.Errorf("--report-secrets: %s cannot be given with others", reportNone)
	}
	return report, nil
}

func fraction(flag string, value float64) error {
	if !(value > 0 && value < 1) {
		return fmt.Errorf("--%s %v: must be more than 0 and less than 1", flag, value)
	}
	return nil
}
