package execution

import (
	"testing"
	"time"
)

var noon = time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)

func TestDeletionRatesAreSeparateForEachCluster(t *testing.T) {
	b := newDeletionRates(10, 5)
	for i := range 5 {
		if wait := b.reserve("m1", 1, noon); wait != 0 {
			t.Fatalf("deletion %d waits for %v", i, wait)
		}
	}
	if wait := b.reserve("m1", 1, noon); wait != 100*time.Millisecond {
		t.Errorf("beyond the limit the deletion waits for %v", wait)
	}
	if wait := b.reserve("m2", 1, noon); wait != 0 {
		t.Errorf("the deletion in another cluster waits for %v", wait)
	}
	if wait := b.reserve("m3", 50, noon); wait != 0 {
		t.Errorf("a Work with more manifests than the burst waits for %v", wait)
	}
	if wait := b.reserve("m1", 1, noon.Add(100*time.Millisecond)); wait != 0 {
		t.Errorf("after the delay the deletion waits for %v", wait)
	}
}
