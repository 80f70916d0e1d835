package standalone

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/kubernetes/fake"
)

var errProgramsDisabled = errors.New("--bind-address 0.0.0.0 allows access from other machines")

func TestProgramsNodeOptions(t *testing.T) {
	listener, err := Listen(Loopback, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	for name, of := range map[string]struct {
		disabled   error
		unconfined bool
	}{"enabled": {}, "disabled": {disabled: errProgramsDisabled}, "enabled without confinement": {unconfined: true}} {
		t.Run(name, func(t *testing.T) {
			c := &Cluster{listener: newListener(listener), options: Options{ProgramsDisabled: of.disabled, AllowUnconfined: of.unconfined}}
			node := c.programsNode(fake.NewClientset(), 1, nil)
			if !errors.Is(node.Disabled, of.disabled) || !cmp.Equal(node.Unconfined, of.unconfined) {
				t.Errorf("the node is disabled by %v, unconfined %t, want %v, %t", node.Disabled, node.Unconfined, of.disabled, of.unconfined)
			}
		})
	}
}
