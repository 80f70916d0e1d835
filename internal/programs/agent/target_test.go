package agent

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func TestNewTargetIsDetected(t *testing.T) {
	s, other := newServer(t, "old"), newServer(t, "new")
	change := func(t *testing.T, edit func(*clientcmdapi.Config)) []byte {
		t.Helper()
		config, err := clientcmd.Load(kubeconfigFor(t, s, "old"))
		if err != nil {
			t.Fatal(err)
		}
		edit(config)
		encoded, err := clientcmd.Write(*config)
		if err != nil {
			t.Fatal(err)
		}
		return encoded
	}
	authority := filepath.Join(t.TempDir(), "ca.crt")
	certificates := func(config *clientcmdapi.Config) []byte { return config.Clusters["karmada"].CertificateAuthorityData }
	tests := map[string]struct {
		edit             func(*clientcmdapi.Config)
		changed, invalid bool
	}{
		"no change":              {edit: func(*clientcmdapi.Config) {}},
		"another token":          {edit: func(c *clientcmdapi.Config) { c.AuthInfos["east"].Token = "new" }},
		"another unused cluster": {edit: func(c *clientcmdapi.Config) { c.Clusters["other"] = &clientcmdapi.Cluster{Server: other.URL} }},
		"another server":         {edit: func(c *clientcmdapi.Config) { c.Clusters["karmada"].Server = other.URL }, changed: true},
		"a proxy":                {edit: func(c *clientcmdapi.Config) { c.Clusters["karmada"].ProxyURL = "http://proxy" }, changed: true},
		"one more authority": {edit: func(c *clientcmdapi.Config) {
			c.Clusters["karmada"].CertificateAuthorityData = append(certificates(c), certificates(c)...)
		}, changed: true},
		"a user with password": {edit: func(c *clientcmdapi.Config) {
			*c.AuthInfos["east"] = clientcmdapi.AuthInfo{Username: "u", Password: "p"}
		}, changed: true},
		"an invalid authority": {edit: func(c *clientcmdapi.Config) { c.Clusters["karmada"].CertificateAuthorityData = []byte("x") }, invalid: true},
		"a missing authority file": {edit: func(c *clientcmdapi.Config) {
			c.Clusters["karmada"].CertificateAuthorityData, c.Clusters["karmada"].CertificateAuthority = nil, authority
		}, invalid: true},
		"another server with an invalid certificate": {edit: func(c *clientcmdapi.Config) {
			c.Clusters["karmada"].Server = other.URL
			*c.AuthInfos["east"] = clientcmdapi.AuthInfo{ClientCertificateData: []byte("x"), ClientKeyData: []byte("x")}
		}, invalid: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := newConnection(writeFile(t, kubeconfigFor(t, s, "old")), "", -1, 0)
			if err != nil {
				t.Fatal(err)
			}
			before := c.currentIdentity()
			if err := os.WriteFile(c.path, change(t, test.edit), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := c.reload(t.Context()); (err != nil) != test.invalid {
				t.Errorf("error %v, want one: %t", err, test.invalid)
			}
			changed := false
			select {
			case <-c.targetChanged:
				changed = true
			default:
			}
			if changed != test.changed {
				t.Errorf("the target changed: %t, want %t", changed, test.changed)
			}
			if (changed || test.invalid) && c.currentIdentity() != before {
				t.Error("credentials for another target were sent to the old one")
			}
		})
	}
}

func TestChangedAuthorityFileIsANewTarget(t *testing.T) {
	s := newServer(t, "old")
	config, err := clientcmd.Load(kubeconfigFor(t, s, "old"))
	if err != nil {
		t.Fatal(err)
	}
	authority, cluster := filepath.Join(t.TempDir(), "ca.crt"), config.Clusters["karmada"]
	write := func(content []byte) {
		if err := os.WriteFile(authority, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(cluster.CertificateAuthorityData)
	twice := strings.Repeat(string(cluster.CertificateAuthorityData), 2)
	cluster.CertificateAuthority, cluster.CertificateAuthorityData = authority, nil
	encoded, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	c, err := newConnection(writeFile(t, encoded), "", -1, 0)
	if err != nil {
		t.Fatal(err)
	}
	write([]byte(twice))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c.reloadRequests <- struct{}{}
	c.watchKubeconfig(ctx)
	if ctx.Err() != nil {
		t.Error("the change of the certificate authority was not noticed")
	}
}
