package rebalance

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "karmada.io/karmada/api/apps/v1alpha1"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/rebalance"
)

// pollInterval is the time between two reads of the waiting workloads.
const pollInterval = 300 * time.Millisecond

// maxSecondWait limits awaitNextSecond if the clocks of this machine and of the scheduler differ.
const maxSecondWait = 2 * time.Second

// awaitNextSecond waits until the last scheduling of all workloads belongs to an earlier second, because the times
// of requests have a precision of seconds, and a request of the same second has no effect.
func awaitNextSecond(ctx context.Context, rows []*row) error {
	var delay time.Duration
	for _, each := range rows {
		if last := binding.LastScheduledTime(each.before, each.before.BindingStatus()); last != nil {
			delay = max(delay, time.Until(last.Add(time.Second)))
		}
	}
	timer := time.NewTimer(min(delay, maxSecondWait))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// await waits until no workload waits or the time is over, and sets the clusters of the placed workloads.
func (o *options) await(ctx context.Context, created *appsv1alpha1.WorkloadRebalancer, rows []*row) error {
	isFinished := false
	err := wait.PollUntilContextTimeout(ctx, pollInterval, o.timeout, true, func(ctx context.Context) (bool, error) {
		if !isFinished {
			var err error
			if isFinished, err = o.readResults(ctx, created, rows); err != nil {
				return false, err
			}
		}
		isDone := isFinished
		for _, each := range rows {
			if each.progress != rebalance.Waiting {
				continue
			}
			if err := o.update(ctx, each, created.CreationTimestamp.Time); err != nil {
				return false, err
			}
			isDone = isDone && each.progress != rebalance.Waiting
		}
		return isDone, nil
	})
	if err == nil || ctx.Err() != nil || !wait.Interrupted(err) {
		return err
	}
	if !isFinished {
		o.Program.Messagef("workloadrebalancer/%s is not finished after %s: check that karmada-controller-manager runs the controller workloadRebalancer",
			created.Name, o.timeout)
	}
	return nil
}

// readResults reports whether the rebalancer is finished, or was deleted because its time to live is over. It sets
// the results of workloads whose binding was deleted.
func (o *options) readResults(ctx context.Context, created *appsv1alpha1.WorkloadRebalancer, rows []*row) (isFinished bool, err error) {
	stored := &appsv1alpha1.WorkloadRebalancer{}
	err = o.karmada.Get(ctx, client.ObjectKeyFromObject(created), stored)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the WorkloadRebalancer: %w", err)
	}
	failed := map[rebalance.Workload]bool{}
	for _, entry := range stored.Status.ObservedWorkloads {
		failed[entry.Workload] = entry.Result == appsv1alpha1.RebalanceFailed
	}
	for _, each := range rows {
		if failed[each.workload] {
			each.progress, each.message = rebalance.NotPlaced, "it is not propagated anymore"
		}
	}
	return stored.Status.FinishTime != nil, nil
}

// update reads the binding of a waiting workload.
func (o *options) update(ctx context.Context, each *row, requested time.Time) error {
	bound := binding.New(each.key.Namespace != "")
	err := o.karmada.Get(ctx, each.key, bound)
	if apierrors.IsNotFound(err) {
		each.progress, each.message = rebalance.NotPlaced, "it is not propagated anymore"
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading binding %s: %w", each.key, err)
	}
	each.progress, each.message = rebalance.ProgressOf(bound, requested)
	if each.progress != rebalance.Waiting {
		each.after = bound
	}
	return nil
}
