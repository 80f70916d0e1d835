package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// restart restarts the control plane with all its templates. It measures the time until the
// control plane propagates a new template, and counts the writes since the restart. Nothing
// else changes, so the lowest possible number of writes is the number for the new template.
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
	b.report.addRequests("restart", "writes to karmada", after.karmadaRequests(before).requests.writes(), 1)
	b.report.addRequests("restart", "writes to members", after.memberWrites(before), 1)
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

// probe creates a template and returns the time at which the template has ready replicas in
// all members. Before it returns, it waits until the templates of burst are ready too.
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
