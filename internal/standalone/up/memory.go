package up

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// heapBudget is how large the heap may grow before it is collected.
	heapBudget = 480 << 20
	// leastGrowth and mostGrowth bound, in percent of what is alive, how far the heap
	// may grow between two collections: what is alive is the floor of the budget,
	// and a process that has little has no use for all of it.
	leastGrowth, mostGrowth = 60, 130
	// tuningPeriod is how often what is alive is looked at, and notableGrowth what
	// must have changed to say so.
	tuningPeriod  = 2 * time.Second
	notableGrowth = 10
)

// TuneMemory spends memory on fewer collections while there is some to spare: the
// servers that share this process make much garbage and keep little. It returns at
// once and goes on until ctx ends; GOGC in the environment switches it off.
func TuneMemory(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	current := mostGrowth
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
			if wanted := growth(alive()); wanted > current+notableGrowth || wanted < current-notableGrowth {
				current = wanted
				debug.SetGCPercent(current)
			}
		}
	}()
}

// alive is how many bytes the last collection found in use.
func alive() uint64 {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64()
}

// growth is how far, in percent, the heap may grow over what is alive.
func growth(alive uint64) int {
	if alive == 0 {
		return mostGrowth
	}
	spare := max(int64(heapBudget)-int64(alive), 0)                       //nolint:gosec // no heap is that large
	return min(max(int(spare*100/int64(alive)), leastGrowth), mostGrowth) //nolint:gosec // see above
}
