package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/override"
	"karmada.io/karmada/internal/domain/placement"
	"karmada.io/karmada/internal/domain/policy"
)

// Fact is a value that was read, or the error of the read. A nil value without an error means that the
// object does not exist.
type Fact[T any] struct {
	Value T
	Err   error
}

// Facts are the arguments of Trace.
type Facts struct {
	// Kind and Key identify the template. The namespace is empty for a cluster-scoped template.
	Kind schema.GroupVersionKind
	Key  types.NamespacedName
	// Now is the time of the reads.
	Now time.Time

	Template Fact[*unstructured.Unstructured]
	// Policies are the ClusterPropagationPolicies, and the PropagationPolicies in the namespace of
	// the template. Other policies are ignored.
	Policies Fact[[]policy.Object]
	// UnservedKinds are the kinds that policies and override policies select, but that the control plane
	// does not serve.
	UnservedKinds sets.Set[schema.GroupVersionKind]
	// Overrides are the ClusterOverridePolicies, and the OverridePolicies in the namespace of the
	// template.
	Overrides Fact[[]override.Object]
	// Binding is the binding of the template (binding.Find).
	Binding Fact[binding.Object]
	// InterpretationErr is the error that the interpreter returned for the replicas of the template. It is
	// set only if there is no binding.
	InterpretationErr error
	Clusters          Fact[[]*clusterv1alpha1.Cluster]
	// Works are the binding's Works in all clusters.
	Works Fact[[]*workv1alpha1.Work]
	// Members are the facts of the members that were queried, by cluster name.
	Members map[string]MemberFacts
}

// MemberFacts are the facts that were read from one member.
type MemberFacts struct {
	Object Fact[*unstructured.Unstructured]
	// Namespace is the object's namespace. It was read only if HasNamespace is true.
	Namespace    Fact[*corev1.Namespace]
	HasNamespace bool
	// Pods are the workload's Pods, and Events the object's events. They were read only if the object is
	// not healthy.
	Pods   Fact[[]corev1.Pod]
	Events Fact[[]corev1.Event]
}

// isServed implements policy.IsServed.
func (f *Facts) isServed(kind schema.GroupVersionKind) bool { return !f.UnservedKinds.Has(kind) }

// cluster returns the cluster with the given name, or nil.
func (f *Facts) cluster(name string) *clusterv1alpha1.Cluster {
	for _, cluster := range f.Clusters.Value {
		if cluster.Name == name {
			return cluster
		}
	}
	return nil
}

// ownsBinding reports whether the binding exists and belongs to the template. If the template does not
// exist or could not be read, the binding belongs to it if the binding refers to its kind and name.
func (f *Facts) ownsBinding() bool {
	bound, template := f.Binding.Value, f.Template.Value
	switch {
	case bound == nil:
		return false
	case template == nil:
		return binding.IsOf(bound, f.Kind.GroupKind(), f.Key.Name)
	default:
		return policy.CheckBindingOwner(bound, template) == nil
	}
}

// describeTemplate returns the kind, namespace and name of the template.
func (f *Facts) describeTemplate() string {
	return f.Kind.Kind + " " + strings.TrimPrefix(f.Key.String(), "/")
}

// kubectlTemplate returns the arguments that name the template to kubectl, such as
// "deployment.apps web -n shop".
func (f *Facts) kubectlTemplate() string {
	kind := strings.ToLower(f.Kind.Kind)
	if f.Kind.Group != "" {
		kind += "." + f.Kind.Group
	}
	return kind + " " + f.Key.Name + namespaceFlag(f.Key.Namespace)
}

// kubectlBinding returns the arguments that name the binding to kubectl.
func kubectlBinding(bound binding.Object) string {
	if binding.IsNamespaced(bound) {
		return "resourcebinding " + bound.GetName() + namespaceFlag(bound.GetNamespace())
	}
	return "clusterresourcebinding " + bound.GetName()
}

func kubectlWork(work *workv1alpha1.Work) string {
	return "work " + work.Name + namespaceFlag(work.Namespace)
}

func namespaceFlag(namespace string) string {
	if namespace == "" {
		return ""
	}
	return " -n " + namespace
}

// TargetsOf returns the target clusters of a binding, sorted by name.
func TargetsOf(bound binding.Object) []Target {
	spec := bound.BindingSpec()
	targets := []Target{}
	for _, each := range binding.TargetClusters(spec) {
		target := Target{Cluster: each.Name}
		if placement.HasReplicas(spec) {
			target.Replicas = new(each.Replicas)
		}
		targets = append(targets, target)
	}
	slices.SortFunc(targets, func(a, b Target) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return targets
}

// DescribeTargets lists targets with their replicas, such as "east 4, west 2". It names at most limit
// clusters.
func DescribeTargets(targets []Target, limit int) string {
	if len(targets) == 0 {
		return "none"
	}
	var texts []string
	for _, target := range targets[:min(len(targets), limit)] {
		text := target.Cluster
		if target.Replicas != nil {
			text += fmt.Sprintf(" %d", *target.Replicas)
		}
		texts = append(texts, text)
	}
	return JoinLimited(texts, len(targets)-len(texts))
}

// JoinLimited joins names with commas, and counts those that are not among them.
func JoinLimited(names []string, omitted int) string {
	text := strings.Join(names, ", ")
	if omitted > 0 {
		text += fmt.Sprintf(" and %d more", omitted)
	}
	return text
}

// count returns the number followed by the noun, in the plural if the number is not 1.
func count(number int64, noun string) string {
	if number != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", number, noun)
}

// formatTime returns the time in UTC. The text does not depend on the current time.
func formatTime(at *metav1.Time) string {
	if at == nil {
		return "an unknown time"
	}
	return at.UTC().Format(time.RFC3339)
}
