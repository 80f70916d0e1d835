package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"time"
)

// sample is one reading of all processes and counters. The difference of two samples is the
// cost of a scenario.
type sample struct {
	processes   map[string]usage
	allocations map[string]allocations
	karmada     counters
	members     []counters
}

// allocations are the heap allocations of a program since its start.
type allocations struct{ objects, bytes float64 }

func (b *bench) sample(ctx context.Context) (sample, error) {
	var s sample
	var err error
	if s.processes, err = b.usage(); err != nil {
		return s, err
	}
	if s.allocations, err = b.allocations(ctx); err != nil {
		return s, err
	}
	if s.karmada, err = scrapeCounters(ctx, b.fleet.karmada); err != nil {
		return s, err
	}
	for _, member := range b.fleet.members {
		counted, err := scrapeCounters(ctx, member)
		if err != nil {
			return s, err
		}
		s.members = append(s.members, counted)
	}
	return s, nil
}

func (b *bench) usage() (map[string]usage, error) {
	pids, err := b.options.pids()
	if err != nil {
		return nil, err
	}
	return processReader{proc: os.DirFS("/proc"), children: b.options.children}.usageByName(pids)
}

// allocations reads the allocations of the programs in --program-metrics.
func (b *bench) allocations(ctx context.Context) (map[string]allocations, error) {
	const objects, size = "go_memstats_mallocs_total", "go_memstats_alloc_bytes_total"
	read := map[string]allocations{}
	for name, address := range b.options.programMetrics {
		values, err := readMetrics(ctx, http.DefaultClient, address, objects, size)
		if err != nil {
			return nil, fmt.Errorf("reading the metrics of %s: %w", name, err)
		}
		read[name] = allocations{objects: values[objects], bytes: values[size]}
	}
	return read, nil
}

// sampleSettled takes the sample at the end of a measurement. It reads CPU time at once,
// because an idle control plane uses CPU time too. It reads the write counters after a
// delay, so that late writes are included.
func (b *bench) sampleSettled(ctx context.Context) (sample, error) {
	used, err := b.usage()
	if err != nil {
		return sample{}, err
	}
	if err := b.waitForLateWrites(ctx); err != nil {
		return sample{}, err
	}
	s, err := b.sample(ctx)
	s.processes = used
	return s, err
}

// waitForLateWrites waits for the duration of --settle.
func (b *bench) waitForLateWrites(ctx context.Context) error {
	timer := time.NewTimer(b.options.settle)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// karmadaRequests returns the increase of the control plane's counters since an earlier sample.
func (s sample) karmadaRequests(before sample) counters { return s.karmada.since(before.karmada) }

// memberWrites returns the sum of the writes to all members since an earlier sample.
func (s sample) memberWrites(before sample) requestCounts {
	sum := requestCounts{}
	for i, counted := range s.members {
		for kind, count := range counted.since(before.members[i]).requests.writes() {
			sum[kind] += count
		}
	}
	return sum
}
