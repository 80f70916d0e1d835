package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// frozen measures how a member that accepts connections and never responds slows down the
// other members. It runs a burst to all members and one additional member, and a second
// burst while the process of the additional member is suspended. Then it measures the time
// until the resumed additional member has all templates.
func (b *bench) frozen(ctx context.Context) (err error) {
	pid, err := b.frozenProcess()
	if err != nil {
		return err
	}
	frozenMember, _, err := connectTo(b.options.membersKubeconfig, b.options.frozenMember, b.options.frozenMember)
	if err != nil {
		return err
	}
	if err := b.setPolicyMembers(ctx, append(b.fleet.memberNames(), frozenMember.name)); err != nil {
		return err
	}
	before, err := b.measureBurst(ctx, "calm")
	if err != nil {
		return err
	}
	if _, err := b.measureCatchUp(ctx, frozenMember, b.templateNames("calm")); err != nil {
		return err
	}
	if err := b.waitForLateWrites(ctx); err != nil {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("stopping the process of %s: %w", frozenMember.name, err)
	}
	during, err := b.measureBurst(ctx, "frozen")
	if resumed := syscall.Kill(pid, syscall.SIGCONT); err != nil || resumed != nil {
		return errors.Join(err, resumed)
	}
	after, err := b.measureCatchUp(ctx, frozenMember, b.templateNames("frozen"))
	if err != nil {
		return err
	}
	b.report.addDuration("frozen", "in the others, all members well", before, b.options.templates)
	b.report.addDuration("frozen", "in the others, one more frozen", during, b.options.templates)
	b.report.add("frozen", "slower by", during.Seconds()/before.Seconds(), "times")
	b.report.add("frozen", "in the frozen member after it went on", after.Seconds(), "s")
	return b.setPolicyMembers(ctx, b.fleet.memberNames())
}

var errNoProcess = errors.New("the frozen scenario needs --frozen-member and its process in --process or --processes-file")

func (b *bench) frozenProcess() (int, error) {
	pids, err := b.options.pids()
	if err != nil {
		return 0, err
	}
	pid, ok := pids[b.options.frozenMember]
	if !ok || slices.Contains(b.fleet.memberNames(), b.options.frozenMember) {
		return 0, errNoProcess
	}
	return pid, nil
}

func (b *bench) templateNames(prefix string) []string {
	return numberedNames(prefix, b.options.templates)
}

// measureBurst creates templates and returns the time until the watched members have them.
// Then it waits until their Pods run, so that the next burst starts under the same
// conditions.
func (b *bench) measureBurst(ctx context.Context, prefix string) (took time.Duration, err error) {
	err = b.withFleetTracker(ctx, func(ctx context.Context, o *fleetTracker) error {
		list := b.templateNames(prefix)
		present := o.expectInMembers(list, isPresent)
		ready := o.expectInMembers(list, isReady(b.options.replicas))
		start := time.Now()
		if err := b.create(ctx, list); err != nil {
			return err
		}
		if err := awaitAll(ctx, present...); err != nil {
			return err
		}
		took = lastMetAt(present).Sub(start)
		return awaitAll(ctx, ready...)
	})
	return took, err
}

// measureCatchUp returns the time until a member has all templates.
func (b *bench) measureCatchUp(ctx context.Context, member *cluster, list []string) (time.Duration, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(errors.New("the member has caught up"))
	start := time.Now()
	t := newTracker(member.name)
	var present []*expectation
	for _, name := range list {
		present = append(present, t.expect(name, isPresent))
	}
	if err := t.watchCluster(ctx, member, b.fleet.namespace); err != nil {
		return 0, err
	}
	if err := awaitAll(ctx, present...); err != nil {
		return 0, err
	}
	return lastMetAt(present).Sub(start), nil
}

// setPolicyMembers changes the members in the placement of the policy.
func (b *bench) setPolicyMembers(ctx context.Context, members []string) error {
	policies := b.fleet.policies.Resource(policyResource).Namespace(b.fleet.namespace)
	desired := policyFor(b.fleet.namespace, members)
	stored, err := policies.Get(ctx, desired.GetName(), metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the propagation policy: %w", err)
	}
	stored.Object["spec"].(map[string]any)["placement"] = desired.Object["spec"].(map[string]any)["placement"]
	if _, err := policies.Update(ctx, stored, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("changing the propagation policy: %w", err)
	}
	return nil
}
