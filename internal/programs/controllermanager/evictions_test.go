package controllermanager

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMissingFlags(t *testing.T) {
	tests := map[string]struct {
		failover bool
		change   func(*Evictions)
		want     []string
	}{
		"the defaults":               {false, func(*Evictions) {}, []string{"--feature-gates=Failover=true", "--enable-no-execute-taint-eviction=true"}},
		"evictions are on":           {true, func(e *Evictions) { e.NoExecute = true }, nil},
		"without taint manager":      {true, func(e *Evictions) { e.NoExecute, e.TaintManager = true, false }, []string{"--enable-taint-manager=true"}},
		"with an eviction rate of 0": {true, func(e *Evictions) { e.NoExecute, e.Rate = true, 0 }, []string{"--resource-eviction-rate=0.5"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			evictions := DefaultEvictions()
			test.change(&evictions)
			if diff := cmp.Diff(test.want, evictions.missingFlags(test.failover)); diff != "" {
				t.Errorf("flags (-want +got):\n%s", diff)
			}
		})
	}
}
