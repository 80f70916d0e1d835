package membership

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

func writeKubeconfig(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

const membersKubeconfig = `{apiVersion: v1, kind: Config, current-context: one,
	clusters: [{name: east, cluster: {server: "https://east"}}, {name: "arn:aws:west", cluster: {server: "https://west"}}],
	contexts: [{name: one, context: {cluster: east}}, {name: two, context: {cluster: "arn:aws:west"}}]}`

func TestCompleteOptions(t *testing.T) {
	hash := "sha256:" + strings.Repeat("ab", 32)
	valid := pull.Register{Endpoint: "192.0.2.1:5443", Token: "abcdef.0123456789abcdef", CAHashes: []string{hash}, Replicas: 1}
	tests := map[string]struct {
		change  func(*pull.Register)
		context string
		want    string
		name    string
		host    string // default https://east
	}{
		"the cluster of the current context":       {name: "east"},
		"the context with the name of the cluster": {change: func(r *pull.Register) { r.Name = "two" }, name: "two", host: "https://west"},
		"the named context":                        {change: func(r *pull.Register) { r.Name = "one" }, context: "two", name: "one", host: "https://west"},
		"another name":                             {change: func(r *pull.Register) { r.Name = "mine" }, name: "mine"},
		"an endpoint with a scheme":                {change: func(r *pull.Register) { r.Endpoint = "https://karmada:5443/" }, name: "east"},
		"an invalid name in the kubeconfig":        {context: "two", want: "choose a name with --cluster-name"},
		"a context that does not exist":            {context: "three", want: `has no context "three"`},
		"no token":                                 {change: func(r *pull.Register) { r.Token = "" }, want: "--token is missing"},
		"a truncated token":                        {change: func(r *pull.Register) { r.Token = "abcdef" }, want: "a token is six characters"},
		"no hash":                                  {change: func(r *pull.Register) { r.CAHashes = nil }, want: "--discovery-token-ca-cert-hash is missing"},
		"no hash with the unsafe flag":             {change: func(r *pull.Register) { r.CAHashes, r.SkipCAVerification = nil, true }, name: "east"},
		"a truncated hash":                         {change: func(r *pull.Register) { r.CAHashes = []string{hash[:20]} }, want: "is not a hash"},
		"no port":                                  {change: func(r *pull.Register) { r.Endpoint = "karmada" }, want: "write host:port"},
		"a path":                                   {change: func(r *pull.Register) { r.Endpoint = "karmada:5443/x" }, want: "without scheme and path"},
		"an image with a scheme":                   {change: func(r *pull.Register) { r.Image = "https://r.example.com/karmada" }, want: `--karmada-agent-image "https://r.example.com/karmada": it must be the name of an image`},
		"the default image":                        {change: func(r *pull.Register) { r.Image = pull.DefaultAgentImage() }, name: "east"},
		"a reserved name":                          {change: func(r *pull.Register) { r.Name = "rbac-generator" }, want: "no cluster with an agent can have this name"},
		"an expiration of one minute":              {change: func(r *pull.Register) { r.CertExpiration = time.Minute }, want: "at least 10m"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			register := valid
			if test.change != nil {
				test.change(&register)
			}
			err := completeRegister(&register, command.Kubeconfig{Path: writeKubeconfig(t, membersKubeconfig), Context: test.context}, false)
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

func TestUnregisterLoadConfigs(t *testing.T) {
	const karmadas = `{apiVersion: v1, kind: Config, current-context: a,
		clusters: [{name: a, cluster: {server: "https://a"}}, {name: b, cluster: {server: "https://b"}}],
		contexts: [{name: a, context: {cluster: a}}, {name: b, context: {cluster: b}}]}`
	memberFile, karmadaFile := writeKubeconfig(t, membersKubeconfig), writeKubeconfig(t, karmadas)
	tests := map[string]struct {
		karmada, member command.Kubeconfig
		name            string
		want            [2]string // the servers of the control plane and of the member
	}{
		"without --karmada-config the kubeconfig of the agent is used": {
			member: command.Kubeconfig{Path: memberFile}, name: "edge", want: [2]string{"", "https://east"},
		},
		"--karmada-context has no effect without --karmada-config": {
			karmada: command.Kubeconfig{Context: "karmada-apiserver"}, member: command.Kubeconfig{Path: memberFile}, name: "edge", want: [2]string{"", "https://east"},
		},
		"the current context of --karmada-config": {
			karmada: command.Kubeconfig{Path: karmadaFile}, member: command.Kubeconfig{Path: memberFile}, name: "edge", want: [2]string{"https://a", "https://east"},
		},
		"--karmada-context chooses in --karmada-config": {
			karmada: command.Kubeconfig{Path: karmadaFile, Context: "b"}, member: command.Kubeconfig{Path: memberFile}, name: "edge", want: [2]string{"https://b", "https://east"},
		},
		"the member is the context with the name of the cluster": {
			member: command.Kubeconfig{Path: memberFile}, name: "two", want: [2]string{"", "https://west"},
		},
		"the member is the named context": {
			member: command.Kubeconfig{Path: memberFile, Context: "one"}, name: "two", want: [2]string{"", "https://east"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			unregister := pull.Unregister{Name: test.name, Wait: time.Minute}
			if err := loadUnregisterConfigs(&unregister, test.karmada, test.member); err != nil {
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

func TestRemoveAgentFiles(t *testing.T) {
	const conf = `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: karmada-apiserver, user: east}}]}`
	for cluster, want := range map[string]bool{"east": false, "west": true} {
		agent, ca := writeKubeconfig(t, conf), writeKubeconfig(t, "")
		if problems := removeAgentFiles(cluster, agent, ca); len(problems) > 0 {
			t.Errorf("problems: %v", problems)
		}
		for _, file := range []string{agent, ca} {
			if _, err := os.Stat(file); (err == nil) != want {
				t.Errorf("after unregistering %s: %s exists: %t, want %t", cluster, file, err == nil, want)
			}
		}
	}
	if problems := removeAgentFiles("east", "/nowhere/agent", "/nowhere/ca"); len(problems) > 0 {
		t.Errorf("without files: %v", problems)
	}
}
