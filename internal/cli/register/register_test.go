package register

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/registration/pull"
)

func kubeconfig(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

const members = `{apiVersion: v1, kind: Config, current-context: one,
	clusters: [{name: east, cluster: {server: "https://east"}}, {name: "arn:aws:west", cluster: {server: "https://west"}}],
	contexts: [{name: one, context: {cluster: east}}, {name: two, context: {cluster: "arn:aws:west"}}]}`

func TestWhatIsTypedToRegister(t *testing.T) {
	hash := "sha256:" + strings.Repeat("ab", 32)
	fine := pull.Register{Endpoint: "192.0.2.1:5443", Token: "abcdef.0123456789abcdef", CAHashes: []string{hash}, Replicas: 1}
	tests := map[string]struct {
		change  func(*pull.Register)
		context string
		want    string
		name    string
		host    string // default https://east
	}{
		"the cluster of the current context":       {name: "east"},
		"the context with the name of the cluster": {change: func(r *pull.Register) { r.Name = "two" }, name: "two", host: "https://west"},
		"the context that was named":               {change: func(r *pull.Register) { r.Name = "one" }, context: "two", name: "one", host: "https://west"},
		"a name of one's own":                      {change: func(r *pull.Register) { r.Name = "mine" }, name: "mine"},
		"a scheme is forgiven":                     {change: func(r *pull.Register) { r.Endpoint = "https://karmada:5443/" }, name: "east"},
		"a cluster that cannot be called that":     {context: "two", want: "choose a name with --cluster-name"},
		"a context that does not exist":            {context: "three", want: `has no context "three"`},
		"no token":                                 {change: func(r *pull.Register) { r.Token = "" }, want: "--token is missing"},
		"half a token":                             {change: func(r *pull.Register) { r.Token = "abcdef" }, want: "a token is six characters"},
		"no hash":                                  {change: func(r *pull.Register) { r.CAHashes = nil }, want: "--discovery-token-ca-cert-hash is missing"},
		"no hash on purpose":                       {change: func(r *pull.Register) { r.CAHashes, r.SkipCAVerification = nil, true }, name: "east"},
		"half a hash":                              {change: func(r *pull.Register) { r.CAHashes = []string{hash[:20]} }, want: "is not a hash"},
		"no port":                                  {change: func(r *pull.Register) { r.Endpoint = "karmada" }, want: "write host:port"},
		"a path":                                   {change: func(r *pull.Register) { r.Endpoint = "karmada:5443/x" }, want: "without scheme and path"},
		"a name that is taken by the system":       {change: func(r *pull.Register) { r.Name = "rbac-generator" }, want: "no cluster with an agent can have this name"},
		"a certificate for a minute":               {change: func(r *pull.Register) { r.CertExpiration = time.Minute }, want: "at least 10m"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			register := fine
			if test.change != nil {
				test.change(&register)
			}
			err := complete(&register, command.Access{Path: kubeconfig(t, members), Context: test.context}, false)
			if test.want == "" {
				if err != nil || register.Name != test.name {
					t.Fatalf("name %q, error %v, want %q", register.Name, err, test.name)
				}
				if want := cmp.Or(test.host, "https://east"); register.Member.Host != want {
					t.Errorf("the server is %s, want %s", register.Member.Host, want)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestHowUnregisterReachesBothSides(t *testing.T) {
	const karmadas = `{apiVersion: v1, kind: Config, current-context: a,
		clusters: [{name: a, cluster: {server: "https://a"}}, {name: b, cluster: {server: "https://b"}}],
		contexts: [{name: a, context: {cluster: a}}, {name: b, context: {cluster: b}}]}`
	memberFile, karmadaFile := kubeconfig(t, members), kubeconfig(t, karmadas)
	tests := map[string]struct {
		karmada, member command.Access
		name            string
		want            [2]string // the servers of the control plane and of the member
	}{
		"without --karmada-config the kubeconfig of the agent is used": {
			member: command.Access{Path: memberFile}, name: "edge", want: [2]string{"", "https://east"},
		},
		"--karmada-context has no effect without --karmada-config": {
			karmada: command.Access{Context: "karmada-apiserver"}, member: command.Access{Path: memberFile}, name: "edge", want: [2]string{"", "https://east"},
		},
		"the current context of --karmada-config": {
			karmada: command.Access{Path: karmadaFile}, member: command.Access{Path: memberFile}, name: "edge", want: [2]string{"https://a", "https://east"},
		},
		"--karmada-context chooses in --karmada-config": {
			karmada: command.Access{Path: karmadaFile, Context: "b"}, member: command.Access{Path: memberFile}, name: "edge", want: [2]string{"https://b", "https://east"},
		},
		"the member is the context with the name of the cluster": {
			member: command.Access{Path: memberFile}, name: "two", want: [2]string{"", "https://west"},
		},
		"the member is the context that was named": {
			member: command.Access{Path: memberFile, Context: "one"}, name: "two", want: [2]string{"", "https://east"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			unregister := pull.Unregister{Name: test.name, Wait: time.Minute}
			if err := open(&unregister, test.karmada, test.member); err != nil {
				t.Fatal(err)
			}
			got := [2]string{"", unregister.Member.Host}
			if unregister.Karmada != nil {
				got[0] = unregister.Karmada.Host
			}
			if got != test.want {
				t.Errorf("servers %q, want %q", got, test.want)
			}
		})
	}
}

func TestFilesOfOtherReleasesAreRemovedIfTheyAreOfThisCluster(t *testing.T) {
	const conf = `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: karmada-apiserver, user: east}}]}`
	for cluster, want := range map[string]bool{"east": false, "west": true} {
		agent, ca := kubeconfig(t, conf), kubeconfig(t, "")
		if problems := removeFiles(cluster, agent, ca); len(problems) > 0 {
			t.Errorf("problems: %v", problems)
		}
		for _, file := range []string{agent, ca} {
			if _, err := os.Stat(file); (err == nil) != want {
				t.Errorf("after unregistering %s: %s exists: %t, want %t", cluster, file, err == nil, want)
			}
		}
	}
	if problems := removeFiles("east", "/nowhere/agent", "/nowhere/ca"); len(problems) > 0 {
		t.Errorf("without files: %v", problems)
	}
}
