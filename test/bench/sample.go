package main

import (
	"context"
	"os"
	"time"
)

// sample is one reading of all processes and counters. The difference of two samples is the
// cost of a scenario.
type sample struct {
	processes map[string]usage
	karmada   counters
	members   []counters
}

func (b *bench) sample(ctx context.Context) (sample, error) {
	var s sample
	var err error
	if s.processes, err = b.usage(); err != nil {
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

// karmadaWrites returns the writes to the control plane since an earlier sample.
func (s sample) karmadaWrites(before sample) writeCounts {
	return s.karmada.writesSince(before.karmada)
}

// memberWrites returns the sum of the writes to all members since an earlier sample.
func (s sample) memberWrites(before sample) writeCounts {
	sum := writeCounts{}
	for i, counted := range s.members {
		for kind, count := range counted.writesSince(before.members[i]) {
			sum[kind] += count
		}
	}
	return sum
}
