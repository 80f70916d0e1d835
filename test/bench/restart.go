package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// restart measures the time until a control plane that was restarted with all its templates
// propagates again, and its writes without a change. The best possible number of writes is
// the number for one probe template.
func (b *bench) restart(ctx context.Context) error {
	if err := b.ensureTemplates(ctx); err != nil {
		return err
	}
	if err := b.waitForLateWrites(ctx); err != nil {
		return err
	}
	before, err := b.sample(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := b.runRestartCommand(ctx); err != nil {
		return err
	}
	serving := time.Since(start)
	propagatedAt, err := b.probe(ctx)
	if err != nil {
		return err
	}
	after, err := b.sampleSettled(ctx)
	if err != nil {
		return err
	}
	b.report.add("restart", "until the command returned", serving.Seconds(), "s")
	b.report.add("restart", "until a new template ran everywhere", propagatedAt.Sub(start).Seconds(), "s")
	b.report.addWrites("restart", "writes to karmada", after.karmadaWrites(before), 1)
	b.report.addWrites("restart", "writes to members", after.memberWrites(before), 1)
	b.report.addMemory("restart", after)
	return nil
}

func (b *bench) runRestartCommand(ctx context.Context) error {
	command := exec.CommandContext(ctx, "/bin/sh", "-c", b.options.restartCommand)
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("running the restart command: %w", err)
	}
	return nil
}

// probe returns the time at which a new template has ready replicas in all members. It
// returns after the other templates are ready too.
func (b *bench) probe(ctx context.Context) (arrived time.Time, err error) {
	err = b.withFleetTracker(ctx, func(ctx context.Context, o *fleetTracker) error {
		probe := o.karmada.expect("probe", isReady(b.allReplicas()))
		if err := b.create(ctx, []string{"probe"}); err != nil {
			return err
		}
		if err := awaitAll(ctx, probe); err != nil {
			return err
		}
		arrived = probe.at
		return awaitAll(ctx, o.expectInKarmada(b.burstTemplateNames(), isReady(b.allReplicas()))...)
	})
	return arrived, err
}
