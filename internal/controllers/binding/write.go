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
	"karmada.io/karmada/internal/domain/override"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/domain/work"
)

// revision sets the replicas of an object, which it may change or replace.
type revision = func(object *unstructured.Unstructured, replicas int64) (*unstructured.Unstructured, error)

// batch is what the Works of one binding are made of in one pass. It is read by
// several writers at once and never changed.
type batch struct {
	bound     binding.Object
	template  *unstructured.Unstructured
	overrides work.Overrides
	revise    revision
	targets   []workv1alpha2.TargetCluster
	works     []*workv1alpha1.Work
}

// in are the batch's Works in a cluster.
func (b batch) in(cluster string) []*workv1alpha1.Work {
	var inside []*workv1alpha1.Work
	for _, each := range b.works {
		if each.Namespace == work.ExecutionNamespace(cluster) {
			inside = append(inside, each)
		}
	}
	return inside
}

// result is what became of one target.
type result struct {
	cluster string
	// work is the name of its Work.
	work string
	// overridden tells that the Work was created or changed, and that this gave
	// it another record of applied overrides.
	overridden bool
	// idle are the overriders that found nothing to change, looked at when overridden.
	idle []string
	err  error
}

// write brings the Works of all targets up to date, several at a time, and returns
// what became of each, in the order of the targets.
func (r *reconciler) write(ctx context.Context, b batch) []result {
	results := make([]result, len(b.targets))
	var writers errgroup.Group
	writers.SetLimit(max(r.options.Writers, 1))
	for i, target := range b.targets {
		writers.Go(func() error {
			results[i] = r.writeOne(ctx, b, target)
			return nil
		})
	}
	_ = writers.Wait()
	return results
}

// writeOne brings the Work of one target up to date.
func (r *reconciler) writeOne(ctx context.Context, b batch, target workv1alpha2.TargetCluster) result {
	failed := func(err error) result { return result{cluster: target.Name, err: err} }
	present := b.in(target.Name)
	if kept := lasting(present); len(kept) == 1 && binding.IsOf(kept[0], b.bound) && policy.Released(b.bound) {
		// What the template says by now nobody asked for. A pass that came by chance, as
		// after a start, must not bring it to the member.
		return result{cluster: target.Name, work: kept[0].Name}
	}
	cluster, err := r.cluster(ctx, target.Name, len(present) > 0)
	if err != nil {
		return failed(err)
	}
	render := func(id string) (*workv1alpha1.Work, error) {
		return work.Render(work.Input{
			Template: b.template, Binding: b.bound, Cluster: cluster, Target: target, Revise: b.revise,
			Overrides: b.overrides, PermanentID: id, InjectState: r.options.InjectState,
		})
	}
	desired, err := render(idOf(present))
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
		written, err = r.update(ctx, b.bound, stored, desired)
	case len(present) > 0:
		// An override gave the object another name: that is another Work, and its
		// predecessor keeps the id until it is gone.
		if desired, err = render(uuid.NewString()); err == nil {
			err = r.create(ctx, b.bound, desired)
		}
	default:
		err = r.create(ctx, b.bound, desired)
	}
	if err != nil {
		return failed(err)
	}
	done := result{cluster: target.Name, work: desired.Name, overridden: written && work.Overridden(stored, desired)}
	if done.overridden {
		done.idle = override.Idle(b.template, cluster, b.overrides.Cluster, b.overrides.Namespaced)
	}
	return done
}

// cluster is the Cluster of a target. One that leaves the control plane gets no
// new Work: its execution namespace takes none any more.
func (r *reconciler) cluster(ctx context.Context, name string, present bool) (*clusterv1alpha1.Cluster, error) {
	cluster := &clusterv1alpha1.Cluster{}
	if err := r.karmada.Get(ctx, types.NamespacedName{Name: name}, cluster, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("reading the cluster: %w", err)
	}
	if cluster.DeletionTimestamp != nil && !present {
		return nil, &waitError{"the cluster is being deleted"}
	}
	return cluster, nil
}

// idOf is the permanent id for the Work of a cluster: the one it has, or else a
// new one.
func idOf(present []*workv1alpha1.Work) string {
	for _, each := range present {
		if id := each.Labels[workv1alpha1.WorkPermanentIDLabel]; id != "" && each.DeletionTimestamp == nil {
			return id
		}
	}
	return uuid.NewString()
}

func (r *reconciler) create(ctx context.Context, bound binding.Object, desired *workv1alpha1.Work) error {
	if err := r.karmada.Create(ctx, desired); err != nil {
		return fmt.Errorf("creating Work %s: %w", client.ObjectKeyFromObject(desired), err)
	}
	r.written.note(client.ObjectKeyFromObject(bound), desired)
	return nil
}

func (r *reconciler) update(ctx context.Context, bound binding.Object, stored, desired *workv1alpha1.Work) (written bool, err error) {
	key := client.ObjectKeyFromObject(stored)
	if stored.DeletionTimestamp != nil {
		return false, &waitError{fmt.Sprintf("Work %s is being deleted", key)}
	}
	holder, err := r.holder(ctx, bound, stored)
	if err != nil {
		return false, err
	}
	if holder != "" {
		return false, &waitError{fmt.Sprintf("Work %s belongs to binding %s; rename one of the two templates", key, holder)}
	}
	if !leadsTo(stored, bound) {
		// To compare what they carry decodes both, so only a Work of another maker is compared.
		if object, another := work.CarriesAnother(stored, desired); another {
			return false, &waitError{fmt.Sprintf("Work %s carries %s, which is not of this binding; delete that Work if nothing needs it, or rename the template", key, object)}
		}
	}
	merged, changed, err := work.Merge(stored, desired)
	if err != nil {
		return false, fmt.Errorf("merging Work %s: %w", key, err)
	}
	if !changed {
		return false, nil
	}
	// Not a patch: a merge patch has no word for null, and would lose those of the
	// manifest, whereupon the next pass wrote them again.
	if err := r.karmada.Update(ctx, merged); err != nil {
		return false, fmt.Errorf("updating Work %s: %w", key, err)
	}
	r.written.note(client.ObjectKeyFromObject(bound), merged)
	return true, nil
}

// leadsTo reports whether a Work was made for a binding, or for an earlier one of its
// name.
func leadsTo(stored *workv1alpha1.Work, bound binding.Object) bool {
	key, ok := binding.LedTo(stored, binding.Namespaced(bound))
	return ok && key == client.ObjectKeyFromObject(bound)
}

// holder is another binding that keeps the Work, or empty. The name of a Work says
// too little to exclude that two bindings want the same one. A Work that is left
// of a binding that is gone is free.
func (r *reconciler) holder(ctx context.Context, bound binding.Object, stored *workv1alpha1.Work) (string, error) {
	for _, namespaced := range []bool{true, false} {
		other := binding.New(namespaced)
		key, ok := binding.LedTo(stored, namespaced)
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
