package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"
)

// sample contains the processes' usage and all counters at one time. The difference between two
// samples is a scenario's cost.
type sample struct {
	// processes has the usage of the measured processes and of the programs in --program-metrics.
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
	if s.processes, s.allocations, err = b.readUsage(ctx); err != nil {
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

// readUsage reads the usage of the measured processes, and the usage and the allocations of the programs in --program-metrics.
func (b *bench) readUsage(ctx context.Context) (map[string]usage, map[string]allocations, error) {
	pids, err := b.options.pids()
	if err != nil {
		return nil, nil, err
	}
	used, err := processReader{proc: os.DirFS("/proc"), children: b.options.children}.usageByName(pids)
	if err != nil {
		return nil, nil, err
	}
	allocated := map[string]allocations{}
	for name, address := range b.options.programMetrics {
		if _, isMeasured := used[name]; isMeasured {
			return nil, nil, fmt.Errorf("%w: choose another name for %s in --program-metrics", errDuplicateName, name)
		}
		if used[name], allocated[name], err = readProgram(ctx, http.DefaultClient, address); err != nil {
			return nil, nil, fmt.Errorf("reading the metrics of %s: %w", name, err)
		}
	}
	return used, allocated, nil
}

var (
	errDuplicateName = errors.New("a process and a program have the same name")
	errMissingMetric = errors.New("the program does not have the metric")
)

// readProgram reads a program's usage and allocations from its metrics.
func readProgram(ctx context.Context, client *http.Client, address string) (usage, allocations, error) {
	const (
		cpuSeconds, residentBytes       = "process_cpu_seconds_total", "process_resident_memory_bytes"
		allocatedObjects, allocatedSize = "go_memstats_mallocs_total", "go_memstats_alloc_bytes_total"
	)
	names := []string{cpuSeconds, residentBytes, allocatedObjects, allocatedSize}
	values, err := readMetrics(ctx, client, address, names...)
	if err != nil {
		return usage{}, allocations{}, err
	}
	for _, name := range names {
		if _, isPresent := values[name]; !isPresent {
			return usage{}, allocations{}, fmt.Errorf("%w: %s at %s", errMissingMetric, name, address)
		}
	}
	return usage{cpu: time.Duration(values[cpuSeconds] * float64(time.Second)), rss: int64(values[residentBytes])},
		allocations{objects: values[allocatedObjects], bytes: values[allocatedSize]}, nil
}

// sampleSettled takes the sample at the end of a measurement. It reads CPU time immediately,
// because an idle control plane also uses CPU time. It reads the other counters after the
// duration of --settle, so that late writes are included.
func (b *bench) sampleSettled(ctx context.Context) (sample, error) {
	used, _, err := b.readUsage(ctx)
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

// awaitNoWrites waits until the control plane receives no write for the duration of --settle.
func (b *bench) awaitNoWrites(ctx context.Context) error {
	for {
		before, err := b.sample(ctx)
		if err != nil {
			return err
		}
		if err := b.waitForLateWrites(ctx); err != nil {
			return err
		}
		after, err := b.sample(ctx)
		if err != nil {
			return err
		}
		if after.karmadaRequests(before).requests.writes().total() == 0 {
			return nil
		}
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
