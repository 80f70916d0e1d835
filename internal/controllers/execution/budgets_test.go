package execution

import (
	"testing"
	"time"
)

var noon = time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)

func TestTheBudgetOfDeletionsBoundsEachClusterByItself(t *testing.T) {
	b := newBudgets(10, 5)
	for i := range 5 {
		if wait := b.spend("m1", 1, noon); wait != 0 {
			t.Fatalf("deletion %d waits for %v", i, wait)
		}
	}
	if wait := b.spend("m1", 1, noon); wait != 100*time.Millisecond {
		t.Errorf("beyond the budget it waits for %v", wait)
	}
	if wait := b.spend("m2", 1, noon); wait != 0 {
		t.Errorf("another cluster waits for %v", wait)
	}
	if wait := b.spend("m3", 50, noon); wait != 0 {
		t.Errorf("a Work of many manifests never gets its turn: %v", wait)
	}
	if wait := b.spend("m1", 1, noon.Add(100*time.Millisecond)); wait != 0 {
		t.Errorf("after its time it waits for %v", wait)
	}
}
