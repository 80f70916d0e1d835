// Package podenvironment reads the service account, the address and the DNS server of the Pod, also
// in a process that runs without a container.
package podenvironment

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
)

// A node may run a Pod as plain processes of its host, without containers. Such processes use the
// file system and the network of the host. The following environment variables contain the paths
// and the address that a container finds at well-known locations.
const (
	// ServiceAccountVariable is the environment variable with the directory of the service account
	// of the Pod. In a container, this directory is /var/run/secrets/kubernetes.io/serviceaccount.
	ServiceAccountVariable = "KARMADA_SERVICE_ACCOUNT_DIR"
	// PodAddressVariable is the environment variable with the IP address of the Pod. A container
	// does not need it and may listen on all addresses, because they all belong to the Pod.
	PodAddressVariable = "KARMADA_POD_IP"

	serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"
)

// InCluster returns a client configuration with the service account of the Pod of this process. It
// returns rest.ErrNotInCluster outside of a Pod. Clients with this configuration read the token
// file repeatedly, because the token is renewed.
func InCluster() (*rest.Config, error) {
	dir := os.Getenv(ServiceAccountVariable)
	if dir == "" {
		return rest.InClusterConfig() // callers compare this error
	}
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, rest.ErrNotInCluster
	}
	tokenFile, caFile := filepath.Join(dir, "token"), filepath.Join(dir, "ca.crt")
	token, err := os.ReadFile(tokenFile)
	if err != nil {
		return nil, fmt.Errorf("reading the token of the service account: %w", err)
	}
	if _, err := cert.NewPool(caFile); err != nil {
		return nil, fmt.Errorf("reading the certificate authority of the service account: %w", err)
	}
	return &rest.Config{
		Host:            "https://" + net.JoinHostPort(host, port),
		TLSClientConfig: rest.TLSClientConfig{CAFile: caFile},
		BearerToken:     string(token), BearerTokenFile: tokenFile,
	}, nil
}

// PodUID returns the UID of the Pod of this process. It returns an empty string outside of a Pod,
// and in a Pod without a service account token.
func PodUID() string {
	dir := os.Getenv(ServiceAccountVariable)
	if dir == "" {
		dir = serviceAccountDir
	}
	token, err := os.ReadFile(filepath.Join(dir, "token"))
	if err != nil {
		return ""
	}
	return podUIDFromToken(string(token))
}

// podUIDFromToken returns the UID of the Pod that a token was issued for. It does not verify the
// signature, because a user who can change the files of a process can already do more than that.
func podUIDFromToken(token string) string {
	parts := strings.Split(strings.TrimSpace(token), ".")
	if len(parts) != 3 {
		return ""
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var claims struct {
		Kubernetes struct {
			Pod struct {
				UID string `json:"uid"`
			} `json:"pod"`
		} `json:"kubernetes.io"`
	}
	if json.Unmarshal(payload, &claims) != nil {
		return ""
	}
	return claims.Kubernetes.Pod.UID
}

// DefaultListenAddress returns the default listen address of a program. address is the default in
// a container. In a process without a container, the IP address of the Pod replaces an unspecified
// host.
func DefaultListenAddress(address string) string {
	podIP := os.Getenv(PodAddressVariable)
	if podIP == "" {
		return address
	}
	return ReplaceUnspecifiedHost(address, podIP)
}

// ReplaceUnspecifiedHost replaces the host of an address with the parameter to if the host is
// unspecified, as in :8080, 0.0.0.0:8080 and ::. It returns any other address unchanged.
func ReplaceUnspecifiedHost(address, to string) string {
	if ip := net.ParseIP(address); ip != nil && ip.IsUnspecified() {
		return to
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == "" {
		return address
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return net.JoinHostPort(to, port)
	}
	return address
}
