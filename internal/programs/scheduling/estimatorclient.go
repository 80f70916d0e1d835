package scheduling

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/validation"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/estimators"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/flags"
)

// maxPort is the largest port number.
const maxPort = 65535

// EstimatorClientOptions are the options for connections to accurate estimators. The scheduler and the descheduler
// have the same flags.
type EstimatorClientOptions struct {
	// Timeout limits the time of the requests to all clusters together. 0 means DefaultEstimatorTimeout,
	// because without a deadline one estimator could stop the program.
	Timeout time.Duration
	// Namespace, Prefix and Port identify the Service of the estimator of a cluster: PREFIX-CLUSTER.
	Namespace, Prefix string
	Port              int
	TLS               estimators.ClientTLS

	flags *pflag.FlagSet
}

// DefaultEstimatorTimeout is the default of EstimatorClientOptions.Timeout.
const DefaultEstimatorTimeout = 3 * time.Second

// DefaultEstimatorClientOptions returns the default options.
func DefaultEstimatorClientOptions() EstimatorClientOptions {
	return EstimatorClientOptions{Timeout: DefaultEstimatorTimeout, Namespace: clusterv1alpha1.NamespaceKarmadaSystem,
		Prefix: strings.TrimSuffix(clusterv1alpha1.EstimatorPrefix, "-"), Port: clusterv1alpha1.EstimatorPort}
}

// The names of the flags.
const (
	flagTimeout    = "scheduler-estimator-timeout"
	flagNamespace  = "scheduler-estimator-service-namespace"
	flagPrefix     = "scheduler-estimator-service-prefix"
	flagPort       = "scheduler-estimator-port"
	flagCA         = "scheduler-estimator-ca-file"
	flagCert       = "scheduler-estimator-cert-file"
	flagKey        = "scheduler-estimator-key-file"
	flagSkipVerify = "insecure-skip-estimator-verify"
)

// AddFlags adds the flags.
func (o *EstimatorClientOptions) AddFlags(set *pflag.FlagSet) {
	o.flags = set
	set.DurationVar(&o.Timeout, flagTimeout, o.Timeout,
		fmt.Sprintf("Timeout of all estimator requests for one workload together. 0 means %s.", DefaultEstimatorTimeout))
	set.StringVar(&o.Namespace, flagNamespace, o.Namespace, "Namespace of the Services of estimators.")
	set.StringVar(&o.Prefix, flagPrefix, o.Prefix,
		"Prefix of the names of the Services of estimators: the estimator of a cluster has the Service PREFIX-CLUSTER.")
	set.IntVar(&o.Port, flagPort, o.Port, "Port of the Services of estimators.")
	set.StringVar(&o.TLS.CAFile, flagCA, o.TLS.CAFile,
		"File with the certificate authorities of estimators. Connections are not encrypted without this flag and --"+flagSkipVerify+".")
	set.StringVar(&o.TLS.CertFile, flagCert, o.TLS.CertFile, "File with the client certificate for estimators. Requires --"+flagKey+".")
	set.StringVar(&o.TLS.KeyFile, flagKey, o.TLS.KeyFile, "File with the key of the client certificate. Requires --"+flagCert+".")
	set.BoolVar(&o.TLS.SkipVerify, flagSkipVerify, o.TLS.SkipVerify,
		"Encrypt connections to estimators, but accept every certificate. This is insecure, because any server can then pose as an estimator.")
}

// Given returns the flags that the user set, with their leading dashes.
func (o *EstimatorClientOptions) Given() []string {
	return flags.GivenFlags(o.flags, flagTimeout, flagNamespace, flagPrefix, flagPort, flagCA, flagCert, flagKey, flagSkipVerify)
}

// Validate returns the errors in the values of the flags.
func (o *EstimatorClientOptions) Validate() error {
	errs := []error{flags.ValidateNotNegative(flagTimeout, o.Timeout)}
	if o.Port < 0 || o.Port > maxPort {
		errs = append(errs, fmt.Errorf("--%s %d: must be between 0 and %d", flagPort, o.Port, maxPort))
	}
	for _, problem := range validation.ValidateNamespaceName(o.Namespace, false) {
		errs = append(errs, fmt.Errorf("--%s %q: must be the name of a namespace: %s", flagNamespace, o.Namespace, problem))
	}
	for _, problem := range validation.NameIsDNSLabel(o.Prefix+"-m", false) {
		errs = append(errs, fmt.Errorf("--%s %q: must be the beginning of the name of a Service: %s", flagPrefix, o.Prefix, problem))
	}
	if (o.TLS.CertFile == "") != (o.TLS.KeyFile == "") {
		errs = append(errs, fmt.Errorf("--%s and --%s: set both or none, because a certificate cannot be used without its key", flagCert,
			flagKey))
	}
	if o.TLS.CertFile != "" && o.TLS.KeyFile != "" && o.TLS.CAFile == "" && !o.TLS.SkipVerify {
		errs = append(errs, fmt.Errorf("--%s: a client certificate needs an encrypted connection: set --%s, too", flagCert, flagCA))
	}
	return errors.Join(errs...)
}

// RequestTimeout returns the timeout of the requests for one workload. It is positive.
func (o *EstimatorClientOptions) RequestTimeout() time.Duration {
	if o.Timeout <= 0 {
		return DefaultEstimatorTimeout
	}
	return o.Timeout
}

// RegisterEstimatorMetrics registers the metrics of a pool. AddPool does this, too. A program that may run
// without a pool calls RegisterEstimatorMetrics, so that its list of metrics does not depend on its flags.
func RegisterEstimatorMetrics() (*estimators.PoolMetrics, error) {
	return estimators.NewPoolMetrics(ctrlmetrics.Registry)
}

// AddPool returns a pool of connections to estimators, and adds its watches to the host. The pool
// ends with the host. If skipPullMode is true, Estimate skips the clusters in pull mode.
func (o *EstimatorClientOptions) AddPool(h *programs.Host, skipPullMode bool) (*estimators.Pool, error) {
	metrics, err := RegisterEstimatorMetrics()
	if err != nil {
		return nil, err
	}
	services, err := o.newServiceCache(h)
	if err != nil {
		return nil, err
	}
	pool, err := estimators.NewPool(estimators.PoolOptions{
		Services: services, Namespace: o.Namespace, Prefix: o.Prefix, Port: o.Port, SkipPullMode: skipPullMode,
		TLS: o.TLS, Timeout: o.RequestTimeout(), Metrics: metrics,
	})
	if err != nil {
		return nil, fmt.Errorf("connections to estimators: %w", err)
	}
	if err := h.Manager.Add(services); err != nil {
		return nil, fmt.Errorf("adding the cache of the Services of estimators: %w", err)
	}
	if err := h.Manager.Add(&estimators.PoolWatcher{Pool: pool, Clusters: h.Manager.GetCache(), Services: services}); err != nil {
		return nil, fmt.Errorf("adding the watches of estimators: %w", err)
	}
	return pool, nil
}

// newServiceCache returns a cache of the Services in the namespace of the estimators. The cache of
// the host would watch the Services of all namespaces, which are the templates of users.
func (o *EstimatorClientOptions) newServiceCache(h *programs.Host) (cache.Cache, error) {
	services, err := cache.New(h.Manager.GetConfig(), cache.Options{
		HTTPClient: h.Manager.GetHTTPClient(), Scheme: h.Manager.GetScheme(), Mapper: h.Manager.GetRESTMapper(),
		DefaultNamespaces: map[string]cache.Config{o.Namespace: {}}, DefaultTransform: cache.TransformStripManagedFields(),
	})
	if err != nil {
		return nil, fmt.Errorf("making the cache of the Services of estimators: %w", err)
	}
	return services, nil
}
