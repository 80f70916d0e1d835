package aggregated

import (
	"errors"
	"fmt"
	"net"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	clientrest "k8s.io/client-go/rest"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/featuregate"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/servers/aggregated/proxy"
)

const (
	defaultEtcdPrefix = "/registry"
	// This server sends few requests to the Karmada API server (for tokens, permissions and
	// Secrets), but requests of clients wait for these requests.
	defaultQPS   = 40
	defaultBurst = 60
)

// Options configure serving, storage, authentication and authorization.
type Options struct {
	// Server are the options of the API server library, which flags set. If CoreAPI is nil, there
	// is no Karmada API server to delegate to. Then Authenticator, Authorizer and Secrets must be
	// set, and Admission and priority and fairness must be disabled.
	//
	// A caller may set Server.SecureServing.Listener to an open listener, and
	// Server.SecureServing.ServerCert.GeneratedCert to a certificate in memory. If there is no
	// certificate, the server creates a self-signed certificate. This certificate is in memory if
	// there is no certificate directory.
	Server *genericoptions.RecommendedOptions
	// Gates are the feature gates of Karmada. Nil means that every gate has its default.
	Gates featuregate.MutableFeatureGate
	// KubeAPIQPS limits the requests per second to the Karmada API server, except those for
	// authentication and authorization. Negative means no limit.
	KubeAPIQPS float32
	// KubeAPIBurst is the number of requests by which KubeAPIQPS may be exceeded at once.
	KubeAPIBurst int

	// Budgets limit the concurrent requests to members.
	Budgets proxy.Budgets

	// Karmada is the client configuration if no kubeconfig flag is given. Nil means the service
	// account of the Pod.
	Karmada *clientrest.Config
	// Authenticator replaces delegated authentication. Nil means delegated authentication.
	Authenticator authenticator.Request
	// Authorizer replaces delegated authorization. Nil means delegated authorization.
	Authorizer authorizer.Authorizer
	// Secrets replaces the cache of Secrets in the namespace karmada-cluster. Nil means this cache.
	Secrets proxy.SecretGetter

	featureGates map[string]bool
	scheme       *runtime.Scheme
	codecs       serializer.CodecFactory
}

// NewOptions returns the default options of a production server.
func NewOptions() (*Options, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	codecs := serializer.NewCodecFactory(scheme)
	server := genericoptions.NewRecommendedOptions(defaultEtcdPrefix, codecs.LegacyCodec(clusterv1alpha1.GroupVersion))
	server.Etcd.StorageConfig.EncodeVersioner = runtime.NewMultiGroupVersioner(
		clusterv1alpha1.GroupVersion, schema.GroupKind{Group: clusterv1alpha1.GroupName})
	// The plugin NamespaceLifecycle would have no effect, because Clusters are not namespaced.
	server.Admission.DisablePlugins = []string{"NamespaceLifecycle"}
	return &Options{
		Server:       server,
		KubeAPIQPS:   defaultQPS,
		KubeAPIBurst: defaultBurst,
		Budgets:      proxy.DefaultBudgets(),
		featureGates: map[string]bool{},
		scheme:       scheme,
		codecs:       codecs,
	}, nil
}

// AddFlags adds the flags of this component, but not the flags of all components (logging,
// profiling).
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	o.Server.Etcd.AddFlags(flags)
	o.Server.SecureServing.AddFlags(flags)
	o.Server.Authentication.AddFlags(flags)
	o.Server.Authorization.AddFlags(flags)
	o.Server.Audit.AddFlags(flags)
	o.Server.Features.AddFlags(flags)
	o.Server.CoreAPI.AddFlags(flags)
	flags.Float32Var(&o.KubeAPIQPS, "kube-api-qps", o.KubeAPIQPS,
		"Maximum requests per second to the Karmada API server.")
	flags.IntVar(&o.KubeAPIBurst, "kube-api-burst", o.KubeAPIBurst,
		"Burst of requests to the Karmada API server.")
	flags.IntVar(&o.Budgets.Requests, "proxy-requests-per-cluster", o.Budgets.Requests,
		"Maximum concurrent requests through clusters/proxy to one cluster, except watches, logs and streams.")
	flags.IntVar(&o.Budgets.AllRequests, "proxy-requests", o.Budgets.AllRequests,
		"Maximum concurrent requests through clusters/proxy to all clusters together, except watches, logs and streams.")
	flags.IntVar(&o.Budgets.LongRunning, "proxy-watches-per-cluster", o.Budgets.LongRunning,
		"Maximum concurrent watches and logs through clusters/proxy to one cluster.")
	flags.IntVar(&o.Budgets.AllLongRunning, "proxy-watches", o.Budgets.AllLongRunning,
		"Maximum concurrent watches, logs and streams through clusters/proxy to all clusters together.")
	flags.Var(cliflag.NewMapStringBool(&o.featureGates), "feature-gates",
		"Feature gates of Karmada and of the Kubernetes API server library, as a list of name=true or name=false.")
}

// Validate returns all mistakes in the options.
func (o *Options) Validate() []error {
	errs := o.Server.Validate()
	serving := o.Server.SecureServing
	switch {
	case serving == nil || serving.Listener == nil && serving.BindPort == 0:
		errs = append(errs, errors.New("--secure-port must not be 0: the server uses HTTPS only"))
	case serving.Listener != nil:
		if _, ok := serving.Listener.Addr().(*net.TCPAddr); !ok {
			errs = append(errs, fmt.Errorf("the listener must be a TCP listener, not %T", serving.Listener))
		}
	}
	errs = append(errs, o.validateFeatureGates()...)
	if b := o.Budgets; min(b.Requests, b.AllRequests, b.LongRunning, b.AllLongRunning) < 1 {
		errs = append(errs, errors.New("--proxy-requests-per-cluster, --proxy-requests, --proxy-watches-per-cluster and --proxy-watches must be at least 1"))
	}
	if !o.isStandalone() {
		return errs
	}
	if o.Authenticator == nil || o.Authorizer == nil || o.Secrets == nil {
		errs = append(errs, errors.New("without a Karmada API server, Authenticator, Authorizer and Secrets are required"))
	}
	if o.Server.Admission != nil || o.Server.Features.EnablePriorityAndFairness {
		errs = append(errs, errors.New("without a Karmada API server, admission and priority and fairness must be off"))
	}
	return errs
}

// isStandalone reports whether there is no Karmada API server to delegate to.
func (o *Options) isStandalone() bool { return o.Server.CoreAPI == nil && o.Karmada == nil }
