package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func TestChooseContext(t *testing.T) {
	tests := map[string]struct {
		contexts                string
		current, named, cluster string
		want                    ContextChoice
	}{
		"the named context has precedence": {
			contexts: "east west", current: "east", named: "west", cluster: "east", want: ContextChoice{Context: "west"},
		},
		"a missing named context is not replaced": {
			contexts: "east", current: "east", named: "north", cluster: "east", want: ContextChoice{Context: "north"},
		},
		"the context with the name of the cluster precedes the current one": {
			contexts: "east west", current: "east", cluster: "west", want: ContextChoice{"west", "it has the name of the cluster"},
		},
		"the only context is taken regardless of its name": {
			contexts: "admin@prod", current: "admin@prod", cluster: "west", want: ContextChoice{"admin@prod", "it is the only one"},
		},
		"the only context is taken without a current one": {
			contexts: "admin@prod", cluster: "west", want: ContextChoice{"admin@prod", "it is the only one"},
		},
		"the only context is taken if the current one does not exist": {
			contexts: "admin@prod", current: "gone", cluster: "west", want: ContextChoice{"admin@prod", "it is the only one"},
		},
		"the current context is taken if none has the name of the cluster": {
			contexts: "a b", current: "b", cluster: "west", want: ContextChoice{"b", `it is the current one; none has the name "west"`},
		},
		"without a name of the cluster the current context is taken": {
			contexts: "a b", current: "b", want: ContextChoice{"b", "it is the current one"},
		},
		"several contexts, none current": {contexts: "a b", cluster: "west"},
		"no contexts":                    {cluster: "west"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			config := &clientcmdapi.Config{CurrentContext: test.current, Contexts: map[string]*clientcmdapi.Context{}}
			for _, context := range strings.Fields(test.contexts) {
				config.Contexts[context] = &clientcmdapi.Context{}
			}
			if diff := cmp.Diff(test.want, ChooseContext(config, test.named, test.cluster)); diff != "" {
				t.Errorf("choice (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMemberConfig(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	dir := t.TempDir()
	file := filepath.Join(dir, "members.config")
	const members = `{apiVersion: v1, kind: Config, current-context: member1,
		clusters: [{name: c1, cluster: {server: "https://one"}}, {name: c2, cluster: {server: "https://two"}}],
		contexts: [{name: member1, context: {cluster: c1}}, {name: member2, context: {cluster: c2}}]}`
	if err := os.WriteFile(file, []byte(members), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		access               Kubeconfig
		cluster              string
		host, origin, failed string
	}{
		"a context with the name of the cluster": {
			access: Kubeconfig{Path: file}, cluster: "member2", host: "https://two",
			origin: `context "member2" of kubeconfig ` + file + " (it has the name of the cluster)",
		},
		"no context with the name of the cluster": {
			access: Kubeconfig{Path: file}, cluster: "other", host: "https://one",
			origin: `context "member1" of kubeconfig ` + file + ` (it is the current one; none has the name "other")`,
		},
		"a named context": {
			access: Kubeconfig{Path: file, Context: "member1"}, cluster: "member2", host: "https://one",
			origin: `context "member1" of kubeconfig ` + file,
		},
		"a named context that does not exist": {
			access: Kubeconfig{Path: file, Context: "member9"}, cluster: "member2",
			failed: "the member: kubeconfig " + file + ` has no context "member9": choose one of member1, member2`,
		},
		"a file that does not exist": {
			access: Kubeconfig{Path: filepath.Join(dir, "absent")}, cluster: "member2",
			failed: "the member: there is no kubeconfig " + filepath.Join(dir, "absent"),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			config, origin, err := test.access.MemberConfig(test.cluster)
			if test.failed != "" {
				if err == nil || !strings.HasPrefix(err.Error(), test.failed) {
					t.Errorf("got %v, want %s", err, test.failed)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{test.host, test.origin}, []string{config.Host, origin}); diff != "" {
				t.Errorf("server and origin (-want +got):\n%s", diff)
			}
		})
	}
}
