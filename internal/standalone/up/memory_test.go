package up

import "testing"

func TestGCPercent(t *testing.T) {
	tests := map[string]struct {
		liveBytes uint64
		want      int
	}{
		"before the first collection": {liveBytes: 0, want: maxGrowthPercent},
		"a small heap":                {liveBytes: 10 << 20, want: maxGrowthPercent},
		"half of the budget":          {liveBytes: heapBudgetBytes / 2, want: 100},
		"the whole budget":            {liveBytes: heapBudgetBytes, want: minGrowthPercent},
		"more than the budget":        {liveBytes: 3 * heapBudgetBytes, want: minGrowthPercent},
		"a third of the budget":       {liveBytes: heapBudgetBytes / 3, want: maxGrowthPercent},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := gcPercent(test.liveBytes); got != test.want {
				t.Errorf("growth(%d) = %d, want %d", test.liveBytes, got, test.want)
			}
		})
	}
}
