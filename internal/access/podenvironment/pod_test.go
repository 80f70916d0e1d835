package podenvironment

import (
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"

	"karmada.io/karmada/internal/pki"
)

func TestInClusterReadsTheServiceAccountDirectory(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(ServiceAccountVariable, dir)
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBERNETES_SERVICE_PORT", "")
	if _, err := InCluster(); !errors.Is(err, rest.ErrNotInCluster) {
		t.Errorf("error without an API server %v, want %v", err, rest.ErrNotInCluster)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "6443")
	if _, err := InCluster(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error without a token %v, want %v", err, os.ErrNotExist)
	}
	certs := pki.Dir{Path: dir}
	if _, err := certs.EnsureAuthority("ca", "test"); err != nil {
		t.Fatal(err)
	}
	tokenFile := filepath.Join(dir, "token")
	if err := os.WriteFile(tokenFile, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := InCluster()
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://127.0.0.1:6443" || config.BearerToken != "secret" || config.BearerTokenFile != tokenFile {
		t.Errorf("the configuration has server %s and token %q from %s", config.Host, config.BearerToken, config.BearerTokenFile)
	}
}

func TestOwnAddress(t *testing.T) {
	tests := map[string]struct {
		podIP, address, want string
	}{
		"without a Pod IP the address is unchanged": {"", ":8080", ":8080"},
		"an empty host becomes the Pod IP":          {"127.70.1.2", ":8080", "127.70.1.2:8080"},
		"0.0.0.0 becomes the Pod IP":                {"127.70.1.2", "0.0.0.0:8080", "127.70.1.2:8080"},
		"[::] becomes the Pod IP":                   {"127.70.1.2", "[::]:8080", "127.70.1.2:8080"},
		"a host without port":                       {"127.70.1.2", "0.0.0.0", "127.70.1.2"},
		"a specific host is unchanged":              {"127.70.1.2", "127.0.0.1:8080", "127.0.0.1:8080"},
		"0 is unchanged":                            {"127.70.1.2", "0", "0"},
		"an empty address is unchanged":             {"127.70.1.2", "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv(PodAddressVariable, test.podIP)
			if got := DefaultListenAddress(test.address); got != test.want {
				t.Errorf("%q becomes %q, want %q", test.address, got, test.want)
			}
		})
	}
}

// unsignedToken returns a token with the given payload and no valid signature.
func unsignedToken(payload string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2ln"
}

func TestPodUID(t *testing.T) {
	tests := map[string]struct{ token, want string }{
		"a token has the UID of its Pod": {unsignedToken(`{"kubernetes.io":{"namespace":"ns","pod":{"name":"web-1","uid":"1-2-3"}}}`), "1-2-3"},
		"a file may end with a newline":  {unsignedToken(`{"kubernetes.io":{"pod":{"uid":"1-2-3"}}}`) + "\n", "1-2-3"},
		"tokens of Secrets have no Pod":  {unsignedToken(`{"kubernetes.io/serviceaccount/namespace":"ns"}`), ""},
		"tokens may have no Pod":         {unsignedToken(`{"kubernetes.io":{"namespace":"ns"}}`), ""},
		"a claim may have another type":  {unsignedToken(`{"kubernetes.io":{"pod":7}}`), ""},
		"another format is ignored":      {"abc", ""},
		"an invalid encoding is ignored": {"a.*.c", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv(ServiceAccountVariable, dir)
			if err := os.WriteFile(filepath.Join(dir, "token"), []byte(test.token), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := PodUID(); got != test.want {
				t.Errorf("Pod %q, want %q", got, test.want)
			}
		})
	}
	t.Setenv(ServiceAccountVariable, t.TempDir())
	if got := PodUID(); got != "" {
		t.Errorf("without a token the Pod is %q", got)
	}
}

func FuzzPodUIDFromToken(f *testing.F) {
	f.Add(unsignedToken(`{"kubernetes.io":{"pod":{"uid":"1-2-3"}}}`))
	f.Add("..")
	f.Fuzz(func(_ *testing.T, token string) { podUIDFromToken(token) })
}
