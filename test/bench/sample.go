package main

import (
	"context"
	"os"
	"time"
)

// sample is a reading of all meters. Two of them tell what lies between.
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

// sampleSettled ends a measurement. Processor time is read at once, since an idle
// control plane uses some too; writes are counted when late ones have happened.
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

// waitForLateWrites lets late writes happen.
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

// karmadaWrites returns what the control plane has stored since an earlier sample.
func (s sample) karmadaWrites(before sample) writeCounts {
	return s.karmada.writesSince(before.karmada)
}

// memberWrites returns what all members together have stored since an earlier sample.
func (s sample) memberWrites(before sample) writeCounts {
	sum := writeCounts{}
	for i, counted := range s.members {
		for kind, count := range counted.writesSince(before.members[i]) {
			sum[kind] += count
		}
	}
	return sum
}
