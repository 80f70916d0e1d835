package deletionguard

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/failover"
	"karmada.io/karmada/internal/domain/guard"
	"karmada.io/karmada/internal/domain/servedkinds"
	"karmada.io/karmada/internal/domain/tenancy"
	"karmada.io/karmada/internal/domain/work"
)

// factCollector collects the facts that explain the deletion of a Work.
type factCollector struct {
	// karmadaCache reads from caches. apiReader reads from the API server.
	karmadaCache, apiReader client.Reader
	discovery               servedkinds.DiscoveryClient
	templates               *templateStateCache
	now                     func() time.Time
}

// collectFacts reads the facts about the deletion of a Work from caches.
func (f *factCollector) collectFacts(ctx context.Context, cluster *clusterv1alpha1.Cluster,
	karmadaWork *workv1alpha1.Work) (guard.Facts, error) {
	facts := guard.Facts{ClusterUnregistering: cluster.DeletionTimestamp != nil, HeldFor: work.HeldFor(karmadaWork)}
	facts.IsConfirmed = guard.IsDeletionConfirmed(cluster, karmadaWork)
	_, facts.IsRejected = guard.ReadUserDecision(karmadaWork)
	if facts.ClusterUnregistering {
		return facts, nil
	}
	return facts, f.recordOwner(ctx, f.karmadaCache, cluster, karmadaWork, &facts)
}

// verifyRequired reads from the API server whether the binding still requires the Work in the
// cluster. A cache is not enough here: with a stale cache the object would be kept in the member
// forever.
func (f *factCollector) verifyRequired(ctx context.Context, cluster *clusterv1alpha1.Cluster, karmadaWork *workv1alpha1.Work,
	facts guard.Facts) (guard.Facts, error) {
	facts.Owner = guard.OwnerNone
	if superseded, err := f.isSuperseded(ctx, karmadaWork); err != nil || superseded {
		return facts, err
	}
	err := f.recordOwner(ctx, f.apiReader, cluster, karmadaWork, &facts)
	return facts, err
}

// recordOwner records the state of the Work's owner. The owner is a binding of the Work, or the
// Namespace that the Work delivers.
func (f *factCollector) recordOwner(ctx context.Context, reader client.Reader, cluster *clusterv1alpha1.Cluster,
	karmadaWork *workv1alpha1.Work, facts *guard.Facts) error {
	if !work.HasBinding(karmadaWork) {
		return f.recordNamespaceOwner(ctx, reader, karmadaWork, facts)
	}
	facts.Owner = guard.OwnerGone
	for _, namespaced := range []bool{true, false} {
		key, ok := binding.ReferencedBinding(karmadaWork, namespaced)
		if !ok {
			continue
		}
		bound := binding.New(namespaced)
		err := reader.Get(ctx, key, bound, client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return readError("binding "+key.String(), karmadaWork, err)
		}
		facts.IsSuspended = facts.IsSuspended || work.IsKeptBySuspension(karmadaWork, bound)
		if bound.GetDeletionTimestamp() != nil {
			continue
		}
		if err := f.recordBinding(ctx, bound, cluster, karmadaWork, facts); err != nil || facts.Owner == guard.OwnerRequiresWork {
			return err
		}
		if err := f.recordDependents(ctx, reader, bound, cluster, karmadaWork, facts); err != nil {
			return err
		}
	}
	return nil
}

// recordBinding records what a binding shows about the deletion of one of its Works.
func (f *factCollector) recordBinding(ctx context.Context, bound binding.Object, cluster *clusterv1alpha1.Cluster,
	karmadaWork *workv1alpha1.Work, facts *guard.Facts) error {
	spec := bound.BindingSpec()
	if binding.ExpectedClusters(spec).Has(cluster.Name) {
		// A new Work takes over the objects of this Work only if both Works were made from the same
		// template.
		uid := templateUID(karmadaWork)
		if uid != "" && uid == spec.Resource.UID {
			facts.Owner = guard.OwnerRequiresWork
		}
		facts.IsRecreated = uid != "" && uid != spec.Resource.UID
		return nil
	}
	facts.Owner = guard.OwnerDropsWork
	return f.recordExplanations(ctx, bound, cluster, karmadaWork, facts)
}

// recordExplanations records the explanations of a binding for its removal from a cluster.
func (f *factCollector) recordExplanations(ctx context.Context, bound binding.Object, cluster *clusterv1alpha1.Cluster,
	karmadaWork *workv1alpha1.Work, facts *guard.Facts) error {
	facts.HasDeparted = facts.HasDeparted || binding.HasDeparted(bound, cluster.Name, karmadaWork.CreationTimestamp.Time)
	facts.Excluded = facts.Excluded || guard.IsExcluded(cluster, bound.BindingSpec(), f.now())
	facts.Unmatched = facts.Unmatched || guard.IsUnmatched(cluster, bound.BindingSpec(), bound.BindingStatus())
	facts.LacksTargets = facts.LacksTargets || len(binding.TargetClusters(bound.BindingSpec())) == 0
	var err error
	if !facts.IsReplaced && failover.HasHealthyCopies(bound) {
		facts.IsReplaced, err = f.areCopiesCurrent(ctx, bound)
	}
	return err
}

// areCopiesCurrent reports whether the Works in all clusters of a binding are rendered from its
// current spec and applied, so that the reported health is that of the required copies.
func (f *factCollector) areCopiesCurrent(ctx context.Context, bound binding.Object) (bool, error) {
	rendering, id := work.RenderingOf(bound), binding.PermanentID(bound)
	for _, target := range binding.TargetClusters(bound.BindingSpec()) {
		works := &workv1alpha1.WorkList{}
		if err := f.karmadaCache.List(ctx, works, client.InNamespace(work.ExecutionNamespace(target.Name)),
			client.MatchingLabels{binding.PermanentIDLabel(bound): id}, client.UnsafeDisableDeepCopy); err != nil {
			return false, fmt.Errorf("listing the Works of %s in cluster %s: %w", bound.GetName(), target.Name, err)
		}
		ownWorks := slices.DeleteFunc(works.Items, func(other workv1alpha1.Work) bool { return !binding.BelongsTo(&other, bound) })
		if !rendering.AreApplied(ownWorks) {
			return false, nil
		}
	}
	return true, nil
}

// recordDependents records how the dependents of an attached binding explain the deletion. Dependents
// are the bindings that require the attached binding. A dependent that is still assigned to the
// cluster, or that does not exist, explains nothing.
func (f *factCollector) recordDependents(ctx context.Context, reader client.Reader, bound binding.Object, cluster *clusterv1alpha1.Cluster,
	karmadaWork *workv1alpha1.Work, facts *guard.Facts) error {
	if bound.BindingSpec().Placement != nil {
		return nil
	}
	for _, snapshot := range bound.BindingSpec().RequiredBy {
		dependent, key := binding.New(true), types.NamespacedName{Namespace: snapshot.Namespace, Name: snapshot.Name}
		err := reader.Get(ctx, key, dependent, client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(err) || err == nil && binding.ExpectedClusters(dependent.BindingSpec()).Has(cluster.Name) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading binding %s, which depends on %s: %w", key, bound.GetName(), err)
		}
		if err := f.recordExplanations(ctx, dependent, cluster, karmadaWork, facts); err != nil {
			return err
		}
	}
	return nil
}

// recordNamespaceOwner records the state of the Namespace that a Work delivers. If a Namespace is
// deleted in a member, all objects in the Namespace are deleted too. A Namespace that is missing in
// the cache is read from the API server.
func (f *factCollector) recordNamespaceOwner(ctx context.Context, reader client.Reader, karmadaWork *workv1alpha1.Work,
	facts *guard.Facts) error {
	owner := metav1.GetControllerOf(karmadaWork)
	if owner == nil || owner.Kind != "Namespace" || owner.APIVersion != "v1" {
		return nil
	}
	namespace := newNamespace(owner.Name)
	key := client.ObjectKeyFromObject(namespace)
	err := reader.Get(ctx, key, namespace)
	if apierrors.IsNotFound(err) {
		err = f.apiReader.Get(ctx, key, namespace)
	}
	switch {
	case apierrors.IsNotFound(err), err == nil && (namespace.GetUID() != owner.UID || namespace.GetDeletionTimestamp() != nil):
		facts.Owner, facts.Template = guard.OwnerGone, guard.TemplateDeleted
	case err != nil:
		return readError("Namespace "+owner.Name, karmadaWork, err)
	case tenancy.IsExcludedFromPropagation(namespace):
		facts.Owner, facts.Template = guard.OwnerGone, guard.TemplateUnclaimed
	default:
		facts.Owner = guard.OwnerRequiresWork
	}
	return nil
}

// isSuperseded reports whether another Work of the same binding replaces this Work, because an
// override gave the object another name. A Work of another binding with the same permanent ID does
// not replace this Work.
func (f *factCollector) isSuperseded(ctx context.Context, karmadaWork *workv1alpha1.Work) (bool, error) {
	for _, namespaced := range []bool{true, false} {
		label := binding.PermanentIDLabel(binding.New(namespaced))
		id := karmadaWork.Labels[label]
		key, ok := binding.ReferencedBinding(karmadaWork, namespaced)
		if id == "" || !ok {
			continue
		}
		works := &workv1alpha1.WorkList{}
		if err := f.karmadaCache.List(ctx, works, client.InNamespace(karmadaWork.Namespace), client.MatchingLabels{label: id},
			client.UnsafeDisableDeepCopy); err != nil {
			return false, fmt.Errorf("listing Works beside %s/%s: %w", karmadaWork.Namespace, karmadaWork.Name, err)
		}
		for i := range works.Items {
			otherWork := &works.Items[i]
			if to, ok := binding.ReferencedBinding(otherWork, namespaced); ok && to == key && otherWork.Name != karmadaWork.Name &&
				otherWork.DeletionTimestamp == nil {
				return true, nil
			}
		}
	}
	return false, nil
}

// templateUID returns the UID of the template from which the manifest of the Work was made. It is
// empty if the Work has no manifest or the manifest has no template.
func templateUID(karmadaWork *workv1alpha1.Work) types.UID {
	if len(karmadaWork.Spec.Workload.Manifests) == 0 {
		return ""
	}
	manifest, err := work.DecodeManifestMetadata(karmadaWork.Spec.Workload.Manifests[0])
	if err != nil {
		return ""
	}
	return annotatedTemplateUID(manifest)
}

func annotatedTemplateUID(manifest *unstructured.Unstructured) types.UID {
	return types.UID(manifest.GetAnnotations()[workv1alpha2.ResourceTemplateUIDAnnotation])
}

// bindingID returns a key that identifies the bindings of a Work. The key is empty if the bindings
// have no permanent ID. It contains the names of the bindings, because an ID can be copied to a
// binding with another name.
func bindingID(karmadaWork *workv1alpha1.Work) string {
	id := karmadaWork.Labels[workv1alpha2.ResourceBindingPermanentIDLabel] +
		karmadaWork.Labels[workv1alpha2.ClusterResourceBindingPermanentIDLabel]
	for _, namespaced := range []bool{true, false} {
		if key, ok := binding.ReferencedBinding(karmadaWork, namespaced); ok && id != "" {
			id += " " + key.String()
		}
	}
	return id
}

// newNamespace returns a Namespace to read. It is an unstructured object, because the cache already
// contains Namespaces in this form for other controllers.
func newNamespace(name string) *unstructured.Unstructured {
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName(name)
	return namespace
}
