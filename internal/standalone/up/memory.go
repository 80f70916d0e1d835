package up

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// heapBudgetBytes is the heap size at which tuning the garbage collector aims, in bytes.
	heapBudgetBytes = 480 << 20
	// minGrowthPercent and maxGrowthPercent limit the heap's growth between two collections, in percent
	// of the live heap. If the live heap exceeds the budget, the minimum applies. The maximum prevents
	// a process with a small heap from using the whole budget.
	minGrowthPercent, maxGrowthPercent = 60, 130
	// tuningPeriod is the interval at which the live heap is measured. minGrowthChange is the smallest
	// change that is applied, in percentage points.
	tuningPeriod    = 2 * time.Second
	minGrowthChange = 10
)

// TuneMemory reduces the number of garbage collections as long as memory is available, because the
// servers in this process allocate much memory and keep little. It returns immediately and continues to
// tune until ctx ends. It does nothing if the environment variable GOGC is set.
func TuneMemory(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	current := maxGrowthPercent
	debug.SetGCPercent(current)
	go func() {
		ticker := time.NewTicker(tuningPeriod)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if percent := gcPercent(liveHeapBytes()); percent > current+minGrowthChange || percent < current-minGrowthChange {
				current = percent
				debug.SetGCPercent(current)
			}
		}
	}()
}

// liveHeapBytes returns the size of the live heap after the last collection.
func liveHeapBytes() uint64 {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64()
}

// gcPercent returns how much the heap may grow between two collections, in percent of the live heap.
func gcPercent(liveBytes uint64) int {
	if liveBytes == 0 {
		return maxGrowthPercent
	}
	spare := max(int64(heapBudgetBytes)-int64(liveBytes), 0)                             // no heap is that large
	return min(max(int(spare*100/int64(liveBytes)), minGrowthPercent), maxGrowthPercent) // see above
}
