package extensionserver

import (
	"context"
	"fmt"
	"net"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// API describes the API of a server.
type API struct {
	// Name is the name of the server, such as karmada-aggregated-apiserver.
	Name string
	// Group is the API group, such as search.karmada.io.
	Group string
	// Scheme contains the types of the group with its version and with the internal version, and
	// the types of the meta group.
	Scheme *runtime.Scheme
	// Codecs are the codecs of Scheme.
	Codecs serializer.CodecFactory
	// IsLongRunning reports whether a request may take longer than the timeout of requests.
	IsLongRunning request.LongRunningRequestCheck
}

// NewConfig converts the options to the configuration of an API server. It also returns the client
// of the Karmada API server, which is nil if there is none. ctx ends only the requests that
// NewConfig itself sends.
func (o *Options) NewConfig(ctx context.Context, api API) (*genericapiserver.RecommendedConfig, kubernetes.Interface, error) {
	config := genericapiserver.NewRecommendedConfig(api.Codecs)
	// With a separate version object, this server does not use the process-wide component registry,
	// which another API server of the process may use.
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	namer := openapinamer.NewDefinitionNamer(api.Scheme)
	definitions := openAPIDefinitions(api.Group)
	config.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(definitions, namer)
	config.OpenAPIConfig.Info.Title = "Karmada"
	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(definitions, namer)
	config.OpenAPIV3Config.Info.Title = "Karmada"
	config.LongRunningFunc = api.IsLongRunning

	if err := o.applyServing(config); err != nil {
		return nil, nil, err
	}
	if err := o.applyAuth(ctx, config); err != nil {
		return nil, nil, err
	}
	if err := o.Server.Etcd.ApplyTo(&config.Config); err != nil {
		return nil, nil, fmt.Errorf("configuring etcd: %w", err)
	}
	if err := o.Server.Audit.ApplyTo(&config.Config); err != nil {
		return nil, nil, fmt.Errorf("configuring audit: %w", err)
	}
	if o.IsStandalone() {
		return config, nil, o.applyFeatures(config, nil)
	}
	karmada, err := o.karmadaClient(config)
	if err != nil {
		return nil, nil, err
	}
	return config, karmada, o.applyFeatures(config, karmada)
}

func (o *Options) applyServing(config *genericapiserver.RecommendedConfig) error {
	serving := o.Server.SecureServing
	if err := serving.MaybeDefaultWithSelfSignedCerts("localhost", nil, []net.IP{net.IPv4(127, 0, 0, 1)}); err != nil {
		return fmt.Errorf("making a serving certificate: %w", err)
	}
	if err := serving.ApplyToConfig(&config.Config); err != nil {
		return fmt.Errorf("configuring serving: %w", err)
	}
	config.SecureServing.Cert = pollServingCert(config.SecureServing.Cert)
	return nil
}

// applyAuth configures authentication and authorization.
func (o *Options) applyAuth(ctx context.Context, config *genericapiserver.RecommendedConfig) error {
	if o.Authenticator != nil {
		config.Authentication.Authenticator = o.Authenticator
	} else if err := o.delegateAuthentication(ctx, config); err != nil {
		return fmt.Errorf("delegating authentication: %w", err)
	}
	if o.Authorizer != nil {
		config.Authorization.Authorizer = o.Authorizer
	} else if err := o.delegateAuthorization(config); err != nil {
		return fmt.Errorf("delegating authorization: %w", err)
	}
	return nil
}

// karmadaClient returns a client of the Karmada API server. It also sets the client configuration
// and the informers of config.
func (o *Options) karmadaClient(config *genericapiserver.RecommendedConfig) (kubernetes.Interface, error) {
	karmadaConfig, err := o.karmadaConfig(coreKubeconfig(o.Server.CoreAPI))
	if err != nil {
		return nil, err
	}
	karmadaConfig.QPS, karmadaConfig.Burst = o.KubeAPIQPS, o.KubeAPIBurst
	karmada, err := kubernetes.NewForConfig(karmadaConfig)
	if err != nil {
		return nil, fmt.Errorf("making a client of the Karmada API server: %w", err)
	}
	config.ClientConfig = karmadaConfig
	config.SharedInformerFactory = informers.NewSharedInformerFactory(karmada, 0)
	return karmada, nil
}

// applyFeatures configures admission, and priority and fairness. Both depend on informers.
func (o *Options) applyFeatures(config *genericapiserver.RecommendedConfig, karmada kubernetes.Interface) error {
	if err := o.Server.Features.ApplyTo(&config.Config, karmada, config.SharedInformerFactory); err != nil {
		return fmt.Errorf("configuring priority and fairness: %w", err)
	}
	if o.Server.Admission == nil {
		return nil
	}
	karmadaDynamic, err := dynamic.NewForConfig(config.ClientConfig)
	if err != nil {
		return fmt.Errorf("making a client of the Karmada API server: %w", err)
	}
	if err := o.Server.Admission.ApplyTo(&config.Config, config.SharedInformerFactory, karmada, karmadaDynamic,
		o.Server.FeatureGate, config.EffectiveVersion); err != nil {
		return fmt.Errorf("configuring admission: %w", err)
	}
	return nil
}

// karmadaConfig returns the client configuration of the Karmada API server. It is read from the
// kubeconfig file if one is given. Otherwise it is taken from the options, or else from the
// service account of the Pod.
func (o *Options) karmadaConfig(kubeconfig string) (*clientrest.Config, error) {
	if kubeconfig != "" {
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("reading kubeconfig %s: %w", kubeconfig, err)
		}
		return config, nil
	}
	if o.Karmada != nil {
		return clientrest.CopyConfig(o.Karmada), nil
	}
	config, err := clientrest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("loading the in-cluster configuration of the Karmada API server: %w", err)
	}
	return config, nil
}

func coreKubeconfig(core *genericoptions.CoreAPIOptions) string {
	if core == nil {
		return ""
	}
	return core.CoreAPIKubeconfigPath
}
