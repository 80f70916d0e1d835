package main

import (
	"context"
	"slices"
	"time"
)

const directScenario = "direct"

// direct creates the same Deployments as latency and burst, but writes them to the members without Karmada, and deletes them
// again. The members and this program limit its results, so latency and burst report their own results relative to them.
// After an error, the Deployments are deleted together with the namespace of the run.
func (b *bench) direct(ctx context.Context) error {
	return b.withFleetTracker(ctx, func(ctx context.Context, o *fleetTracker) error {
		singles, burst := numberedNames("direct-single", b.options.singles), numberedNames("direct", b.options.templates)
		if err := b.measureDirectLatency(ctx, o, singles); err != nil {
			return err
		}
		if err := b.measureDirectBurst(ctx, o, burst); err != nil {
			return err
		}
		return b.measureDirectDeletion(ctx, o, slices.Concat(singles, burst))
	})
}

// measureDirectLatency creates Deployments one at a time, each after the previous one is ready in every member.
func (b *bench) measureDirectLatency(ctx context.Context, o *fleetTracker, names []string) error {
	var presentAfter, readyAfter []time.Duration
	for _, name := range names {
		present := o.expectInMembers([]string{name}, isPresent)
		ready := o.expectInMembers([]string{name}, isReady(b.options.replicas))
		start := time.Now()
		if err := b.createIn(ctx, b.fleet.members, []string{name}); err != nil {
			return err
		}
		if err := awaitAll(ctx, slices.Concat(present, ready)...); err != nil {
			return err
		}
		presentAfter = append(presentAfter, lastMetAt(present).Sub(start))
		readyAfter = append(readyAfter, lastMetAt(ready).Sub(start))
	}
	b.report.addPercentiles(directScenario, presentInMembers, presentAfter)
	b.report.addPercentiles(directScenario, readyInMembers, readyAfter)
	return nil
}

// measureDirectBurst creates all Deployments at once.
func (b *bench) measureDirectBurst(ctx context.Context, o *fleetTracker, names []string) error {
	present, ready := o.expectInMembers(names, isPresent), o.expectInMembers(names, isReady(b.options.replicas))
	before, err := b.sample(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := b.createIn(ctx, b.fleet.members, names); err != nil {
		return err
	}
	if err := awaitAll(ctx, slices.Concat(present, ready)...); err != nil {
		return err
	}
	after, err := b.sampleSettled(ctx)
	if err != nil {
		return err
	}
	b.report.addDuration(directScenario, inMembers, lastMetAt(present).Sub(start), len(names))
	b.report.addDuration(directScenario, readyInMembers, lastMetAt(ready).Sub(start), len(names))
	b.report.addCost(directScenario, before, after, len(names))
	return nil
}

// measureDirectDeletion deletes the Deployments and waits until they are gone.
func (b *bench) measureDirectDeletion(ctx context.Context, o *fleetTracker, names []string) error {
	gone := o.expectInMembers(names, isAbsent)
	start := time.Now()
	if err := b.deleteIn(ctx, b.fleet.members, names); err != nil {
		return err
	}
	if err := awaitAll(ctx, gone...); err != nil {
		return err
	}
	b.report.addDuration(directScenario, goneFromMembers, lastMetAt(gone).Sub(start), len(names))
	return nil
}
