package main

import (
	"context"
	"slices"
	"time"
)

// journey is the way of one template, each time counted from its creation.
type journey struct {
	// present is when the last member had the Deployment.
	present time.Duration
	// aggregated is when the template showed the ready replicas of all members.
	aggregated time.Duration
	// member is what the slowest member itself took from having the Deployment to
	// its being ready. No control plane can be faster than that.
	member time.Duration
}

// above is the part of the journey that the control plane answers for.
func (j journey) above() time.Duration { return j.aggregated - j.member }

// latency sends templates one at a time, each when the one before has arrived.
func (b *bench) latency(ctx context.Context) error {
	return b.observed(ctx, func(ctx context.Context, o *observation) error {
		var journeys []journey
		for _, name := range names("single", b.options.singles) {
			j, err := b.travel(ctx, o, name)
			if err != nil {
				return err
			}
			journeys = append(journeys, j)
		}
		b.reportLatency(journeys)
		return nil
	})
}

func (b *bench) travel(ctx context.Context, o *observation, name string) (journey, error) {
	list := []string{name}
	present := o.everywhere(list, isPresent)
	ready := o.everywhere(list, isReady(b.options.replicas))
	aggregated := o.inKarmada(list, isReady(b.allReplicas()))

	start := time.Now()
	if err := b.create(ctx, list); err != nil {
		return journey{}, err
	}
	if err := await(ctx, slices.Concat(present, ready, aggregated)...); err != nil {
		return journey{}, err
	}
	return journey{
		present:    last(present).Sub(start),
		aggregated: last(aggregated).Sub(start),
		member:     slowest(present, ready),
	}, nil
}

// slowest returns how long the member that was ready last took by itself. Both
// lists are in the order of the members.
func slowest(present, ready []*expectation) time.Duration {
	at := 0
	for i, e := range ready {
		if e.at.After(ready[at].at) {
			at = i
		}
	}
	return ready[at].at.Sub(present[at].at)
}

func (b *bench) reportLatency(journeys []journey) {
	for _, part := range []struct {
		what string
		of   func(journey) time.Duration
	}{
		{"present in every member", func(j journey) time.Duration { return j.present }},
		{"status back in the template", func(j journey) time.Duration { return j.aggregated }},
		{"of that, the member itself", func(j journey) time.Duration { return j.member }},
		{"of that, above the member", journey.above},
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
