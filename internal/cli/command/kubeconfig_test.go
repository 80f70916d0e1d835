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

func TestContextError(t *testing.T) {
	cause := errors.New("no server")
	two := map[string]*clientcmdapi.Context{"west": {}, "east": {}}
	tests := map[string]struct {
		config  clientcmdapi.Config
		context string
		want    string
	}{
		"no contexts": {
			want: `kubeconfig f has no contexts: set the right file with its flag or in $KUBECONFIG`,
		},
		"no current context": {
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
		"an invalid context": {
			config: clientcmdapi.Config{Contexts: two, CurrentContext: "east"},
			want:   `context "east" of kubeconfig f: no server`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := contextError(&test.config, "f", test.context, cause).Error(); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestMissingKubeconfig(t *testing.T) {
	dir := t.TempDir()
	absent, other, empty := filepath.Join(dir, "absent"), filepath.Join(dir, "other"), filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ path, env, want string }{
		"the file of a flag":          {path: absent, want: "there is no kubeconfig " + absent + ": set the right file"},
		"the files of $KUBECONFIG":    {env: absent + ":" + other, want: "there is no kubeconfig " + absent + ", " + other + ": set the right file"},
		"a missing and an empty file": {env: absent + ":" + empty, want: "kubeconfig " + absent + ", " + empty + " has no contexts"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", test.env)
			_, err := Kubeconfig{Path: test.path}.Config()
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
}

func TestKubeconfigConfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(`{apiVersion: v1, kind: Config, current-context: east,
		clusters: [{name: east, cluster: {server: "https://east"}}, {name: west, cluster: {server: "https://west"}}],
		contexts: [{name: east, context: {cluster: east}}, {name: west, context: {cluster: west}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for context, host := range map[string]string{"": "https://east", "west": "https://west"} {
		config, err := Kubeconfig{Path: path, Context: context, As: rest.ImpersonationConfig{UserName: "anna", Groups: []string{"dev"}, UID: "7"}}.Config()
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

func TestCheckClustersExist(t *testing.T) {
	tests := map[string]struct {
		wanted, existing []string
		want             string
	}{
		"all exist":         {wanted: []string{"east"}, existing: []string{"east", "west"}},
		"some are missing":  {wanted: []string{"east", "north", "south"}, existing: []string{"east", "west"}, want: `clusters.cluster.karmada.io "north" not found, clusters.cluster.karmada.io "south" not found: the control plane has east, west`},
		"no Clusters exist": {wanted: []string{"east"}, want: `clusters.cluster.karmada.io "east" not found: the control plane has no members yet`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := VerifyClustersExist(test.wanted, test.existing); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestExitCode(t *testing.T) {
	tests := map[string]struct {
		err  error
		want int
	}{
		"success":                               {nil, 0},
		"failure":                               {errors.New("no answer"), 1},
		"wrong usage":                           {NewUsageError("no name"), 2},
		"a result that is not as wanted":        {&ResultError{Code: 3, Reason: errors.New("lost")}, 3},
		"wrong usage joined with another error": {errors.Join(NewUsageError("no name"), errors.New("more")), 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := ExitCode(test.err); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestExamples(t *testing.T) {
	program := &Program{Name: "kubectl karmada"}
	got := program.Examples(`
		# Do it
		{{program}} do it`)
	if want := "  # Do it\n  kubectl karmada do it"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
