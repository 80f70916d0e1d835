package diagnose

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/capacity"
	"karmada.io/karmada/internal/domain/override"
	"karmada.io/karmada/internal/domain/policy"
)

// Fact is a value that was read, or the error with which the read failed. A nil value without an
// error means that the object does not exist.
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
	// UnservedKinds are the kinds in the selectors of policies and override policies that the control
	// plane does not serve.
	UnservedKinds sets.Set[schema.GroupVersionKind]
	// Overrides are the ClusterOverridePolicies, and the OverridePolicies in the namespace of the
	// template.
	Overrides Fact[[]override.Object]
	// Binding is the binding of the template (binding.Find).
	Binding Fact[binding.Object]
	// Interpretation is the error with which the interpreter reads the replicas of the template. It
	// is needed only if there is no binding.
	Interpretation error
	Clusters       Fact[[]*clusterv1alpha1.Cluster]
	// Works are the Works that belong to the binding, of all clusters.
	Works Fact[[]*workv1alpha1.Work]
	// Limits are the results of the estimators by the name of the cluster. Clusters without an
	// entry are estimated by the resources in their status, as the scheduler does without other
	// estimators.
	Limits map[string]capacity.Limit
	// Members are the responses of the members that were queried, by the name of the cluster.
	Members map[string]MemberFacts
}

// MemberFacts are the responses of one member.
type MemberFacts struct {
	Object Fact[*unstructured.Unstructured]
	// Namespace is the namespace of the object. It is used only if HasNamespace is true.
	Namespace    Fact[*corev1.Namespace]
	HasNamespace bool
	// Pods are the Pods of the workload, and Events the events of the object. They are used only if
	// the object is not healthy.
	Pods   Fact[[]corev1.Pod]
	Events Fact[[]corev1.Event]
}

// serves implements policy.IsServed.
func (f *Facts) serves(kind schema.GroupVersionKind) bool { return !f.UnservedKinds.Has(kind) }

// cluster returns a cluster by name, or nil.
func (f *Facts) cluster(name string) *clusterv1alpha1.Cluster {
	for _, cluster := range f.Clusters.Value {
		if cluster.Name == name {
			return cluster
		}
	}
	return nil
}

// ownsBinding reports whether the binding exists and belongs to the template. If the template does
// not exist or could not be read, the reference in the binding determines that.
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

// kubectlTemplate returns the template as arguments of kubectl, such as "deployment.apps web -n
// shop".
func (f *Facts) kubectlTemplate() string {
	kind := strings.ToLower(f.Kind.Kind)
	if f.Kind.Group != "" {
		kind += "." + f.Kind.Group
	}
	return kind + " " + f.Key.Name + namespaceFlag(f.Key.Namespace)
}

// kubectlBinding returns the binding as arguments of kubectl.
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

func targetsOf(bound binding.Object) []Target {
	spec := bound.BindingSpec()
	var targets []Target
	for _, target := range binding.TargetClusters(spec) {
		listed := Target{Cluster: target.Name}
		if spec.Replicas > 0 {
			listed.Replicas = &target.Replicas
		}
		targets = append(targets, listed)
	}
	slices.SortFunc(targets, func(a, b Target) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return targets
}
