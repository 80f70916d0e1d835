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

// Rendering reports which Works of a binding are rendered from the binding's current spec. It uses only
// stored objects, because another process may have written the Works.
type Rendering struct {
	settings renderSettings
	targets  map[string]workv1alpha2.TargetCluster
	failures map[string]string
	// isRecorded is true if the binding's own annotation records that all its Works are current.
	isRecorded bool
}

// RenderingOf returns the binding's Rendering. The caller must not use the Rendering after the binding
// has changed.
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

// Failures maps each target for which no current Work could be rendered to the reason. The caller must
// not change the map.
func (r Rendering) Failures() map[string]string { return r.failures }

// AreApplied reports whether there is at least one Work, and all of them are rendered from the current
// settings and applied. works are the binding's Works in one cluster.
func (r Rendering) AreApplied(works []workv1alpha1.Work) bool {
	return len(works) > 0 && !slices.ContainsFunc(works, func(each workv1alpha1.Work) bool {
		applied := conditions.Get(each.Status.Conditions, workv1alpha1.WorkApplied)
		return each.DeletionTimestamp != nil || !r.IsCurrent(&each) || applied == nil || applied.Status != metav1.ConditionTrue ||
			applied.ObservedGeneration != 0 && applied.ObservedGeneration != each.Generation
	})
}

// IsCurrent reports whether one of the binding's Works is rendered from the current settings for its
// cluster, and from the template version that the binding records or a newer version. It returns false
// if the Work's cluster is no target or has a failure.
func (r Rendering) IsCurrent(of *workv1alpha1.Work) bool {
	cluster, _ := ClusterOf(of.Namespace)
	target, isTarget := r.targets[cluster]
	if _, hasFailed := r.failures[cluster]; !isTarget || hasFailed {
		return false
	}
	return r.isRecorded || r.settings.isShownBy(of, target)
}

// IsComplete reports whether each target has either a failure, or exactly one Work, which is current.
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
