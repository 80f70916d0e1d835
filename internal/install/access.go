package install

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/install/certificates"
)

// Names in kubeconfigs of a control plane.
const (
	clusterName = "karmada-apiserver"
	userName    = "karmada-admin"
)

// ConnectKarmada returns an administrator's client configuration for the installed control plane, with the
// stored certificates. The configuration can be used until Close is called.
func (i *Installer) ConnectKarmada(ctx context.Context) (*rest.Config, error) {
	i.files = customCertificates(i.Installation)
	if i.settings.isManaged {
		stored, err := i.readCertificates(ctx)
		if err != nil {
			return nil, err
		}
		i.files = stored
	}
	if len(i.files[certificates.Karmada+".crt"]) == 0 {
		return nil, fmt.Errorf("the installation in namespace %s of %s has no certificate of an administrator", i.Namespace, HostName)
	}
	return i.karmadaConfig(), nil
}

// HasAPIServer reports whether the host cluster contains the installation's API server, running or not.
// There is none before the first start and after an interrupted removal.
func (i *Installer) HasAPIServer(ctx context.Context) (bool, error) {
	deployment := &appsv1.Deployment{}
	err := i.host.Get(ctx, client.ObjectKey{Namespace: i.Namespace, Name: i.settings.apiServer}, deployment)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading Deployment %s/%s of %s: %w", i.Namespace, i.settings.apiServer, HostName, err)
	}
	return err == nil, nil
}

// kubeconfig returns an administrator's kubeconfig with embedded certificates.
func (i *Installer) kubeconfig(server string) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters[clusterName] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: i.files[certificates.CA+".crt"]}
	config.AuthInfos[userName] = &clientcmdapi.AuthInfo{ClientCertificateData: i.files[certificates.Karmada+".crt"],
		ClientKeyData: i.files[certificates.Karmada+".key"]}
	config.Contexts[clusterName] = &clientcmdapi.Context{Cluster: clusterName, AuthInfo: userName}
	config.CurrentContext = clusterName
	data, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("encoding the kubeconfig of %s: %w", KarmadaName, err)
	}
	return data, nil
}

// Rate limits for requests to the control plane.
const (
	queriesPerSecond = 100
	burst            = 200
)

// clientConfig returns an administrator's client configuration for the API server at the given URL.
func (i *Installer) clientConfig(server string) *rest.Config {
	return &rest.Config{
		Host: server, QPS: queriesPerSecond, Burst: burst, Timeout: requestTimeout,
		TLSClientConfig: rest.TLSClientConfig{
			CAData: i.files[certificates.CA+".crt"], CertData: i.files[certificates.Karmada+".crt"], KeyData: i.files[certificates.Karmada+".key"],
		},
	}
}

// karmadaConfig returns the client configuration with which this program reaches the control plane.
func (i *Installer) karmadaConfig() *rest.Config {
	if i.InHost {
		return i.clientConfig(i.settings.internalURL)
	}
	config := i.clientConfig(i.settings.externalURL)
	config.Dial = i.tunnel.dial
	return config
}
