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

// way is all that a kubeconfig says except the credentials that are followed while
// connections are open: which server, whom to trust, through which proxy, and in
// whose name.
type way struct {
	cluster clientcmdapi.Cluster
	user    clientcmdapi.AuthInfo
}

// wayOf reads the way of a context, the current one if it has no name.
func wayOf(kubeconfig *clientcmdapi.Config, context string) (way, error) {
	var found way
	of := kubeconfig.Contexts[cmp.Or(context, kubeconfig.CurrentContext)]
	if of == nil {
		return found, nil
	}
	if cluster := kubeconfig.Clusters[of.Cluster]; cluster != nil {
		found.cluster = *cluster
	}
	if user := kubeconfig.AuthInfos[of.AuthInfo]; user != nil {
		found.user = *user
	}
	if path := found.cluster.CertificateAuthority; path != "" && len(found.cluster.CertificateAuthorityData) == 0 {
		ca, err := os.ReadFile(path)
		if err != nil {
			return way{}, fmt.Errorf("its certificate authority: %w", err)
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

// leadsElsewhere tells whether a kubeconfig, which is good, is for another way than the
// one in use. It closes moved then.
func (c *credentials) leadsElsewhere(ctx context.Context, kubeconfig []byte) (bool, error) {
	loaded, err := c.load(kubeconfig)
	if err != nil {
		return false, err
	}
	config, err := c.configOf(loaded)
	if err != nil {
		return false, err
	}
	if _, err := identityOf(config); err != nil {
		return false, err
	}
	next, err := wayOf(loaded, c.context)
	if err != nil || reflect.DeepEqual(next, c.way) {
		return false, err
	}
	if _, err := roots(next.cluster.CertificateAuthorityData); err != nil {
		return false, fmt.Errorf("its certificate authority: %w", err)
	}
	select {
	case <-c.moved:
	default:
		klog.FromContext(ctx).Info("The kubeconfig of the control plane has changed: beginning anew with it", "kubeconfig", c.path, "server", next.cluster.Server, "before", c.way.cluster.Server)
		close(c.moved)
	}
	return true, nil
}
