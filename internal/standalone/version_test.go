package standalone

import (
	"runtime/debug"
	"testing"
)

func TestModuleVersion(t *testing.T) {
	build := &debug.BuildInfo{Deps: []*debug.Module{
		{Path: "k8s.io/kubelet", Version: "v0.36.3"}, {Path: "k8s.io/kubernetes", Version: "v1.36.3"},
	}}
	tests := map[string]struct{ module, want string }{
		"a module of the build": {"k8s.io/kubernetes", "v1.36.3"},
		"an unknown module":     {"k8s.io/kube", "v0.0.0-master"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := moduleVersion(build, test.module, "v0.0.0-master"); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}
