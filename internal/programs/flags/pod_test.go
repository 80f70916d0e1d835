package flags

import (
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"

	"karmada.io/karmada/internal/pki"
)

func TestAServiceAccountIsReadWhereTheVariableSays(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(ServiceAccountVariable, dir)
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBERNETES_SERVICE_PORT", "")
	if _, err := InCluster(); !errors.Is(err, rest.ErrNotInCluster) {
		t.Errorf("without an API server there is the error %v, want %v", err, rest.ErrNotInCluster)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "6443")
	if _, err := InCluster(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a token there is the error %v, want %v", err, os.ErrNotExist)
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
		t.Errorf("the service account leads to %s with token %q from %s", config.Host, config.BearerToken, config.BearerTokenFile)
	}
}

func TestAPodWithAnAddressOfItsOwnListensThere(t *testing.T) {
	tests := map[string]struct {
		own, address, want string
	}{
		"no address of its own leaves everything":  {"", ":8080", ":8080"},
		"no host is the own":                       {"127.70.1.2", ":8080", "127.70.1.2:8080"},
		"all addresses are the own":                {"127.70.1.2", "0.0.0.0:8080", "127.70.1.2:8080"},
		"all addresses of both families as well":   {"127.70.1.2", "[::]:8080", "127.70.1.2:8080"},
		"a host without port":                      {"127.70.1.2", "0.0.0.0", "127.70.1.2"},
		"an address that somebody chose is theirs": {"127.70.1.2", "127.0.0.1:8080", "127.0.0.1:8080"},
		"off is off":         {"127.70.1.2", "0", "0"},
		"nothing is nothing": {"127.70.1.2", "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv(PodAddressVariable, test.own)
			if got := OwnAddress(test.address); got != test.want {
				t.Errorf("%q becomes %q, want %q", test.address, got, test.want)
			}
		})
	}
}

// tokenOf is a token that says something, and is signed by nobody.
func tokenOf(says string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(says)) + ".c2ln"
}

func TestAPodIsKnownByItsToken(t *testing.T) {
	tests := map[string]struct{ token, want string }{
		"a token is of its Pod":            {tokenOf(`{"kubernetes.io":{"namespace":"ns","pod":{"name":"web-1","uid":"1-2-3"}}}`), "1-2-3"},
		"a file may end with a line":       {tokenOf(`{"kubernetes.io":{"pod":{"uid":"1-2-3"}}}`) + "\n", "1-2-3"},
		"tokens of Secrets are of no Pod":  {tokenOf(`{"kubernetes.io/serviceaccount/namespace":"ns"}`), ""},
		"tokens without Pod are of no Pod": {tokenOf(`{"kubernetes.io":{"namespace":"ns"}}`), ""},
		"a claim may be something else":    {tokenOf(`{"kubernetes.io":{"pod":7}}`), ""},
		"other tokens say nothing":         {"abc", ""},
		"broken ones neither":              {"a.*.c", ""},
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

func FuzzPodOf(f *testing.F) {
	f.Add(tokenOf(`{"kubernetes.io":{"pod":{"uid":"1-2-3"}}}`))
	f.Add("..")
	f.Fuzz(func(_ *testing.T, token string) { podOf(token) })
}
