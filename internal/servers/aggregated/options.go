package aggregated

import (
	"errors"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/sets"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/featuregate"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/memberproxy"
	"karmada.io/karmada/internal/extensionserver"
)

// Options configure the server.
type Options struct {
	// Options configure serving, storage, authentication and authorization. If there is no Karmada
	// API server to delegate to, Authenticator, Authorizer and Secrets must be set.
	extensionserver.Options
	// Gates are the feature gates of Karmada. Nil means that every gate has its default.
	Gates featuregate.MutableFeatureGate
	// Budgets limit the concurrent requests to members.
	Budgets memberproxy.Budgets
	// Agents limit what agents may write in their Clusters.
	Agents AgentOptions
	// Secrets replaces the cache of Secrets in the namespace karmada-cluster. Nil means this cache.
	Secrets memberproxy.SecretGetter

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
	return &Options{
		Options: extensionserver.NewOptions(codecs.LegacyCodec(clusterv1alpha1.GroupVersion),
			runtime.NewMultiGroupVersioner(clusterv1alpha1.GroupVersion, schema.GroupKind{Group: clusterv1alpha1.GroupName})),
		Budgets:      memberproxy.DefaultBudgets(),
		Agents:       DefaultAgentOptions(),
		featureGates: map[string]bool{},
		scheme:       scheme,
		codecs:       codecs,
	}, nil
}

// AddFlags adds the flags of this component, but not the flags of all components (logging,
// profiling).
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	o.Options.AddFlags(flags)
	o.Budgets.AddFlags(flags)
	o.Agents.AddFlags(flags)
	flags.Var(cliflag.NewMapStringBool(&o.featureGates), "feature-gates",
		"Feature gates of Karmada and of the Kubernetes API server library, as a list of name=true or name=false.")
}

// Validate returns all mistakes in the options.
func (o *Options) Validate() []error {
	errs := o.Options.Validate()
	errs = append(errs, o.validateFeatureGates()...)
	if err := o.Budgets.Validate(); err != nil {
		errs = append(errs, err)
	}
	if o.IsStandalone() && (o.Authenticator == nil || o.Authorizer == nil || o.Secrets == nil) {
		errs = append(errs, errors.New("without a Karmada API server, Authenticator, Authorizer and Secrets are required"))
	}
	return errs
}

// api describes the API of the server.
func (o *Options) api() extensionserver.API {
	return extensionserver.API{
		Name: ServiceName, Group: clusterv1alpha1.GroupName, Scheme: o.scheme, Codecs: o.codecs,
		// Requests through the proxy may be long-running, for example watches, logs and terminals.
		IsLongRunning: genericfilters.BasicLongRunningRequestCheck(sets.NewString("watch"), sets.NewString("proxy")),
	}
}
