package work

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/conditions"
)

// Rendering reports which Works of a binding are rendered from its current spec. It uses only
// stored objects, because another process may have written the Works.
type Rendering struct {
	settings renderSettings
	targets  map[string]workv1alpha2.TargetCluster
	failures map[string]string
	// isRecorded is true if the binding itself records that all its Works are current.
	isRecorded bool
}

// RenderingOf returns the Rendering of a binding. The caller must not use the Rendering after the
// binding changed.
func RenderingOf(bound binding.Object) Rendering {
	r := Rendering{settings: newRenderSettings(bound), targets: map[string]workv1alpha2.TargetCluster{}}
	for _, target := range binding.TargetClusters(bound.BindingSpec()) {
		r.targets[target.Name] = target
	}
	r.failures = decodeRenderFailures(bound)
	maps.DeleteFunc(r.failures, func(cluster, _ string) bool { _, isTarget := r.targets[cluster]; return !isTarget })
	r.isRecorded = bound.GetAnnotations()[workv1alpha2.RenderedGenerationAnnotation] == renderedGeneration(bound)
	return r
}

// Failures maps each target for which no current Work could be rendered to the reason. It is empty
// if there are no such targets. The caller must not change it.
func (r Rendering) Failures() map[string]string { return r.failures }

// AreApplied reports whether there are Works and all of them are rendered from the current settings
// and applied. works are the Works of the binding in one cluster.
func (r Rendering) AreApplied(works []workv1alpha1.Work) bool {
	return len(works) > 0 && !slices.ContainsFunc(works, func(each workv1alpha1.Work) bool {
		applied := conditions.Get(each.Status.Conditions, workv1alpha1.WorkApplied)
		return each.DeletionTimestamp != nil || !r.IsCurrent(&each) || applied == nil || applied.Status != metav1.ConditionTrue ||
			applied.ObservedGeneration != 0 && applied.ObservedGeneration != each.Generation
	})
}

// IsCurrent reports whether a Work of the binding is rendered from the current settings for its
// cluster, and from the template in the version that the binding records or in a newer version. It
// returns false for a Work in a cluster that is no target or has a failure.
func (r Rendering) IsCurrent(of *workv1alpha1.Work) bool {
	cluster, _ := ClusterOf(of.Namespace)
	target, isTarget := r.targets[cluster]
	if _, hasFailed := r.failures[cluster]; !isTarget || hasFailed {
		return false
	}
	return r.isRecorded || r.settings.isShownBy(of, target)
}

// IsComplete reports whether every target has a failure, or has a current Work and no other Work.
// Works in deletion are ignored.
func (r Rendering) IsComplete(works []*workv1alpha1.Work) bool {
	missing := maps.Clone(r.targets)
	for _, each := range works {
		cluster, _ := ClusterOf(each.Namespace)
		_, isTarget := r.targets[cluster]
		_, hasFailed := r.failures[cluster]
		if each.DeletionTimestamp != nil || !isTarget || hasFailed {
			continue
		}
		if !r.IsCurrent(each) {
			return false
		}
		delete(missing, cluster)
	}
	for cluster := range missing {
		if _, hasFailed := r.failures[cluster]; !hasFailed {
			return false
		}
	}
	return true
}
