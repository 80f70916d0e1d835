package extensionserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/path"
	"k8s.io/apiserver/pkg/authorization/union"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/healthz"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
)

// The ConfigMap in which the Karmada API server publishes its authentication configuration for
// extension API servers.
const (
	authenticationNamespace = metav1.NamespaceSystem
	authenticationConfigMap = "extension-apiserver-authentication"
	clientCAKey             = "client-ca-file"
)

// configMapTimeout limits reading the ConfigMap with the authentication configuration.
const configMapTimeout = 10 * time.Second

// delegateAuthentication accepts client certificates and the front proxy of the Karmada API
// server, and sends TokenReviews to the Karmada API server. The library can do this only with a
// kubeconfig file.
func (o *Options) delegateAuthentication(ctx context.Context, config *genericapiserver.RecommendedConfig) error {
	options := o.Server.Authentication
	karmadaConfig, err := o.karmadaConfig(options.RemoteKubeConfigFile)
	if err != nil {
		return err
	}
	// Requests wait for these calls, so there is no client-side limit. The Karmada API server
	// limits its load itself.
	karmadaConfig.QPS = -1
	karmada, err := kubernetes.NewForConfig(karmadaConfig)
	if err != nil {
		return fmt.Errorf("making a client of the Karmada API server: %w", err)
	}
	clientCA, err := clientCAProvider(options, karmada)
	if err != nil {
		return err
	}
	frontProxy, err := frontProxyConfig(ctx, options, karmada)
	if err != nil {
		return err
	}
	if clientCA != nil {
		if err := config.Authentication.ApplyClientCert(clientCA, config.SecureServing); err != nil {
			return fmt.Errorf("configuring client certificates: %w", err)
		}
		if publishesClientCA(ctx, karmada) {
			config.AddReadyzChecks(caReadyCheck("client-ca", "client certificates", clientCA))
		}
	}
	if frontProxy != nil {
		if err := config.Authentication.ApplyClientCert(frontProxy.CAContentProvider, config.SecureServing); err != nil {
			return fmt.Errorf("configuring the certificate of the front proxy: %w", err)
		}
		config.AddReadyzChecks(caReadyCheck("front-proxy-ca", "the front proxy", frontProxy.CAContentProvider))
	}
	authenticator, definitions, err := authenticatorfactory.DelegatingAuthenticatorConfig{
		Anonymous:                          options.Anonymous,
		TokenAccessReviewClient:            karmada.AuthenticationV1(),
		TokenAccessReviewTimeout:           options.TokenRequestTimeout,
		WebhookRetryBackoff:                options.WebhookRetryBackoff,
		CacheTTL:                           options.CacheTTL,
		ClientCertificateCAContentProvider: clientCA,
		RequestHeaderConfig:                frontProxy,
	}.New()
	if err != nil {
		return err
	}
	config.Authentication.Authenticator = authenticator
	config.Authentication.RequestHeaderConfig = frontProxy
	config.OpenAPIConfig.SecurityDefinitions = definitions
	return nil
}

// clientCAProvider returns the CA of client certificates. It reads the CA from a file, or from the
// ConfigMap that the Karmada API server publishes. It returns nil if there is no CA.
func clientCAProvider(options *genericoptions.DelegatingAuthenticationOptions,
	karmada kubernetes.Interface) (dynamiccertificates.CAContentProvider, error) {
	if options.ClientCert != (genericoptions.ClientCertAuthenticationOptions{}) {
		ca, err := options.ClientCert.GetClientCAContentProvider()
		if err != nil {
			return nil, fmt.Errorf("reading the CA of client certificates: %w", err)
		}
		return PollCA(ca), nil
	}
	if options.SkipInClusterLookup {
		return nil, nil
	}
	ca, err := dynamiccertificates.NewDynamicCAFromConfigMapController("client-ca",
		authenticationNamespace, authenticationConfigMap, clientCAKey, karmada)
	if err != nil {
		return nil, fmt.Errorf("watching the CA of client certificates: %w", err)
	}
	return ca, nil
}

// frontProxyConfig returns the front proxy whose headers identify the caller. It reads the
// configuration from files, or from the ConfigMap that the Karmada API server publishes. It
// returns nil if no front proxy is trusted.
func frontProxyConfig(ctx context.Context, options *genericoptions.DelegatingAuthenticationOptions,
	karmada kubernetes.Interface) (*authenticatorfactory.RequestHeaderConfig, error) {
	if options.RequestHeader.ClientCAFile != "" {
		config, err := options.RequestHeader.ToAuthenticationRequestHeaderConfig()
		if err != nil {
			return nil, fmt.Errorf("reading the CA of the front proxy: %w", err)
		}
		config.CAContentProvider = PollCA(config.CAContentProvider)
		return config, nil
	}
	if options.SkipInClusterLookup {
		return nil, nil
	}
	ca, err := dynamiccertificates.NewDynamicCAFromConfigMapController("front-proxy-ca",
		authenticationNamespace, authenticationConfigMap, "requestheader-client-ca-file", karmada)
	if err != nil {
		return nil, fmt.Errorf("watching the CA of the front proxy: %w", err)
	}
	published := &genericoptions.DynamicRequestHeaderController{
		ConfigMapCAController: ca,
		RequestHeaderAuthRequestController: headerrequest.NewRequestHeaderAuthRequestController(
			authenticationConfigMap, authenticationNamespace, karmada,
			"requestheader-username-headers", "requestheader-uid-headers", "requestheader-group-headers",
			"requestheader-extra-headers-prefix", "requestheader-allowed-names"),
	}
	if err := published.RunOnce(ctx); err != nil {
		if !options.TolerateInClusterLookupFailure {
			return nil, fmt.Errorf("reading ConfigMap %s/%s: %w", authenticationNamespace, authenticationConfigMap, err)
		}
		klog.FromContext(ctx).Error(err, "The front proxy is not trusted", "configMap",
			klog.KRef(authenticationNamespace, authenticationConfigMap))
		return nil, nil
	}
	return &authenticatorfactory.RequestHeaderConfig{
		CAContentProvider:   published,
		UsernameHeaders:     headerrequest.StringSliceProviderFunc(published.UsernameHeaders),
		UIDHeaders:          headerrequest.StringSliceProviderFunc(published.UIDHeaders),
		GroupHeaders:        headerrequest.StringSliceProviderFunc(published.GroupHeaders),
		ExtraHeaderPrefixes: headerrequest.StringSliceProviderFunc(published.ExtraHeaderPrefixes),
		AllowedClientNames:  headerrequest.StringSliceProviderFunc(published.AllowedClientNames),
	}, nil
}

// caReadyCheck returns a readyz check that fails until the CA is loaded. Before that, clients with
// certificates of this CA would be rejected or treated as anonymous.
func caReadyCheck(name, usage string, ca dynamiccertificates.CAContentProvider) healthz.HealthChecker {
	return healthz.NamedCheck(name, func(*http.Request) error {
		if _, loaded := ca.VerifyOptions(); !loaded {
			return fmt.Errorf("the CA of %s is not loaded yet", usage)
		}
		return nil
	})
}

// publishesClientCA reports whether the Karmada API server publishes a CA of client
// certificates. The CA is optional, so an error of the request does not prevent readiness.
func publishesClientCA(ctx context.Context, karmada kubernetes.Interface) bool {
	ctx, cancel := context.WithTimeout(ctx, configMapTimeout)
	defer cancel()
	published, err := karmada.CoreV1().ConfigMaps(authenticationNamespace).Get(ctx, authenticationConfigMap, metav1.GetOptions{})
	return err == nil && published.Data[clientCAKey] != ""
}

// delegateAuthorization sends SubjectAccessReviews to the Karmada API server. Requests of
// privileged groups and requests for public paths need no review.
func (o *Options) delegateAuthorization(config *genericapiserver.RecommendedConfig) error {
	options := o.Server.Authorization
	if options == nil {
		return errors.New("the authorization options are missing")
	}
	karmadaConfig, err := o.karmadaConfig(options.RemoteKubeConfigFile)
	if err != nil {
		return err
	}
	karmadaConfig.QPS = -1
	karmadaConfig.Timeout = options.ClientTimeout
	karmada, err := kubernetes.NewForConfig(karmadaConfig)
	if err != nil {
		return fmt.Errorf("making a client of the Karmada API server: %w", err)
	}
	public, err := path.NewAuthorizer(options.AlwaysAllowPaths)
	if err != nil {
		return fmt.Errorf("parsing the paths without authorization: %w", err)
	}
	delegated, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: karmada.AuthorizationV1(),
		AllowCacheTTL:             options.AllowCacheTTL,
		DenyCacheTTL:              options.DenyCacheTTL,
		WebhookRetryBackoff:       options.WebhookRetryBackoff,
	}.New()
	if err != nil {
		return err
	}
	authorizers := []authorizer.Authorizer{public, delegated}
	if len(options.AlwaysAllowGroups) > 0 {
		authorizers = append([]authorizer.Authorizer{authorizerfactory.NewPrivilegedGroups(options.AlwaysAllowGroups...)}, authorizers...)
	}
	config.Authorization.Authorizer = union.New(authorizers...)
	return nil
}
