package pki

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// KubeconfigContext is a kubeconfig's context with its cluster and user.
type KubeconfigContext struct {
	// Name is the name of both the context and the cluster.
	Name string
	// User is the user entry's name. The default is Name.
	User string
	// Server is the API server's URL.
	Server string
	// CA is the PEM bundle that verifies the server's certificate.
	CA []byte
	// ClientCertFile and ClientKeyFile are referenced in the kubeconfig. They are not copied into it,
	// because they are renewed and every reader must get the current files.
	ClientCertFile, ClientKeyFile string
}

// WriteKubeconfig writes a kubeconfig with the given contexts. The first context becomes the current
// context. Only the owner can read the file, because it refers to credentials.
func WriteKubeconfig(path string, accesses ...KubeconfigContext) error {
	config := clientcmdapi.NewConfig()
	for i, access := range accesses {
		cert, err := absolutePath(access.ClientCertFile)
		if err != nil {
			return fmt.Errorf("checking the client certificate of context %q: %w", access.Name, err)
		}
		key, err := absolutePath(access.ClientKeyFile)
		if err != nil {
			return fmt.Errorf("checking the client key of context %q: %w", access.Name, err)
		}
		user := access.User
		if user == "" {
			user = access.Name
		}
		config.Clusters[access.Name] = &clientcmdapi.Cluster{Server: access.Server, CertificateAuthorityData: access.CA}
		config.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificate: cert, ClientKey: key}
		config.Contexts[access.Name] = &clientcmdapi.Context{Cluster: access.Name, AuthInfo: user}
		if i == 0 {
			config.CurrentContext = access.Name
		}
	}
	data, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encoding kubeconfig %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("creating directory of kubeconfig: %w", err)
	}
	return WriteFile(path, data, 0o600)
}

// absolutePath returns the file's absolute path, or an error if the file does not exist.
func absolutePath(path string) (string, error) {
	if _, err := os.Stat(path); err != nil {
		return "", err
	}
	return filepath.Abs(path)
}
