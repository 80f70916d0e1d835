package multicall

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync/atomic"

	apiserveradmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/initializer"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	webhookclient "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"

	"karmada.io/karmada/internal/servers/admission"
	"karmada.io/karmada/internal/standalone"
)

// addAdmission adds the plugin of Karmada to an API server, and makes the webhook plugins of this
// API server call the webhook of Karmada in this process.
func (k *karmadaOptions) addAdmission(o *genericoptions.AdmissionOptions) {
	if !k.Admission {
		return
	}
	admission.Register(o.Plugins, k.newReviewer())
	o.RecommendedPluginOrder = append([]string{admission.PluginName}, o.RecommendedPluginOrder...)
	k.wrapWebhooks(o)
}

// wrapWebhooks makes an API server's webhook plugins call Karmada's webhook in this process. It must be the
// first decorator, because it needs the plugin itself.
func (k *karmadaOptions) wrapWebhooks(o *genericoptions.AdmissionOptions) {
	decorate := func(plugin apiserveradmission.Interface, _ string) apiserveradmission.Interface {
		if calls, ok := plugin.(initializer.WantsAuthenticationInfoResolverWrapper); ok {
			calls.SetAuthenticationInfoResolverWrapper(k.wrapResolver)
		}
		return plugin
	}
	o.Decorators = append(apiserveradmission.Decorators{apiserveradmission.DecoratorFunc(decorate)}, o.Decorators...)
}

// wrapConversion makes an API server's CRDs call Karmada's conversion webhook in this process, and starts to
// serve requests to the webhook.
func (k *karmadaOptions) wrapConversion(config *app.Config) error {
	if !k.Admission {
		return nil
	}
	reviewer, err := k.rules.Reviewer(config.KubeAPIs.ControlPlane.Generic.LoopbackClientConfig)
	if err != nil {
		return err
	}
	k.admissionHandler.set(admission.NewWebhookHandler(reviewer))
	extra := &config.ApiExtensions.ExtraConfig
	wrapped := extra.AuthResolverWrapper
	extra.AuthResolverWrapper = func(delegate webhookclient.AuthenticationInfoResolver) webhookclient.AuthenticationInfoResolver {
		return k.wrapResolver(wrapped(delegate))
	}
	return nil
}

// wrapResolver returns a resolver whose clients for Karmada's webhook call this process.
func (k *karmadaOptions) wrapResolver(delegate webhookclient.AuthenticationInfoResolver) webhookclient.AuthenticationInfoResolver {
	return &webhookclient.AuthenticationInfoResolverDelegator{
		ClientConfigForFunc: func(hostPort string) (*rest.Config, error) {
			host, _, err := net.SplitHostPort(hostPort)
			if err != nil {
				return nil, fmt.Errorf("the address %q of a webhook: %w", hostPort, err)
			}
			if k.isAdmissionHost(host) {
				return k.inProcessConfig(), nil
			}
			return delegate.ClientConfigFor(hostPort) // callers compare this error
		},
		ClientConfigForServiceFunc: func(name, namespace string, port int) (*rest.Config, error) {
			if k.isAdmissionHost(name + "." + namespace + ".svc") {
				return k.inProcessConfig(), nil
			}
			return delegate.ClientConfigForService(name, namespace, port) // callers compare this error
		},
	}
}

func (k *karmadaOptions) isAdmissionHost(host string) bool {
	return slices.Contains(k.AdmissionHosts, host)
}

// inProcessConfig returns a client configuration that calls this process. The client verifies no
// certificate, because no request leaves the process.
func (k *karmadaOptions) inProcessConfig() *rest.Config {
	return &rest.Config{WrapTransport: func(http.RoundTripper) http.RoundTripper {
		return &standalone.InProcessTransport{Handler: &k.admissionHandler}
	}}
}

// lateHandler is a handler that is set after the clients that call it were created.
type lateHandler struct {
	handler atomic.Pointer[http.Handler]
}

func (l *lateHandler) set(handler http.Handler) { l.handler.Store(&handler) }

// ServeHTTP implements http.Handler.
func (l *lateHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	handler := l.handler.Load()
	if handler == nil {
		http.Error(w, "the admission of Karmada is not configured yet", http.StatusServiceUnavailable)
		return
	}
	(*handler).ServeHTTP(w, r)
}
