package simulation

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/cluster"
)

// ClusterChanges are hypothetical changes of clusters. Changes of clusters that do not exist have no
// effect.
type ClusterChanges struct {
	// Without names the clusters that are removed.
	Without []string
	Taints  []TaintChange
	Labels  []LabelChange
}

// TaintChange sets a taint of a cluster, or removes it. A removed taint without an effect stands for
// all taints with its key.
type TaintChange struct {
	Cluster string
	Taint   corev1.Taint
	Remove  bool
}

// LabelChange sets a label of a cluster, or removes it.
type LabelChange struct {
	Cluster, Key, Value string
	Remove              bool
}

// Names returns the names of the changed clusters, sorted and without duplicates.
func (c ClusterChanges) Names() []string {
	names := slices.Clone(c.Without)
	for i := range c.Taints {
		names = append(names, c.Taints[i].Cluster)
	}
	for i := range c.Labels {
		names = append(names, c.Labels[i].Cluster)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Apply returns the clusters after the changes, in the same order. A removed cluster stays in the list
// and is terminating, because the scheduler moves its workloads while the cluster terminates.
// Unchanged clusters are shared with the argument.
func (c ClusterChanges) Apply(clusters []*clusterv1alpha1.Cluster, now time.Time) []*clusterv1alpha1.Cluster {
	changed := slices.Clone(clusters)
	names := c.Names()
	for i, each := range changed {
		if _, isChanged := slices.BinarySearch(names, each.Name); isChanged {
			changed[i] = each.DeepCopy()
			c.applyTo(changed[i], metav1.NewTime(now))
		}
	}
	return changed
}

func (c ClusterChanges) applyTo(of *clusterv1alpha1.Cluster, now metav1.Time) {
	if slices.Contains(c.Without, of.Name) && of.DeletionTimestamp == nil {
		of.DeletionTimestamp = &now
	}
	for i := range c.Taints {
		if c.Taints[i].Cluster == of.Name {
			of.Spec.Taints = c.Taints[i].apply(of.Spec.Taints)
		}
	}
	cluster.Canonicalize(of, now)
	labels := maps.Clone(of.Labels)
	for _, change := range c.Labels {
		switch {
		case change.Cluster != of.Name:
		case change.Remove:
			delete(labels, change.Key)
		default:
			if labels == nil {
				labels = map[string]string{}
			}
			labels[change.Key] = change.Value
		}
	}
	of.Labels = labels
}

func (t *TaintChange) apply(taints []corev1.Taint) []corev1.Taint {
	isSame := func(taint corev1.Taint) bool {
		return taint.Key == t.Taint.Key && (taint.Effect == t.Taint.Effect || t.Remove && t.Taint.Effect == "")
	}
	if t.Remove {
		return slices.DeleteFunc(taints, isSame)
	}
	if at := slices.IndexFunc(taints, isSame); at >= 0 {
		taints[at].Value = t.Taint.Value
		return taints
	}
	return append(taints, t.Taint)
}
