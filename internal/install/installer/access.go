package installer

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"karmada.io/karmada/internal/install/certificates"
)

// Names in kubeconfigs of a control plane.
const (
	clusterName = "karmada-apiserver"
	userName    = "karmada-admin"
)

// kubeconfig returns the kubeconfig of an administrator, which refers to no files.
func (i *Installer) kubeconfig(server string) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters[clusterName] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: i.files[certificates.CA+".crt"]}
	config.AuthInfos[userName] = &clientcmdapi.AuthInfo{ClientCertificateData: i.files[certificates.Karmada+".crt"], ClientKeyData: i.files[certificates.Karmada+".key"]}
	config.Contexts[clusterName] = &clientcmdapi.Context{Cluster: clusterName, AuthInfo: userName}
	config.CurrentContext = clusterName
	data, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("encoding the kubeconfig of %s: %w", karmadaName, err)
	}
	return data, nil
}

// The rate limit of the requests of an installation.
const (
	queriesPerSecond = 100
	burst            = 200
)

// clientConfig returns the client configuration of an administrator of the control plane.
func (i *Installer) clientConfig(server string) (*rest.Config, error) {
	data, err := i.kubeconfig(server)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(data)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of %s: %w", karmadaName, err)
	}
	config.QPS, config.Burst, config.Timeout = queriesPerSecond, burst, requestTimeout
	return config, nil
}
