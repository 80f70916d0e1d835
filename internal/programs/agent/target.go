package agent

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"reflect"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"
)

// target is the content of a kubeconfig context: the server, its certificate authority, the proxy,
// and the impersonated user. It does not contain the credentials, which are reloaded while
// connections are open.
type target struct {
	cluster clientcmdapi.Cluster
	user    clientcmdapi.AuthInfo
}

// newTarget returns the target of a context. An empty name means the current context.
func newTarget(kubeconfig *clientcmdapi.Config, context string) (target, error) {
	var found target
	selected := kubeconfig.Contexts[cmp.Or(context, kubeconfig.CurrentContext)]
	if selected == nil {
		return found, nil
	}
	if cluster := kubeconfig.Clusters[selected.Cluster]; cluster != nil {
		found.cluster = *cluster
	}
	if user := kubeconfig.AuthInfos[selected.AuthInfo]; user != nil {
		found.user = *user
	}
	if path := found.cluster.CertificateAuthority; path != "" && len(found.cluster.CertificateAuthorityData) == 0 {
		ca, err := os.ReadFile(path)
		if err != nil {
			return target{}, fmt.Errorf("reading the certificate authority: %w", err)
		}
		found.cluster.CertificateAuthority, found.cluster.CertificateAuthorityData = "", ca
	}
	found.cluster.LocationOfOrigin, found.user.LocationOfOrigin = "", ""
	found.cluster.Extensions, found.user.Extensions = nil, nil
	if user := &found.user; user.Exec == nil && user.AuthProvider == nil && user.Username == "" {
		user.ClientCertificate, user.ClientCertificateData, user.ClientKey, user.ClientKeyData = "", nil, "", nil
		user.Token, user.TokenFile = "", ""
	}
	return found, nil
}

// verifyTarget reports whether a valid kubeconfig has another target than the current kubeconfig.
// In this case, it closes targetChanged.
func (c *credentials) verifyTarget(ctx context.Context, kubeconfig []byte) (bool, error) {
	loaded, err := c.load(kubeconfig)
	if err != nil {
		return false, err
	}
	config, err := c.clientConfig(loaded)
	if err != nil {
		return false, err
	}
	if _, err := newIdentity(config); err != nil {
		return false, err
	}
	next, err := newTarget(loaded, c.context)
	if err != nil || reflect.DeepEqual(next, c.target) {
		return false, err
	}
	if _, err := caPool(next.cluster.CertificateAuthorityData); err != nil {
		return false, fmt.Errorf("reading the certificate authority: %w", err)
	}
	select {
	case <-c.targetChanged:
	default:
		klog.FromContext(ctx).Info("The kubeconfig has another control plane: restarting the agent", "kubeconfig", c.path, "server",
			next.cluster.Server, "before", c.target.cluster.Server)
		close(c.targetChanged)
	}
	return true, nil
}
