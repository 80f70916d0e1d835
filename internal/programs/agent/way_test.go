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

func TestAKubeconfigThatLeadsElsewhereIsNoticed(t *testing.T) {
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
	certificates := func(of *clientcmdapi.Config) []byte { return of.Clusters["karmada"].CertificateAuthorityData }
	tests := map[string]struct {
		edit        func(*clientcmdapi.Config)
		moved, told bool
	}{
		"as before":      {edit: func(*clientcmdapi.Config) {}},
		"another token":  {edit: func(c *clientcmdapi.Config) { c.AuthInfos["east"].Token = "new" }},
		"other names":    {edit: func(c *clientcmdapi.Config) { c.Clusters["other"] = &clientcmdapi.Cluster{Server: other.URL} }},
		"another server": {edit: func(c *clientcmdapi.Config) { c.Clusters["karmada"].Server = other.URL }, moved: true},
		"a proxy":        {edit: func(c *clientcmdapi.Config) { c.Clusters["karmada"].ProxyURL = "http://proxy" }, moved: true},
		"one more authority": {edit: func(c *clientcmdapi.Config) {
			c.Clusters["karmada"].CertificateAuthorityData = append(certificates(c), certificates(c)...)
		}, moved: true},
		"a user with password": {edit: func(c *clientcmdapi.Config) {
			*c.AuthInfos["east"] = clientcmdapi.AuthInfo{Username: "u", Password: "p"}
		}, moved: true},
		"no good authority": {edit: func(c *clientcmdapi.Config) { c.Clusters["karmada"].CertificateAuthorityData = []byte("x") }, told: true},
		"an authority that is not there": {edit: func(c *clientcmdapi.Config) {
			c.Clusters["karmada"].CertificateAuthorityData, c.Clusters["karmada"].CertificateAuthority = nil, authority
		}, told: true},
		"another server with a broken identity": {edit: func(c *clientcmdapi.Config) {
			c.Clusters["karmada"].Server = other.URL
			*c.AuthInfos["east"] = clientcmdapi.AuthInfo{ClientCertificateData: []byte("x"), ClientKeyData: []byte("x")}
		}, told: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := connect(fileWith(t, kubeconfigFor(t, s, "old")), "", -1, 0)
			if err != nil {
				t.Fatal(err)
			}
			before := c.get()
			if err := os.WriteFile(c.path, change(t, test.edit), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := c.look(t.Context()); (err != nil) != test.told {
				t.Errorf("told %v, want something: %t", err, test.told)
			}
			moved := false
			select {
			case <-c.moved:
				moved = true
			default:
			}
			if moved != test.moved {
				t.Errorf("it leads elsewhere: %t, want %t", moved, test.moved)
			}
			if (moved || test.told) && c.get() != before {
				t.Error("credentials for elsewhere are shown here")
			}
		})
	}
}

func TestAnAuthorityIsFollowedThroughItsFile(t *testing.T) {
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
	c, err := connect(fileWith(t, encoded), "", -1, 0)
	if err != nil {
		t.Fatal(err)
	}
	write([]byte(twice))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c.wake <- struct{}{}
	c.watch(ctx)
	if ctx.Err() != nil {
		t.Error("nobody noticed another certificate authority")
	}
}
