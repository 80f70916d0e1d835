package standalone

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/kubernetes/fake"
)

var errOff = errors.New("--bind-address 0.0.0.0 lets other machines in")

func TestTheNodeKnowsWhetherProgramsAreOff(t *testing.T) {
	listener, err := Listen(Loopback, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	for name, of := range map[string]struct {
		off        error
		unconfined bool
	}{"on": {}, "off": {off: errOff}, "on where the kernel cannot confine": {unconfined: true}} {
		t.Run(name, func(t *testing.T) {
			c := &Cluster{listener: newListener(listener), options: Options{ProgramsOff: of.off, ProgramsUnconfined: of.unconfined}}
			node := c.programsNode(fake.NewClientset(), 1, nil)
			if !errors.Is(node.Off, of.off) || !cmp.Equal(node.Unconfined, of.unconfined) {
				t.Errorf("the node is off for %v, unconfined %t, want %v, %t", node.Off, node.Unconfined, of.off, of.unconfined)
			}
		})
	}
}
