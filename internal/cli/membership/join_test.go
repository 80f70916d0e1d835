package membership

import (
	"os"
	"path/filepath"
	"testing"

	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/registration/push"
)

const testKubeconfig = `{apiVersion: v1, kind: Config, current-context: one,
	clusters: [{name: c1, cluster: {server: "https://east"}}, {name: c2, cluster: {server: "https://west"}}],
	contexts: [{name: one, context: {cluster: c1}}, {name: two, context: {cluster: c2}}]}`

func TestUnjoinLoadConfigs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(testKubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		cluster string
		member  command.Kubeconfig
		want    string
	}{
		"no kubeconfig of the member":                    {cluster: "two"},
		"the context with the name of the cluster":       {cluster: "two", member: command.Kubeconfig{Path: file}, want: "https://west"},
		"the named context":                              {cluster: "two", member: command.Kubeconfig{Path: file, Context: "one"}, want: "https://east"},
		"the current one if none has the cluster's name": {cluster: "three", member: command.Kubeconfig{Path: file}, want: "https://east"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			unjoin := push.Unjoin{Name: test.cluster}
			if err := loadUnjoinConfigs(&unjoin, command.Kubeconfig{Path: file}, test.member); err != nil {
				t.Fatal(err)
			}
			got := ""
			if unjoin.Member != nil {
				got = unjoin.Member.Host
			}
			if got != test.want {
				t.Errorf("member %q, want %q", got, test.want)
			}
		})
	}
}
