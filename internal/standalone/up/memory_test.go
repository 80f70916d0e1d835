package up

import "testing"

func TestTheHeapGrowsWithinItsBudget(t *testing.T) {
	tests := map[string]struct {
		alive uint64
		want  int
	}{
		"nothing was collected yet":        {alive: 0, want: mostGrowth},
		"a process that has little":        {alive: 10 << 20, want: mostGrowth},
		"half of the budget may double":    {alive: heapBudget / 2, want: 100},
		"the budget is spent":              {alive: heapBudget, want: leastGrowth},
		"what is alive exceeds the budget": {alive: 3 * heapBudget, want: leastGrowth},
		"little has no use for all of it":  {alive: heapBudget / 3, want: mostGrowth},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := growth(test.alive); got != test.want {
				t.Errorf("growth(%d) = %d, want %d", test.alive, got, test.want)
			}
		})
	}
}
