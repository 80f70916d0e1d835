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
	// The Karmada API server is asked rarely (a token, a permission, a secret),
	// but all of it in the way of a request.
	defaultQPS   = 40
	defaultBurst = 60
)

// Options say how the server serves, stores and whom it believes.
type Options struct {
	// Server are the options of the API server library, given by flags. A nil
	// CoreAPI means that there is no Karmada API server to delegate to; then
	// Authenticator, Authorizer and Secrets must be given, and Admission and
	// priority and fairness be off.
	//
	// A program that opened its listener sets Server.SecureServing.Listener; one
	// that holds its certificate in memory sets
	// Server.SecureServing.ServerCert.GeneratedCert. Without any certificate the
	// server signs one itself, in memory if there is no certificate directory.
	Server *genericoptions.RecommendedOptions
	// Gates are the feature gates of Karmada. Nil leaves every gate at its
	// default.
	Gates featuregate.MutableFeatureGate
	// KubeAPIQPS is the rate of requests to the Karmada API server, apart from
	// those for authentication and authorization. Negative is unlimited.
	KubeAPIQPS float32
	// KubeAPIBurst is how many requests may exceed that rate at once.
	KubeAPIBurst int

	// Budgets are how many requests to members may be under way at once.
	Budgets proxy.Budgets

	// Karmada replaces the kubeconfig flags that are not given. Nil means the
	// service account of the pod.
	Karmada *clientrest.Config
	// Authenticator replaces delegated authentication.
	Authenticator authenticator.Request
	// Authorizer replaces delegated authorization.
	Authorizer authorizer.Authorizer
	// Secrets replaces the cache of Secrets in the clusters' namespace.
	Secrets proxy.SecretGetter

	featureGates map[string]bool
	scheme       *runtime.Scheme
	codecs       serializer.CodecFactory
}

// NewOptions returns the options that a production server has without flags.
func NewOptions() (*Options, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	codecs := serializer.NewCodecFactory(scheme)
	server := genericoptions.NewRecommendedOptions(defaultEtcdPrefix, codecs.LegacyCodec(clusterv1alpha1.GroupVersion))
	server.Etcd.StorageConfig.EncodeVersioner = runtime.NewMultiGroupVersioner(
		clusterv1alpha1.GroupVersion, schema.GroupKind{Group: clusterv1alpha1.GroupName})
	// Nothing of this group lives in a namespace whose lifecycle matters.
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

// AddFlags adds the flags of the component to a flag set. Flags that all
// components have (logging, profiling) are not among them.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	o.Server.Etcd.AddFlags(flags)
	o.Server.SecureServing.AddFlags(flags)
	o.Server.Authentication.AddFlags(flags)
	o.Server.Authorization.AddFlags(flags)
	o.Server.Audit.AddFlags(flags)
	o.Server.Features.AddFlags(flags)
	o.Server.CoreAPI.AddFlags(flags)
	flags.Float32Var(&o.KubeAPIQPS, "kube-api-qps", o.KubeAPIQPS,
		"Requests per second to the Karmada API server.")
	flags.IntVar(&o.KubeAPIBurst, "kube-api-burst", o.KubeAPIBurst,
		"Requests to the Karmada API server that may exceed the rate at once.")
	flags.IntVar(&o.Budgets.Requests, "proxy-requests-per-cluster", o.Budgets.Requests,
		"Requests through clusters/proxy that may be under way to one cluster at once, apart from watches, logs and streams.")
	flags.IntVar(&o.Budgets.AllRequests, "proxy-requests", o.Budgets.AllRequests,
		"Requests through clusters/proxy that may be under way to all clusters together, apart from watches, logs and streams.")
	flags.IntVar(&o.Budgets.Lasting, "proxy-watches-per-cluster", o.Budgets.Lasting,
		"Watches and logs through clusters/proxy that may be under way to one cluster at once.")
	flags.IntVar(&o.Budgets.AllLasting, "proxy-watches", o.Budgets.AllLasting,
		"Watches, logs and streams through clusters/proxy that may be under way to all clusters together.")
	flags.Var(cliflag.NewMapStringBool(&o.featureGates), "feature-gates",
		"Feature gates of Karmada and of the Kubernetes API server library, as a list of name=true or name=false.")
}

// Validate returns everything that is wrong with the options.
func (o *Options) Validate() []error {
	errs := o.Server.Validate()
	serving := o.Server.SecureServing
	switch {
	case serving == nil || serving.Listener == nil && serving.BindPort == 0:
		errs = append(errs, errors.New("--secure-port must not be 0: the server answers on https only"))
	case serving.Listener != nil:
		if _, ok := serving.Listener.Addr().(*net.TCPAddr); !ok {
			errs = append(errs, fmt.Errorf("the listener must be a TCP one, not %T", serving.Listener))
		}
	}
	errs = append(errs, o.validateFeatureGates()...)
	if b := o.Budgets; min(b.Requests, b.AllRequests, b.Lasting, b.AllLasting) < 1 {
		errs = append(errs, errors.New("--proxy-requests-per-cluster, --proxy-requests, --proxy-watches-per-cluster and --proxy-watches must be at least 1"))
	}
	if !o.alone() {
		return errs
	}
	if o.Authenticator == nil || o.Authorizer == nil || o.Secrets == nil {
		errs = append(errs, errors.New("without a Karmada API server an authenticator, an authorizer and secrets are needed"))
	}
	if o.Server.Admission != nil || o.Server.Features.EnablePriorityAndFairness {
		errs = append(errs, errors.New("without a Karmada API server there is no admission and no priority and fairness"))
	}
	return errs
}

// alone reports that there is no Karmada API server to ask.
func (o *Options) alone() bool { return o.Server.CoreAPI == nil && o.Karmada == nil }
