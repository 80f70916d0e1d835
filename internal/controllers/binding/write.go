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
	"karmada.io/karmada/internal/access/patch"
	"karmada.io/karmada/internal/domain/binding"
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

// write brings the Works of all targets up to date, several at a time. It returns
// how the Work of each cluster is called, for those that succeeded, and the
// failures of the others in the order of the targets.
func (r *reconciler) write(ctx context.Context, b batch) (names map[string]string, failures []error) {
	written, failed := make([]string, len(b.targets)), make([]error, len(b.targets))
	var writers errgroup.Group
	writers.SetLimit(max(r.options.Writers, 1))
	for i, target := range b.targets {
		writers.Go(func() error {
			written[i], failed[i] = r.writeOne(ctx, b, target)
			return nil
		})
	}
	_ = writers.Wait()
	names = map[string]string{}
	for i, target := range b.targets {
		if failed[i] != nil {
			failures = append(failures, fmt.Errorf("cluster %q: %w", target.Name, failed[i]))
			continue
		}
		names[target.Name] = written[i]
	}
	return names, failures
}

// writeOne brings the Work of one target up to date and returns its name.
func (r *reconciler) writeOne(ctx context.Context, b batch, target workv1alpha2.TargetCluster) (string, error) {
	present := b.in(target.Name)
	cluster, err := r.cluster(ctx, target.Name, len(present) > 0)
	if err != nil {
		return "", err
	}
	render := func(id string) (*workv1alpha1.Work, error) {
		return work.Render(work.Input{
			Template: b.template, Binding: b.bound, Cluster: cluster, Target: target, Revise: b.revise,
			Overrides: b.overrides, PermanentID: id, InjectState: r.options.InjectState,
		})
	}
	desired, err := render(idOf(present))
	if err != nil {
		return "", err
	}
	stored := &workv1alpha1.Work{}
	err = r.karmada.Get(ctx, client.ObjectKeyFromObject(desired), stored, client.UnsafeDisableDeepCopy)
	switch {
	case err == nil:
		return desired.Name, r.update(ctx, b.bound, stored, desired)
	case !apierrors.IsNotFound(err):
		return "", fmt.Errorf("reading Work %s: %w", client.ObjectKeyFromObject(desired), err)
	case len(present) > 0:
		// An override gave the object another name: that is another Work, and its
		// predecessor keeps the id until it is gone.
		if desired, err = render(uuid.NewString()); err != nil {
			return "", err
		}
	}
	return desired.Name, r.create(ctx, b.bound, desired)
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

func (r *reconciler) update(ctx context.Context, bound binding.Object, stored, desired *workv1alpha1.Work) error {
	key := client.ObjectKeyFromObject(stored)
	if stored.DeletionTimestamp != nil {
		return &waitError{fmt.Sprintf("Work %s is being deleted", key)}
	}
	holder, err := r.holder(ctx, bound, stored)
	if err != nil {
		return err
	}
	if holder != "" {
		return &waitError{fmt.Sprintf("Work %s belongs to binding %s", key, holder)}
	}
	merged, changed, err := work.Merge(stored, desired)
	if err != nil {
		return fmt.Errorf("merging Work %s: %w", key, err)
	}
	if !changed {
		return nil
	}
	if _, err := patch.Object(ctx, r.karmada, stored, merged); err != nil {
		return err
	}
	r.written.note(client.ObjectKeyFromObject(bound), merged)
	return nil
}

// holder is another binding that keeps the Work, or empty. The name of a Work says
// too little to exclude that two bindings want the same one. A Work that is left
// of a binding that is gone is free.
func (r *reconciler) holder(ctx context.Context, bound binding.Object, stored *workv1alpha1.Work) (string, error) {
	for _, namespaced := range []bool{true, false} {
		other := binding.New(namespaced)
		key, ok := bindingOf(stored, namespaced)
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
