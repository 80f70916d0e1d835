package judge

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/kinds"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/guard"
	"karmada.io/karmada/internal/domain/work"
)

// facts collects what explains the deletion of Works.
type facts struct {
	// karmada reads from caches, live does not.
	karmada, live client.Reader
	api           kinds.Discovery
	changes       *changes
	outages       *outages
	proofs        *proofs
	now           func() time.Time
}

// collect returns what is known about the deletion of a Work, from caches.
func (e *facts) collect(ctx context.Context, cluster *clusterv1alpha1.Cluster, of *workv1alpha1.Work) (guard.Facts, error) {
	facts := guard.Facts{
		ClusterLeaves: cluster.DeletionTimestamp != nil,
		Held:          work.HeldAsMassDeletion(of),
		Confirmed:     guard.Confirmed(cluster.Annotations[workv1alpha1.ConfirmDeletionsAnnotation], of.DeletionTimestamp.Time),
	}
	if facts.ClusterLeaves {
		return facts, nil
	}
	return facts, e.owner(ctx, e.karmada, cluster, of, &facts)
}

// confirm reads again what collect took for wanted, this time at what is stored:
// to keep an object because of an old view would leave it behind for good.
func (e *facts) confirm(ctx context.Context, cluster *clusterv1alpha1.Cluster, of *workv1alpha1.Work, facts guard.Facts) (guard.Facts, error) {
	facts.Owner = guard.Nobody
	if superseded, err := e.superseded(ctx, of); err != nil || superseded {
		return facts, err
	}
	err := e.owner(ctx, e.live, cluster, of, &facts)
	return facts, err
}

// owner finds out what has become of what keeps a Work: its bindings, or the
// Namespace that it carries.
func (e *facts) owner(ctx context.Context, from client.Reader, cluster *clusterv1alpha1.Cluster, of *workv1alpha1.Work, into *guard.Facts) error {
	if !work.Bound(of) {
		return namespaceOwner(ctx, from, of, into)
	}
	into.Owner = guard.Gone
	for _, namespaced := range []bool{true, false} {
		key, ok := binding.LedTo(of, namespaced)
		if !ok {
			continue
		}
		bound := binding.New(namespaced)
		err := from.Get(ctx, key, bound, client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) || err == nil && bound.GetDeletionTimestamp() != nil {
			continue
		}
		if err != nil {
			return reading("binding "+key.String(), of, err)
		}
		e.noteBinding(bound, cluster, of, into)
		if into.Owner == guard.Wants {
			return nil
		}
		if err := e.followed(ctx, from, bound, cluster, into); err != nil {
			return err
		}
	}
	return nil
}

// noteBinding notes what a binding says about one of its Works.
func (e *facts) noteBinding(bound binding.Object, cluster *clusterv1alpha1.Cluster, of *workv1alpha1.Work, into *guard.Facts) {
	spec := bound.BindingSpec()
	if binding.Expected(spec).Has(cluster.Name) {
		// The next Work takes over only what was made of the same template.
		if uid := templateUID(of); uid != "" && uid == spec.Resource.UID {
			into.Owner = guard.Wants
		}
		return
	}
	into.Owner = guard.Drops
	into.Asked = into.Asked || e.changes.explain(bound, cluster.Name)
	into.Excluded = into.Excluded || guard.Excluded(cluster, spec)
	into.Unmatched = into.Unmatched || guard.Unmatched(cluster, spec, bound.BindingStatus())
	into.Moved = into.Moved || len(binding.Targets(spec)) > 0 && e.outages.cover(cluster, of.DeletionTimestamp.Time)
}

// followed adds what explains why a binding that only follows others left a cluster:
// what explains it of those that it follows. Those that are in the cluster, or not
// known, explain nothing.
func (e *facts) followed(ctx context.Context, from client.Reader, bound binding.Object, cluster *clusterv1alpha1.Cluster, into *guard.Facts) error {
	if bound.BindingSpec().Placement != nil {
		return nil
	}
	for _, snapshot := range bound.BindingSpec().RequiredBy {
		dependent, key := binding.New(true), types.NamespacedName{Namespace: snapshot.Namespace, Name: snapshot.Name}
		err := from.Get(ctx, key, dependent, client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) || err == nil && binding.Expected(dependent.BindingSpec()).Has(cluster.Name) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading binding %s, which needs %s: %w", key, bound.GetName(), err)
		}
		into.Asked = into.Asked || e.changes.explain(dependent, cluster.Name)
		into.Excluded = into.Excluded || guard.Excluded(cluster, dependent.BindingSpec())
		into.Unmatched = into.Unmatched || guard.Unmatched(cluster, dependent.BindingSpec(), dependent.BindingStatus())
	}
	return nil
}

// namespaceOwner judges the Work of a Namespace. What a member loses with a
// Namespace is everything in it.
func namespaceOwner(ctx context.Context, from client.Reader, of *workv1alpha1.Work, into *guard.Facts) error {
	owner := metav1.GetControllerOf(of)
	if owner == nil || owner.Kind != "Namespace" || owner.APIVersion != "v1" {
		return nil
	}
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion(owner.APIVersion)
	namespace.SetKind(owner.Kind)
	err := from.Get(ctx, types.NamespacedName{Name: owner.Name}, namespace)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return reading("Namespace "+owner.Name, of, err)
	case namespace.GetUID() != owner.UID, namespace.GetDeletionTimestamp() != nil,
		namespace.GetLabels()[policyv1alpha1.NamespaceSkipAutoPropagationLabel] == "true":
		return nil
	}
	into.Owner = guard.Wants
	return nil
}

// superseded reports whether another Work of the same binding has taken the place
// of this one, under the name that an override gives the object now. A Work of another
// binding that has the same id takes no place.
func (e *facts) superseded(ctx context.Context, of *workv1alpha1.Work) (bool, error) {
	for _, namespaced := range []bool{true, false} {
		label := binding.PermanentIDLabel(binding.New(namespaced))
		id := of.Labels[label]
		key, ok := binding.LedTo(of, namespaced)
		if id == "" || !ok {
			continue
		}
		works := &workv1alpha1.WorkList{}
		if err := e.karmada.List(ctx, works, client.InNamespace(of.Namespace), client.MatchingLabels{label: id}, client.UnsafeDisableDeepCopy); err != nil {
			return false, fmt.Errorf("listing Works beside %s/%s: %w", of.Namespace, of.Name, err)
		}
		for i := range works.Items {
			each := &works.Items[i]
			if to, ok := binding.LedTo(each, namespaced); ok && to == key && each.Name != of.Name && each.DeletionTimestamp == nil {
				return true, nil
			}
		}
	}
	return false, nil
}

// templateUID is that of the template which the Work's manifest was made of; empty
// when it was made of none.
func templateUID(of *workv1alpha1.Work) types.UID {
	if len(of.Spec.Workload.Manifests) == 0 {
		return ""
	}
	manifest, err := work.Decode(of.Spec.Workload.Manifests[0])
	if err != nil {
		return ""
	}
	return uidIn(manifest)
}

func uidIn(manifest *unstructured.Unstructured) types.UID {
	return types.UID(manifest.GetAnnotations()[workv1alpha2.ResourceTemplateUIDAnnotation])
}

// bindingID stands for the bindings that a Work is of; empty when they have no id. The
// names are part of it: an id can be copied to a binding of another name.
func bindingID(of *workv1alpha1.Work) string {
	id := of.Labels[workv1alpha2.ResourceBindingPermanentIDLabel] + of.Labels[workv1alpha2.ClusterResourceBindingPermanentIDLabel]
	for _, namespaced := range []bool{true, false} {
		if key, ok := binding.LedTo(of, namespaced); ok && id != "" {
			id += " " + key.String()
		}
	}
	return id
}
