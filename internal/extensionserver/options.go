package extensionserver

import (
	"errors"
	"fmt"
	"net"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	clientrest "k8s.io/client-go/rest"
)

const (
	defaultEtcdPrefix = "/registry"
	// A server sends few requests to the Karmada API server (for tokens, permissions and Secrets),
	// but requests of clients wait for these requests.
	defaultQPS   = 40
	defaultBurst = 60
)

// Options configure serving, storage, authentication and authorization.
type Options struct {
	// Server are the options of the API server library, which flags set. If CoreAPI is nil, there
	// is no Karmada API server to delegate to. Then Authenticator and Authorizer must be set, and
	// Admission and priority and fairness must be disabled.
	//
	// A caller may set Server.SecureServing.Listener to an open listener, and
	// Server.SecureServing.ServerCert.GeneratedCert to a certificate in memory. If there is no
	// certificate, the server creates a self-signed certificate. This certificate is in memory if
	// there is no certificate directory.
	Server *genericoptions.RecommendedOptions
	// KubeAPIQPS limits the requests per second to the Karmada API server, except those for
	// authentication and authorization. Negative means no limit.
	KubeAPIQPS float32
	// KubeAPIBurst is the number of requests by which KubeAPIQPS may be exceeded at once.
	KubeAPIBurst int

	// Karmada is the client configuration if no kubeconfig flag is given. Nil means the service
	// account of the Pod.
	Karmada *clientrest.Config
	// Authenticator replaces delegated authentication. Nil means delegated authentication.
	Authenticator authenticator.Request
	// Authorizer replaces delegated authorization. Nil means delegated authorization.
	Authorizer authorizer.Authorizer
}

// NewOptions returns the default options of a production server. encode versions the stored
// objects of the group, and codec encodes them.
func NewOptions(codec runtime.Codec, encode runtime.GroupVersioner) Options {
	server := genericoptions.NewRecommendedOptions(defaultEtcdPrefix, codec)
	server.Etcd.StorageConfig.EncodeVersioner = encode
	// The plugin NamespaceLifecycle would have no effect, because no stored kind is namespaced.
	server.Admission.DisablePlugins = []string{"NamespaceLifecycle"}
	return Options{Server: server, KubeAPIQPS: defaultQPS, KubeAPIBurst: defaultBurst}
}

// UseEtcd sets etcd's endpoint and credentials from the flags of an API server, such as
// --etcd-servers.
func (o *Options) UseEtcd(flags []string) error {
	set := pflag.NewFlagSet("etcd", pflag.ContinueOnError)
	o.Server.Etcd.AddFlags(set)
	if err := set.Parse(flags); err != nil {
		return fmt.Errorf("parsing the etcd flags: %w", err)
	}
	return nil
}

// Common returns the options, for types that embed them.
func (o *Options) Common() *Options { return o }

// AddFlags adds the flags of the API server library, and the limits for requests to the Karmada API
// server.
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
	if !o.IsStandalone() {
		return errs
	}
	if o.Server.Admission != nil || o.Server.Features.EnablePriorityAndFairness {
		errs = append(errs, errors.New("without a Karmada API server, admission and priority and fairness must be off"))
	}
	return errs
}

// IsStandalone reports whether there is no Karmada API server to delegate to.
func (o *Options) IsStandalone() bool { return o.Server.CoreAPI == nil && o.Karmada == nil }
