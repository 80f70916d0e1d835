package binding

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
)

// reviseFunc returns an object with the given number of replicas. It may change the given object or
// return a new one.
type reviseFunc = func(object *unstructured.Unstructured, replicas int64) (*unstructured.Unstructured, error)

// batch is the input from which the Works of one binding are written in one reconcile. Several
// writers read it in parallel, and none of them changes it.
type batch struct {
	bound binding.Object
	// template is nil if no Work contains the state of the template that the binding records.
	template  *unstructured.Unstructured
	overrides work.Overrides
	revise    reviseFunc
	targets   []workv1alpha2.TargetCluster
	works     []*workv1alpha1.Work
	// keepsContent means that existing Works keep their content, and only follow their replicas.
	keepsContent bool
}

// worksForCluster returns those Works of the batch that are in a cluster.
func (b batch) worksForCluster(cluster string) []*workv1alpha1.Work {
	var inside []*workv1alpha1.Work
	for _, each := range b.works {
		if each.Namespace == work.ExecutionNamespace(cluster) {
			inside = append(inside, each)
		}
	}
	return inside
}

// targetResult is the result for one target.
type targetResult struct {
	cluster string
	// workName is the name of the Work of the target.
	workName string
	// isMarked is true if the Work itself shows that it is current.
	isMarked bool
	// overridden is true if this write created the Work, or changed the applied overrides that the
	// Work records.
	overridden bool
	// idleOverriders are the overriders without effect, if this write recorded them.
	idleOverriders []string
	err            error
}

// writeWorks writes the Works of several targets in parallel. It returns the results in the order
// of the targets.
func (r *reconciler) writeWorks(ctx context.Context, b batch) []targetResult {
	results := make([]targetResult, len(b.targets))
	var writers errgroup.Group
	writers.SetLimit(max(r.options.Writers, 1))
	for i, target := range b.targets {
		writers.Go(func() error {
			results[i] = r.writeWork(ctx, b, target)
			return nil
		})
	}
	_ = writers.Wait()
	return results
}

// writeWork creates or updates the Work of one target.
func (r *reconciler) writeWork(ctx context.Context, b batch, target workv1alpha2.TargetCluster) targetResult {
	failed := func(err error) targetResult { return targetResult{cluster: target.Name, err: err} }
	existing := b.worksForCluster(target.Name)
	if remaining := withoutTerminating(existing); len(remaining) == 1 && binding.BelongsTo(remaining[0], b.bound) {
		// A reconcile for another reason, such as a start of the process, must not deliver a state of the
		// template that no policy claims, or that the binding does not record.
		if policy.IsReleased(b.bound) {
			return targetResult{cluster: target.Name, workName: remaining[0].Name, isMarked: work.IsMarkedCurrent(remaining[0], b.bound, target)}
		}
		if b.keepsContent {
			return r.rescaleWork(ctx, b, target, remaining[0])
		}
	}
	if b.template == nil {
		return failed(loop.ErrStale) // until the binding records the template's current state
	}
	cluster, err := r.targetCluster(ctx, target.Name, len(existing) > 0)
	if err != nil {
		return failed(err)
	}
	render := func(id string) (*workv1alpha1.Work, error) {
		return work.Render(work.RenderInput{
			Template: b.template, Binding: b.bound, Cluster: cluster, Target: target, ReviseReplicas: b.revise,
			Overrides: b.overrides, PermanentID: id, PassPreservedState: r.options.InjectState,
		})
	}
	desired, err := render(permanentIDOf(existing))
	if err != nil {
		return failed(err)
	}
	stored := &workv1alpha1.Work{}
	err = r.karmada.Get(ctx, client.ObjectKeyFromObject(desired), stored, client.UnsafeDisableDeepCopy)
	if err != nil && !apierrors.IsNotFound(err) {
		return failed(fmt.Errorf("reading Work %s: %w", client.ObjectKeyFromObject(desired), err))
	}
	written := true
	switch {
	case err == nil:
		written, err = r.updateWork(ctx, b.bound, stored, desired)
	case len(existing) > 0:
		// The rendered Work has another name than the existing Work of this cluster, because an
		// override changed the name of the object. The existing Work keeps its ID until it is
		// deleted, so the new Work gets an ID of its own.
		if desired, err = render(uuid.NewString()); err == nil {
			err = r.createWork(ctx, b.bound, desired)
		}
	default:
		err = r.createWork(ctx, b.bound, desired)
	}
	if err != nil {
		return failed(explainSize(desired, err))
	}
	result := targetResult{cluster: target.Name, workName: desired.Name, isMarked: written || work.IsMarkedCurrent(stored, b.bound, target)}
	if written {
		result.overridden, result.idleOverriders = work.HasNewOverrides(stored, desired), work.NewIneffectiveOverrides(stored, desired)
	}
	return result
}

// rescaleWork updates only the replicas of a Work.
func (r *reconciler) rescaleWork(ctx context.Context, b batch, target workv1alpha2.TargetCluster, stored *workv1alpha1.Work) targetResult {
	result := targetResult{cluster: target.Name, workName: stored.Name, isMarked: work.IsMarkedCurrent(stored, b.bound, target)}
	rescaled, changed, err := work.Rescale(stored, b.bound, target, b.revise)
	if err == nil && changed {
		if err = r.karmada.Update(ctx, rescaled); err == nil {
			r.writes.Record(client.ObjectKeyFromObject(b.bound), rescaled)
		}
	}
	result.err = err
	return result
}

// targetCluster returns the Cluster of a target. hasWork is true if the target already has a Work.
// If it has none, targetCluster returns an error for a Cluster that is being deleted, because its
// execution namespace rejects new objects.
func (r *reconciler) targetCluster(ctx context.Context, name string, hasWork bool) (*clusterv1alpha1.Cluster, error) {
	cluster := &clusterv1alpha1.Cluster{}
	if err := r.karmada.Get(ctx, types.NamespacedName{Name: name}, cluster, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("reading the cluster: %w", err)
	}
	if cluster.DeletionTimestamp != nil && !hasWork {
		return nil, &blockedError{"the cluster is being deleted"}
	}
	return cluster, nil
}

// permanentIDOf returns the permanent ID for the Work of a cluster: the ID of the existing Work, or
// else a new ID.
func permanentIDOf(existing []*workv1alpha1.Work) string {
	for _, each := range existing {
		if id := each.Labels[workv1alpha1.WorkPermanentIDLabel]; id != "" && each.DeletionTimestamp == nil {
			return id
		}
	}
	return uuid.NewString()
}

func (r *reconciler) createWork(ctx context.Context, bound binding.Object, desired *workv1alpha1.Work) error {
	if err := r.karmada.Create(ctx, desired); err != nil {
		return fmt.Errorf("creating Work %s: %w", client.ObjectKeyFromObject(desired), err)
	}
	r.writes.Record(client.ObjectKeyFromObject(bound), desired)
	return nil
}

func (r *reconciler) updateWork(ctx context.Context, bound binding.Object, stored, desired *workv1alpha1.Work) (written bool, err error) {
	key := client.ObjectKeyFromObject(stored)
	if stored.DeletionTimestamp != nil {
		return false, &blockedError{fmt.Sprintf("Work %s is being deleted", key)}
	}
	owner, err := r.otherOwner(ctx, bound, stored)
	if err != nil {
		return false, err
	}
	if owner != "" {
		return false, &blockedError{fmt.Sprintf("Work %s belongs to binding %s; rename one of the two templates", key, owner)}
	}
	if !isWorkOf(stored, bound) {
		// A Work that was created for this binding is not compared, because the comparison decodes
		// the manifests of both Works.
		if object, another := work.NameCollision(stored, desired); another {
			return false, &blockedError{fmt.Sprintf("Work %s contains %s, which does not belong to this binding; delete that Work if nothing needs it, or rename the template", key, object)}
		}
	}
	merged, changed, err := work.Merge(stored, desired)
	if err != nil {
		return false, fmt.Errorf("merging Work %s: %w", key, err)
	}
	if !changed {
		return false, nil
	}
	// The Work is written by an update, because a merge patch cannot set null. A patch would lose
	// the nulls of a manifest, and the next reconcile would write them again.
	if err := r.karmada.Update(ctx, merged); err != nil {
		return false, fmt.Errorf("updating Work %s: %w", key, err)
	}
	r.writes.Record(client.ObjectKeyFromObject(bound), merged)
	return true, nil
}

// isWorkOf reports whether a Work was created for a binding. It returns false for the Work of an
// earlier binding of the same name, which may have had another template (binding.Names).
func isWorkOf(stored *workv1alpha1.Work, bound binding.Object) bool {
	key, ok := binding.ReferencedBinding(stored, binding.IsNamespaced(bound))
	return ok && key == client.ObjectKeyFromObject(bound) && stored.Labels[binding.PermanentIDLabel(bound)] == binding.PermanentID(bound)
}

// otherOwner returns the key of another binding that owns the Work, or an empty string. Two
// bindings may need a Work with the same name. A Work whose binding was deleted has no owner.
func (r *reconciler) otherOwner(ctx context.Context, bound binding.Object, stored *workv1alpha1.Work) (string, error) {
	for _, namespaced := range []bool{true, false} {
		other := binding.New(namespaced)
		key, ok := binding.ReferencedBinding(stored, namespaced)
		if !ok || namespaced == r.namespaced && key == client.ObjectKeyFromObject(bound) {
			continue
		}
		err := r.karmada.Get(ctx, key, other, client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("reading the binding %s of Work %s/%s: %w", key, stored.Namespace, stored.Name, err)
		}
		if binding.PermanentID(other) == stored.Labels[binding.PermanentIDLabel(other)] {
			return key.String(), nil
		}
	}
	return "", nil
}
