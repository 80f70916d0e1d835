package flags

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

// A node may run a Pod as plain processes of its machine, without containers. Such
// processes share the files and the network of others, and are told by variables
// what a container finds at places of its own.
const (
	// ServiceAccountVariable names the directory of the Pod's service account, which
	// a container has at /var/run/secrets/kubernetes.io/serviceaccount.
	ServiceAccountVariable = "KARMADA_SERVICE_ACCOUNT_DIR"
	// PodAddressVariable holds the address that is the Pod's alone. A container may
	// listen on all addresses, for all it has are its own.
	PodAddressVariable = "KARMADA_POD_IP"

	serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"
)

// InCluster is the configuration of a client that uses the service account of the
// Pod that this process runs in. It is rest.ErrNotInCluster outside of a Pod. The
// token is read again while the client lives.
func InCluster() (*rest.Config, error) {
	dir := os.Getenv(ServiceAccountVariable)
	if dir == "" {
		return rest.InClusterConfig() //nolint:wrapcheck // callers look at this error
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

// PodUID is the UID of the Pod that this process runs in, empty if it is unknown:
// outside of a Pod, and in one without a token of its own.
func PodUID() string {
	dir := os.Getenv(ServiceAccountVariable)
	if dir == "" {
		dir = serviceAccountDir
	}
	token, err := os.ReadFile(filepath.Join(dir, "token"))
	if err != nil {
		return ""
	}
	return podOf(string(token))
}

// podOf is the UID of the Pod that a token was issued for. The token is believed:
// whoever can change the files of a process can do more than that.
func podOf(token string) string {
	parts := strings.Split(strings.TrimSpace(token), ".")
	if len(parts) != 3 {
		return ""
	}
	said, err := base64.RawURLEncoding.DecodeString(parts[1])
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
	if json.Unmarshal(said, &claims) != nil {
		return ""
	}
	return claims.Kubernetes.Pod.UID
}

// OwnAddress is where a program listens by default, given where it does in a
// container: on the address that is its Pod's, if it was told which.
func OwnAddress(address string) string {
	own := os.Getenv(PodAddressVariable)
	if own == "" {
		return address
	}
	return Narrow(address, own)
}

// Narrow replaces all addresses of a machine, as in :8080, 0.0.0.0:8080 and ::, by
// one. Anything else stays as it is.
func Narrow(address, to string) string {
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
