package main

import (
	"context"
	"slices"
	"time"
)

// propagationTimes contains one template's times. presentAfter and aggregatedAfter begin when
// this program sends the request that creates the template.
type propagationTimes struct {
	// presentAfter is the time until the last member has the Deployment.
	presentAfter time.Duration
	// aggregatedAfter is the time until the template shows the ready replicas of all
	// members.
	aggregatedAfter time.Duration
	// memberReadyTime is the time that the slowest member takes from the creation of the
	// Deployment in the member until it is ready. The control plane does not influence this
	// time.
	memberReadyTime time.Duration
}

// controlPlaneTime returns the part of aggregatedAfter for which the control plane is
// responsible.
func (p propagationTimes) controlPlaneTime() time.Duration {
	return p.aggregatedAfter - p.memberReadyTime
}

// latency creates templates one at a time, each after the previous one is propagated.
func (b *bench) latency(ctx context.Context) error {
	return b.withFleetTracker(ctx, func(ctx context.Context, o *fleetTracker) error {
		var propagations []propagationTimes
		for _, name := range numberedNames("single", b.options.singles) {
			p, err := b.measurePropagation(ctx, o, name)
			if err != nil {
				return err
			}
			propagations = append(propagations, p)
		}
		b.reportLatency(propagations)
		return nil
	})
}

// measurePropagation creates a template and waits until its status shows the ready Pods of all members.
func (b *bench) measurePropagation(ctx context.Context, o *fleetTracker, name string) (propagationTimes, error) {
	names := []string{name}
	present := o.expectInMembers(names, isPresent)
	ready := o.expectInMembers(names, isReady(b.options.replicas))
	aggregated := o.expectInKarmada(names, isReady(b.allReplicas()))

	start := time.Now()
	if err := b.create(ctx, names); err != nil {
		return propagationTimes{}, err
	}
	if err := awaitAll(ctx, slices.Concat(present, ready, aggregated)...); err != nil {
		return propagationTimes{}, err
	}
	return propagationTimes{
		presentAfter:    lastMetAt(present).Sub(start),
		aggregatedAfter: lastMetAt(aggregated).Sub(start),
		memberReadyTime: slowestMemberTime(present, ready),
	}, nil
}

// slowestMemberTime returns the time from present to ready in the member that is ready
// last. Both lists are in the order of the members.
func slowestMemberTime(present, ready []*expectation) time.Duration {
	at := 0
	for i, e := range ready {
		if e.at.After(ready[at].at) {
			at = i
		}
	}
	return ready[at].at.Sub(present[at].at)
}

func (b *bench) reportLatency(propagations []propagationTimes) {
	for _, part := range []struct {
		quantity string
		value    func(propagationTimes) time.Duration
	}{
		{presentInMembers, func(p propagationTimes) time.Duration { return p.presentAfter }},
		{statusInTemplate, func(p propagationTimes) time.Duration { return p.aggregatedAfter }},
		{"of that, the member itself", func(p propagationTimes) time.Duration { return p.memberReadyTime }},
		{"of that, above the member", propagationTimes.controlPlaneTime},
	} {
		var times []time.Duration
		for _, p := range propagations {
			times = append(times, part.value(p))
		}
		b.report.addPercentiles("latency", part.quantity, times)
	}
	b.report.addShareOfDirect("latency", presentInMembers+", p50", presentInMembers+", p50", "ms")
	b.report.addShareOfDirect("latency", statusInTemplate+", p50", readyInMembers+", p50", "ms")
}

// allReplicas returns the number of ready replicas in the template when every member has
// all replicas.
func (b *bench) allReplicas() int32 {
	return b.options.replicas * int32(len(b.fleet.members))
}
