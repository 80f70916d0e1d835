package aggregated

import (
	"fmt"
	"net"

	"k8s.io/apimachinery/pkg/util/sets"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"karmada.io/karmada/internal/servers/aggregated/openapi"
	"karmada.io/karmada/internal/servers/aggregated/proxy"
)

// config turns the options into the configuration of an API server, and returns
// what the proxy learns from the Karmada API server.
func (o *Options) config() (*genericapiserver.RecommendedConfig, proxy.Sources, error) {
	from := proxy.Sources{Secret: o.Secrets}
	config := genericapiserver.NewRecommendedConfig(o.codecs)
	// A version of its own keeps this server out of the process-wide registry of
	// components, where another API server may have set one.
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	namer := openapinamer.NewDefinitionNamer(o.scheme)
	config.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(openapi.GetOpenAPIDefinitions, namer)
	config.OpenAPIConfig.Info.Title = "Karmada"
	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, namer)
	config.OpenAPIV3Config.Info.Title = "Karmada"
	// Through the proxy go watches, logs and terminals.
	config.LongRunningFunc = genericfilters.BasicLongRunningRequestCheck(sets.NewString("watch"), sets.NewString("proxy"))

	if err := o.applyServing(config); err != nil {
		return nil, from, err
	}
	if err := o.applyIdentity(config); err != nil {
		return nil, from, err
	}
	if err := o.Server.Etcd.ApplyTo(&config.Config); err != nil {
		return nil, from, fmt.Errorf("configuring etcd: %w", err)
	}
	if err := o.Server.Audit.ApplyTo(&config.Config); err != nil {
		return nil, from, fmt.Errorf("configuring audit: %w", err)
	}
	if o.alone() {
		return config, from, o.applyFeatures(config, nil)
	}
	karmada, err := o.karmadaClient(config)
	if err != nil {
		return nil, from, err
	}
	if err := o.applyFeatures(config, karmada); err != nil {
		return nil, from, err
	}
	from.Karmada = config.ClientConfig
	from.Secret, from.FreshSecret, err = o.secrets(config, karmada)
	return config, from, err
}

func (o *Options) applyServing(config *genericapiserver.RecommendedConfig) error {
	serving := o.Server.SecureServing
	if err := serving.MaybeDefaultWithSelfSignedCerts("localhost", nil, []net.IP{net.IPv4(127, 0, 0, 1)}); err != nil {
		return fmt.Errorf("making a serving certificate: %w", err)
	}
	if err := serving.ApplyToConfig(&config.Config); err != nil {
		return fmt.Errorf("configuring serving: %w", err)
	}
	return nil
}

// applyIdentity configures who is believed to be who and who may do what.
func (o *Options) applyIdentity(config *genericapiserver.RecommendedConfig) error {
	if o.Authenticator != nil {
		config.Authentication.Authenticator = o.Authenticator
	} else if err := o.delegateAuthentication(config); err != nil {
		return fmt.Errorf("delegating authentication: %w", err)
	}
	if o.Authorizer != nil {
		config.Authorization.Authorizer = o.Authorizer
	} else if err := o.delegateAuthorization(config); err != nil {
		return fmt.Errorf("delegating authorization: %w", err)
	}
	return nil
}

// karmadaClient gives the configuration a client of the Karmada API server and
// informers over it.
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

// applyFeatures configures what depends on informers: fairness and admission.
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

// karmadaConfig says how the Karmada API server is reached: by the kubeconfig file
// if there is one, else by the value that the program gave, else as a pod.
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
		return nil, fmt.Errorf("looking for the Karmada API server without kubeconfig: %w", err)
	}
	return config, nil
}

func coreKubeconfig(core *genericoptions.CoreAPIOptions) string {
	if core == nil {
		return ""
	}
	return core.CoreAPIKubeconfigPath
}
