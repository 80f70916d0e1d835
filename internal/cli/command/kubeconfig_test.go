package command

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func TestABadContextIsToldWithThoseThatExist(t *testing.T) {
	cause := errors.New("no server")
	two := map[string]*clientcmdapi.Context{"west": {}, "east": {}}
	tests := map[string]struct {
		config  clientcmdapi.Config
		context string
		want    string
	}{
		"an empty kubeconfig is the wrong one": {
			want: `kubeconfig f has no contexts: name the right file with its flag or in $KUBECONFIG`,
		},
		"no current context: choose one": {
			config: clientcmdapi.Config{Contexts: two},
			want:   `kubeconfig f has no current context: choose one of east, west`,
		},
		"a context that does not exist": {
			config: clientcmdapi.Config{Contexts: two, CurrentContext: "east"}, context: "north",
			want: `kubeconfig f has no context "north": choose one of east, west`,
		},
		"a current context that does not exist": {
			config: clientcmdapi.Config{Contexts: two, CurrentContext: "north"},
			want:   `kubeconfig f has no context "north": choose one of east, west`,
		},
		"a context that exists and is broken": {
			config: clientcmdapi.Config{Contexts: two, CurrentContext: "east"},
			want:   `context "east" of kubeconfig f: no server`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := badContext(&test.config, "f", test.context, cause).Error(); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestKubeconfigsThatDoNotExistAreToldSo(t *testing.T) {
	dir := t.TempDir()
	absent, other, empty := filepath.Join(dir, "absent"), filepath.Join(dir, "other"), filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ path, env, want string }{
		"the one of a flag":   {path: absent, want: "there is no kubeconfig " + absent + ": name the right file"},
		"all of $KUBECONFIG":  {env: absent + ":" + other, want: "there is no kubeconfig " + absent + ", " + other + ": name the right file"},
		"an empty one beside": {env: absent + ":" + empty, want: "kubeconfig " + absent + ", " + empty + " has no contexts"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", test.env)
			_, err := Access{Path: test.path}.Config()
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
}

func TestConfigTakesContextAndImpersonation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(`{apiVersion: v1, kind: Config, current-context: east,
		clusters: [{name: east, cluster: {server: "https://east"}}, {name: west, cluster: {server: "https://west"}}],
		contexts: [{name: east, context: {cluster: east}}, {name: west, context: {cluster: west}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for context, host := range map[string]string{"": "https://east", "west": "https://west"} {
		config, err := Access{Path: path, Context: context, As: rest.ImpersonationConfig{UserName: "anna", Groups: []string{"dev"}, UID: "7"}}.Config()
		if err != nil {
			t.Fatal(err)
		}
		if config.Host != host {
			t.Errorf("context %q leads to %s, want %s", context, config.Host, host)
		}
		if config.Impersonate.UserName != "anna" || config.Impersonate.UID != "7" || strings.Join(config.Impersonate.Groups, ",") != "dev" {
			t.Errorf("acting as %+v", config.Impersonate)
		}
		if config.QPS != 50 || config.Burst != 300 {
			t.Errorf("limits %v and %v, want 50 and 300", config.QPS, config.Burst)
		}
	}
}

func TestMissingClustersAreListed(t *testing.T) {
	tests := map[string]struct {
		wanted, existing []string
		want             string
	}{
		"all are there":                 {wanted: []string{"east"}, existing: []string{"east", "west"}},
		"missing ones, comma separated": {wanted: []string{"east", "north", "south"}, existing: []string{"east", "west"}, want: `clusters.cluster.karmada.io "north" not found, clusters.cluster.karmada.io "south" not found: the control plane has east, west`},
		"there are none at all":         {wanted: []string{"east"}, want: `clusters.cluster.karmada.io "east" not found: the control plane has no members yet`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := Missing(test.wanted, test.existing); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestExitCodes(t *testing.T) {
	tests := map[string]struct {
		err  error
		want int
	}{
		"done":                      {nil, 0},
		"not as wanted":             {errors.New("no answer"), 1},
		"wrong usage":               {Wrong("no name"), 2},
		"wrong usage with a reason": {errors.Join(Wrong("no name"), errors.New("more")), 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := ExitCode(test.err); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestExamplesNameTheProgram(t *testing.T) {
	program := &Program{Name: "kubectl karmada"}
	got := program.Examples(`
		# Do it
		{{program}} do it`)
	if want := "  # Do it\n  kubectl karmada do it"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
