package pki

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Access is one way into one cluster: a context of a kubeconfig.
type Access struct {
	// Context names the context and the cluster.
	Context string
	// User names the user entry; empty means the context's name.
	User string
	// Server is the URL of the API server.
	Server string
	// CA is the PEM bundle that the server's certificate is checked against.
	CA []byte
	// ClientCertFile and ClientKeyFile are named in the kubeconfig, not copied into
	// it: they are renewed, and whoever reads the kubeconfig has the current ones.
	ClientCertFile, ClientKeyFile string
}

// WriteKubeconfig writes a kubeconfig with one context for each access, the
// first being current. It leads to credentials and is readable by its owner only.
func WriteKubeconfig(path string, accesses ...Access) error {
	config := clientcmdapi.NewConfig()
	for i, access := range accesses {
		cert, err := existing(access.ClientCertFile)
		if err != nil {
			return fmt.Errorf("looking for the client certificate of context %q: %w", access.Context, err)
		}
		key, err := existing(access.ClientKeyFile)
		if err != nil {
			return fmt.Errorf("looking for the client key of context %q: %w", access.Context, err)
		}
		user := access.User
		if user == "" {
			user = access.Context
		}
		config.Clusters[access.Context] = &clientcmdapi.Cluster{Server: access.Server, CertificateAuthorityData: access.CA}
		config.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificate: cert, ClientKey: key}
		config.Contexts[access.Context] = &clientcmdapi.Context{Cluster: access.Context, AuthInfo: user}
		if i == 0 {
			config.CurrentContext = access.Context
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

// existing is the absolute path of a file that is there.
func existing(path string) (string, error) {
	if _, err := os.Stat(path); err != nil {
		return "", err
	}
	return filepath.Abs(path)
}
