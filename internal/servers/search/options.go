package search

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/component-base/featuregate"

	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
	"karmada.io/karmada/internal/extensionserver"
)

// defaultStorageInitializationTimeout is the default of the API server library.
const defaultStorageInitializationTimeout = time.Minute

// Options configure the server.
type Options struct {
	// Options configure serving, storage, authentication and authorization.
	extensionserver.Options
	// Run are the options of the API server library that only some API servers have. nil means
	// their defaults. AddFlags sets it.
	Run *RunOptions
	// Gates are the feature gates of Karmada. No gate changes this server. Nil means that the flag
	// --feature-gates accepts none of them.
	Gates featuregate.MutableFeatureGate

	// Settings configure search and proxy.
	Settings
	// StorageInitializationTimeout is the time for which the server is not ready while its caches are
	// being filled. 0 means that the server does not wait.
	StorageInitializationTimeout time.Duration

	// Lock elects the replica that writes statuses and to OpenSearch. nil means that there is only one
	// replica.
	Lock resourcelock.Interface
	// Registerer registers the metrics of the server. Nil means that there are none.
	Registerer prometheus.Registerer

	scheme *runtime.Scheme
	codecs serializer.CodecFactory
}

// NewOptions returns the default options of a production server.
func NewOptions() (*Options, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	codecs := serializer.NewCodecFactory(scheme)
	return &Options{
		Options: extensionserver.NewOptions(codecs.LegacyCodec(searchv1alpha1.GroupVersion),
			runtime.NewMultiGroupVersioner(searchv1alpha1.GroupVersion, schema.GroupKind{Group: searchv1alpha1.GroupName})),
		Settings:                     DefaultSettings(),
		StorageInitializationTimeout: defaultStorageInitializationTimeout,
		scheme:                       scheme, codecs: codecs,
	}, nil
}

// AddFlags adds the flags of this component, but not the flags of all components (logging,
// profiling).
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	o.Options.AddFlags(flags)
	o.Run = newRunOptions(o.Gates)
	o.Run.addFlags(flags)
	o.Settings.AddFlags(flags)
}

// Complete applies the flags that set values of other options. It must be called after the flags are
// parsed.
func (o *Options) Complete() error {
	if o.Run == nil {
		return nil
	}
	o.StorageInitializationTimeout = o.Run.options.StorageInitializationTimeout
	return o.Run.setGates()
}

// Validate returns all mistakes in the options.
func (o *Options) Validate() []error {
	errs := o.Options.Validate()
	if o.Run != nil {
		errs = append(errs, o.Run.options.Validate()...)
	}
	errs = append(errs, o.Settings.Validate()...)
	if o.StorageInitializationTimeout < 0 {
		errs = append(errs, fmt.Errorf("--storage-initialization-timeout %s: must not be negative", o.StorageInitializationTimeout))
	}
	if o.IsStandalone() {
		errs = append(errs, errors.New("a Karmada API server is required, because it has the Clusters"))
	}
	return errs
}

// api describes the API of the server.
func (o *Options) api() extensionserver.API {
	return extensionserver.API{
		Name: ServiceName, Group: searchv1alpha1.GroupName, Scheme: o.scheme, Codecs: o.codecs,
		IsLongRunning: isLongRunning,
	}
}

// minRequestTimeout returns the shortest time after which the server ends a watch without a timeout. 0
// means the default.
func (o *Options) minRequestTimeout() time.Duration {
	if o.Run == nil {
		return 0
	}
	return time.Duration(o.Run.options.MinRequestTimeout) * time.Second
}

// applyRun applies Run to the configuration of the server.
func (o *Options) applyRun(config *genericapiserver.RecommendedConfig) error {
	config.StorageInitializationTimeout = max(o.StorageInitializationTimeout, time.Second)
	if o.Run == nil {
		return nil
	}
	return o.Run.apply(config)
}
