package agent

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	domain "karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/flags"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/enroll"
)

// Values of --report-secrets.
const (
	kubeCredentials  = "KubeCredentials"
	kubeImpersonator = "KubeImpersonator"
	reportNone       = "None"
)

// AddFlags implements command.Options.
func (o *Options) AddFlags(set *pflag.FlagSet) {
	o.flags = set
	o.addConnectionFlags(set)
	o.addClusterFlags(set)
	o.addControllerFlags(set)
	o.Election.AddFlags(set)
	o.Serving.AddFlags(set)
	o.ControllerOptions.AddFlags(set, o.table(), "Has no effect: each object has its own backoff.")
	flags.MarkWithoutEffect(set, flags.BackoffQPS, flags.BackoffBucketSize)
	o.ignored.AddFlags(set)
	set.DurationVar(&o.Resync, "resync-period", o.Resync,
		"Period of the resync of all watched objects. 0 disables it: watches deliver every change.")
}

func (o *Options) addConnectionFlags(set *pflag.FlagSet) {
	set.StringVar(&o.Kubeconfig, "karmada-kubeconfig", o.Kubeconfig,
		"Kubeconfig file of the control plane. When the file changes, for example because a mounted Secret is updated, the new credentials are used without a restart.")
	set.StringVar(&o.Context, "karmada-context", o.Context, "Context in that kubeconfig, instead of its current one.")
	o.Rate.AddFlags(set, "kube-api", "the API server of the control plane")
	set.StringVar(&o.Member.Kubeconfig, "kubeconfig", o.Member.Kubeconfig,
		"Kubeconfig file of the cluster that the agent serves. If empty, $KUBECONFIG, else the service account of the Pod that the agent runs in.")
	o.MemberRate.AddFlags(set, "cluster-api", "the API server of the cluster")
}

func (o *Options) addClusterFlags(set *pflag.FlagSet) {
	cluster, rotation := &o.Cluster, &o.Rotation
	set.StringVar(&cluster.Name, "cluster-name", cluster.Name,
		"Name of the cluster in the control plane: a DNS label of at most 48 characters. Registration fails if another cluster has this name.")
	set.StringVar(&cluster.ClusterNamespace, "cluster-namespace", cluster.ClusterNamespace,
		"Namespace of the service accounts and Secrets of the cluster, in the control plane and in the cluster.")
	set.StringVar(&cluster.Endpoint, "cluster-api-endpoint", cluster.Endpoint,
		"URL at which the control plane reaches the API server of the cluster, for example for the cluster proxy. If empty, the URL that the agent itself uses.")
	set.StringVar(&cluster.ProxyURL, "proxy-server-address", cluster.ProxyURL,
		"URL of the proxy between the control plane and the cluster: http, https or socks5.")
	set.StringVar(&cluster.Provider, "cluster-provider", cluster.Provider, "Provider of the cluster, for placements.")
	set.StringVar(&cluster.Region, "cluster-region", cluster.Region, "Region of the cluster, for placements.")
	set.StringSliceVar(&cluster.Zones, "cluster-zones", cluster.Zones, "Zones of the cluster, for placements.")
	set.StringSliceVar(&o.ReportSecrets, "report-secrets", o.ReportSecrets,
		"Credentials of the cluster that the agent reports to the control plane: KubeCredentials with all permissions in the cluster, KubeImpersonator to impersonate the users of the cluster proxy, or None.")
	set.StringVar(&rotation.Namespace, "karmada-kubeconfig-namespace", rotation.Namespace,
		"Namespace, in the cluster, of the Secret karmada-kubeconfig with the kubeconfig of the control plane.")
	set.DurationVar(&rotation.Interval, "cert-rotation-checking-interval", rotation.Interval,
		"How often the controller certRotation checks the client certificate.")
	set.Float64Var(&rotation.Threshold, "cert-rotation-remaining-time-threshold", rotation.Threshold,
		"The certificate is renewed when this fraction of its lifetime remains, between 0 and 1.")
}

func (o *Options) addControllerFlags(set *pflag.FlagSet) {
	status, lease := &o.ClusterStatus, &o.Lease
	set.IntVar(&o.Workers, "concurrent-work-syncs", o.Workers, "Number of Works that are reconciled in parallel.")
	set.DurationVar(&status.Period, "cluster-status-update-frequency", status.Period, "How often the health of the cluster is checked.")
	set.DurationVar(&status.Thresholds.Failure, "cluster-failure-threshold", status.Thresholds.Failure,
		"How long health checks must fail before the cluster is not Ready.")
	set.DurationVar(&status.Thresholds.Success, "cluster-success-threshold", status.Thresholds.Success,
		"How long health checks must succeed before the cluster is Ready again.")
	set.DurationVar(&status.InventoryTimeout, "cluster-cache-sync-timeout", status.InventoryTimeout,
		"Timeout of the initial cache sync of nodes and Pods.")
	set.BoolVar(&status.Inventory, "enable-cluster-resource-modeling", status.Inventory,
		"Watch the nodes and Pods of the cluster to report its resources and resource models.")
	set.DurationVar(&lease.Duration, "cluster-lease-duration", lease.Duration, "Duration of the Lease that the agent renews as its heartbeat.")
	set.Float64Var(&lease.RenewFraction, "cluster-lease-renew-interval-fraction", lease.RenewFraction,
		"Interval between two renewals, as a fraction of the duration of the Lease, between 0 and 1.")
}

// Validate implements command.Options.
func (o *Options) Validate() error {
	election := o.Election
	election.Name = domain.LeaderLeasePrefix + o.Cluster.Name
	_, err := o.enrollment()
	errs := []error{
		o.validateName(), err, o.Rate.Validate(), o.MemberRate.Validate(),
		election.Validate(), o.Serving.Validate(), o.ControllerOptions.Validate(o.table()), o.ignored.Validate(),
		programs.ValidateClusterStatus(o.ClusterStatus), flags.ValidatePositive("cluster-lease-duration", o.Lease.Duration),
		flags.ValidatePositive("cert-rotation-checking-interval", o.Rotation.Interval), flags.ValidateNotNegative("resync-period", o.Resync),
		validateFraction("cluster-lease-renew-interval-fraction", o.Lease.RenewFraction),
		validateFraction("cert-rotation-remaining-time-threshold", o.Rotation.Threshold),
	}
	if o.Kubeconfig == "" {
		errs = append(errs, errors.New("--karmada-kubeconfig must be the kubeconfig file of the control plane"))
	}
	if o.Cluster.ClusterNamespace == "" {
		errs = append(errs, errors.New("--cluster-namespace must not be empty: it contains the service accounts and Secrets of the cluster"))
	}
	if o.Workers < 1 {
		errs = append(errs, fmt.Errorf("--concurrent-work-syncs %d: must be at least 1", o.Workers))
	}
	return errors.Join(errs...)
}

func (o *Options) validateName() error {
	switch name := o.Cluster.Name; {
	case name == "":
		return errors.New("--cluster-name must not be empty: the cluster needs a name in the control plane")
	case registration.ValidateName(name) != nil:
		return fmt.Errorf("--cluster-name: %w", registration.ValidateName(name))
	case !domain.IsValidName(name):
		return fmt.Errorf("--cluster-name %q: a cluster with an agent cannot have this name, because names derived from it are reserved for Karmada; choose another name", name)
	}
	return nil
}

// enrollment returns the Cluster to register.
func (o *Options) enrollment() (enroll.Enrollment, error) {
	cluster := o.Cluster
	accounts, err := parseReportSecrets(o.ReportSecrets)
	cluster.ReportedAccounts = accounts
	return cluster, err
}

// parseReportSecrets parses --report-secrets.
func parseReportSecrets(names []string) (enroll.ReportedAccounts, error) {
	report := enroll.ReportedAccounts{
		Credentials: slices.Contains(names, kubeCredentials), Impersonator: slices.Contains(names, kubeImpersonator),
	}
	for _, name := range names {
		if name != kubeCredentials && name != kubeImpersonator && name != reportNone {
			return report, fmt.Errorf("--report-secrets %q: must be %s, %s or %s", name, kubeCredentials, kubeImpersonator, reportNone)
		}
	}
	if slices.Contains(names, reportNone) && (report.Credentials || report.Impersonator) {
		return report, fmt.Errorf("--report-secrets: %s excludes all other values", reportNone)
	}
	return report, nil
}

func validateFraction(flag string, value float64) error {
	if !(value > 0 && value < 1) {
		return fmt.Errorf("--%s %v: must be more than 0 and less than 1", flag, value)
	}
	return nil
}
