package main

import (
	"context"
	"slices"
	"time"
)

// propagationTimes is the way of one template, each time counted from its creation.
type propagationTimes struct {
	// presentAfter is when the last member had the Deployment.
	presentAfter time.Duration
	// aggregatedAfter is when the template showed the ready replicas of all members.
	aggregatedAfter time.Duration
	// memberReadyTime is what the slowest member itself took from having the Deployment to
	// its being ready. No control plane can be faster than that.
	memberReadyTime time.Duration
}

// controlPlaneTime is the part of the journey that the control plane answers for.
func (j propagationTimes) controlPlaneTime() time.Duration {
	return j.aggregatedAfter - j.memberReadyTime
}

// latency sends templates one at a time, each when the one before has arrived.
func (b *bench) latency(ctx context.Context) error {
	return b.withFleetTracker(ctx, func(ctx context.Context, o *fleetTracker) error {
		var journeys []propagationTimes
		for _, name := range numberedNames("single", b.options.singles) {
			j, err := b.measurePropagation(ctx, o, name)
			if err != nil {
				return err
			}
			journeys = append(journeys, j)
		}
		b.reportLatency(journeys)
		return nil
	})
}

func (b *bench) measurePropagation(ctx context.Context, o *fleetTracker, name string) (propagationTimes, error) {
	list := []string{name}
	present := o.expectInMembers(list, isPresent)
	ready := o.expectInMembers(list, isReady(b.options.replicas))
	aggregated := o.expectInKarmada(list, isReady(b.allReplicas()))

	start := time.Now()
	if err := b.create(ctx, list); err != nil {
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

// slowestMemberTime returns how long the member that was ready last took by itself. Both
// lists are in the order of the members.
func slowestMemberTime(present, ready []*expectation) time.Duration {
	at := 0
	for i, e := range ready {
		if e.at.After(ready[at].at) {
			at = i
		}
	}
	return ready[at].at.Sub(present[at].at)
}

func (b *bench) reportLatency(journeys []propagationTimes) {
	for _, part := range []struct {
		what string
		of   func(propagationTimes) time.Duration
	}{
		{"present in every member", func(j propagationTimes) time.Duration { return j.presentAfter }},
		{"status back in the template", func(j propagationTimes) time.Duration { return j.aggregatedAfter }},
		{"of that, the member itself", func(j propagationTimes) time.Duration { return j.memberReadyTime }},
		{"of that, above the member", propagationTimes.controlPlaneTime},
	} {
		var times []time.Duration
		for _, j := range journeys {
			times = append(times, part.of(j))
		}
		b.report.add("latency", part.what+", p50", milliseconds(percentile(times, 50)), "ms")
		b.report.add("latency", part.what+", p99", milliseconds(percentile(times, 99)), "ms")
	}
}

// allReplicas is what the template counts when every member has all replicas.
func (b *bench) allReplicas() int32 {
	return b.options.replicas * int32(len(b.fleet.members))
}
