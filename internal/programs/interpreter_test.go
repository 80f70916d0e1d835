package programs

import (
	"testing"

	"karmada.io/karmada/internal/programs/gates"
)

func TestInterpreterOptionsOfGates(t *testing.T) {
	for _, on := range []bool{true, false} {
		set := gates.New()
		if err := set.SetFromMap(map[string]bool{string(gates.ResourceQuotaEstimate): on}); err != nil {
			t.Fatal(err)
		}
		if got := interpreterOptions(set, nil).ResourceQuotaEstimate; got != on {
			t.Errorf("the interpreter has the priority class: %t, with the gate: %t", got, on)
		}
	}
}
