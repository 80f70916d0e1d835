package workloadrebalancer

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "karmada.io/karmada/api/apps/v1alpha1"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/rebalance"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/patch"
)

// batch holds the results of the workloads that one pass processed.
type batch struct {
	results  map[rebalance.Workload]appsv1alpha1.ObservedWorkload
	problems []rebalance.Problem
	// errs holds the errors of workloads that get no result and are attempted again, except for those
	// for which only the cache was out of date.
	errs []error
}

// firstError returns the first error with the number of further errors, or nil.
func (b *batch) firstError() error {
	switch len(b.errs) {
	case 0:
		return nil
	case 1:
		return b.errs[0]
	default:
		return fmt.Errorf("%w; and %d more errors", b.errs[0], len(b.errs)-1)
	}
}

// mergeInto sets the results of the pending workloads.
func (b *batch) mergeInto(observed []appsv1alpha1.ObservedWorkload) []appsv1alpha1.ObservedWorkload {
	for i := range observed {
		if entry, ok := b.results[observed[i].Workload]; ok && observed[i].Result == "" {
			observed[i] = entry
		}
	}
	return observed
}

func (r *reconciler) nextBatch(key types.NamespacedName, observed []appsv1alpha1.ObservedWorkload) (indexes []int, isLast bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return rebalance.NextBatch(observed, r.lastAttempted[key], r.options.BatchSize)
}

func (r *reconciler) setLastAttempted(key types.NamespacedName, workload rebalance.Workload) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if workload == (rebalance.Workload{}) {
		delete(r.lastAttempted, key)
		return
	}
	r.lastAttempted[key] = workload
}

// reserve returns how long a batch of the given size must wait so that the rate is not exceeded. If it returns
// 0, the batch may start.
func (r *reconciler) reserve(size int) time.Duration {
	now := r.now()
	reservation := r.limiter.ReserveN(now, size)
	wait := reservation.DelayFrom(now)
	if wait > 0 {
		reservation.CancelAt(now)
	}
	return wait
}

// triggerBatch triggers the scheduling of the workloads with the given indexes.
func (r *reconciler) triggerBatch(ctx context.Context, stored *appsv1alpha1.WorkloadRebalancer,
	observed []appsv1alpha1.ObservedWorkload, indexes []int) *batch {
	at, bindings, errs := rebalance.TriggerTime(stored), make([]binding.Object, len(indexes)), make([]error, len(indexes))
	var workers errgroup.Group
	workers.SetLimit(r.options.ParallelTriggers)
	for n, i := range indexes {
		workers.Go(func() error {
			bindings[n], errs[n] = r.trigger(ctx, observed[i].Workload, at)
			return nil
		})
	}
	_ = workers.Wait() // errs has the errors
	b := &batch{results: make(map[rebalance.Workload]appsv1alpha1.ObservedWorkload, len(indexes))}
	for n, i := range indexes {
		workload := observed[i].Workload
		if err := errs[n]; err != nil {
			if !loop.IsStale(err) {
				b.errs = append(b.errs, err)
			}
			continue
		}
		entry, problem := rebalance.Result(workload, bindings[n])
		b.results[workload] = entry
		if problem != "" {
			b.problems = append(b.problems, rebalance.Problem{Workload: workload, Text: problem})
		}
	}
	return b
}

// trigger stores the reschedule request in the workload's binding unless it has a later one, and returns the
// binding, or nil if the workload has no binding.
func (r *reconciler) trigger(ctx context.Context, workload rebalance.Workload, at metav1.Time) (binding.Object, error) {
	bound, err := r.findBinding(ctx, workload)
	if err != nil || bound == nil || !rebalance.NeedsTrigger(bound, at.Time) {
		return bound, err
	}
	_, err = patch.Apply(ctx, r.karmada, binding.ShallowCopy(bound), patch.Changes{Spec: map[string]any{"rescheduleTriggeredAt": at}})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", rebalance.Describe(workload), loop.StaleIfNotFound(err))
	}
	return bound, nil
}

// findBinding returns the binding of a workload, or nil if the API server has none.
func (r *reconciler) findBinding(ctx context.Context, workload rebalance.Workload) (binding.Object, error) {
	for _, reader := range []client.Reader{r.karmada, r.live} {
		bound, err := findBindingIn(ctx, reader, workload)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", rebalance.Describe(workload), err)
		}
		if bound != nil {
			return bound, nil
		}
	}
	return nil, nil
}

// findBindingIn prefers the binding whose template has the group of the workload to the binding with the
// usual name, whose template may have another group.
func findBindingIn(ctx context.Context, reader client.Reader, workload rebalance.Workload) (binding.Object, error) {
	kind := schema.FromAPIVersionAndKind(workload.APIVersion, workload.Kind).GroupKind()
	key := types.NamespacedName{Namespace: workload.Namespace, Name: workload.Name}
	bound, _, err := loop.FindTemplateBinding(ctx, reader, kind, key)
	if err == nil && bound == nil {
		key.Name = binding.Name(workload.Name, workload.Kind)
		bound, err = loop.GetActiveBinding(ctx, reader, workload.Namespace != "", key)
	}
	if err != nil || bound == nil || !rebalance.IsBindingOf(bound, workload) {
		return nil, err
	}
	return bound, nil
}
