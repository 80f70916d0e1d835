// Package registries determines which objects the ResourceRegistries select, and in which clusters.
//
// Every function is pure and modifies no argument.
//
// Invariants:
//   - The result does not depend on the order of the registries.
//   - A kind that a cluster does not list is skipped only if the list of APIs of the cluster is
//     complete.
//   - Every selector of a matching registry yields a kind or a reason why it is skipped.
package registries

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
	domain "karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/domain/clusteraffinity"
	"karmada.io/karmada/internal/domain/conditions"
)

// Registry is a ResourceRegistry with parsed selectors. It is immutable.
type Registry struct {
	Name       string
	OpenSearch *searchv1alpha1.OpenSearchConfig

	spec     *searchv1alpha1.ResourceRegistrySpec
	affinity clusteraffinity.Matcher
	kinds    []selectedKind
	invalid  []Skipped
}

// selectedKind is one kind of a registry. namespaces is nil if a selector selects all namespaces.
type selectedKind struct {
	kind       schema.GroupVersionKind
	namespaces []string
}

// Compile parses a registry. A selector that cannot be parsed is skipped with a reason. The result
// refers to the registry, which must not be changed afterwards.
func Compile(registry *searchv1alpha1.ResourceRegistry) *Registry {
	compiled := &Registry{Name: registry.Name, spec: &registry.Spec, affinity: clusteraffinity.Compile(&registry.Spec.TargetCluster)}
	if registry.Spec.BackendStore != nil {
		compiled.OpenSearch = registry.Spec.BackendStore.OpenSearch
	}
	for i, selector := range registry.Spec.ResourceSelectors {
		kind, err := parseKind(selector)
		if err != nil {
			compiled.invalid = append(compiled.invalid, Skipped{
				Registry: registry.Name, APIVersion: selector.APIVersion, Kind: selector.Kind,
				Reason: fmt.Sprintf("spec.resourceSelectors[%d]: %v", i, err),
			})
			continue
		}
		compiled.add(kind, selector.Namespace)
	}
	slices.SortFunc(compiled.kinds, func(a, b selectedKind) int { return CompareKinds(a.kind, b.kind) })
	return compiled
}

func parseKind(selector searchv1alpha1.ResourceSelector) (schema.GroupVersionKind, error) {
	version, err := schema.ParseGroupVersion(selector.APIVersion)
	switch {
	case err != nil:
		return schema.GroupVersionKind{}, fmt.Errorf("apiVersion: %w: set it to a version such as v1, or to a group and a version such as apps/v1", err)
	case version.Version == "":
		return schema.GroupVersionKind{}, fmt.Errorf("apiVersion %q has no version: set it to a version such as v1, or to a group and a version such as apps/v1", selector.APIVersion)
	case selector.Kind == "":
		return schema.GroupVersionKind{}, fmt.Errorf("kind is empty: set it to a kind such as Deployment")
	}
	return version.WithKind(selector.Kind), nil
}

// add adds a selector.
func (r *Registry) add(kind schema.GroupVersionKind, namespace string) {
	var namespaces []string
	if namespace != "" {
		namespaces = []string{namespace}
	}
	for i := range r.kinds {
		if r.kinds[i].kind == kind {
			r.kinds[i].namespaces = unionNamespaces(r.kinds[i].namespaces, namespaces)
			return
		}
	}
	r.kinds = append(r.kinds, selectedKind{kind: kind, namespaces: namespaces})
}

// unionNamespaces returns the namespaces of both, sorted. Nil means all namespaces.
func unionNamespaces(a, b []string) []string {
	if a == nil || b == nil {
		return nil
	}
	union := slices.Concat(a, b)
	slices.Sort(union)
	return slices.Compact(union)
}

// Matches reports whether the registry selects a cluster by its name, labels and fields.
func (r *Registry) Matches(cluster *clusterv1alpha1.Cluster) bool { return r.affinity.Matches(cluster) }

// RegisteredKinds returns the kinds that registries name, sorted, also if no cluster matches.
func RegisteredKinds(registries []*Registry) []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, registry := range registries {
		for _, selected := range registry.kinds {
			kinds = append(kinds, selected.kind)
		}
	}
	slices.SortFunc(kinds, CompareKinds)
	return slices.Compact(kinds)
}

// CompareKinds orders kinds by group, version and kind.
func CompareKinds(a, b schema.GroupVersionKind) int {
	return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Version, b.Version), strings.Compare(a.Kind, b.Kind))
}

// Kind is a kind that is cached for a cluster.
type Kind struct {
	schema.GroupVersionKind
	// Resource is the plural name of the kind in the cluster. It is empty if the list of APIs of the
	// cluster is incomplete and does not contain the kind: then it is unknown whether the cluster
	// serves the kind.
	Resource string
	// Namespaces are the namespaces to which the global proxy is restricted, sorted. Nil means all. They
	// have no meaning for a kind without namespaces.
	Namespaces []string
	// Registries are the names of the registries that select the kind, sorted.
	Registries []string
}

// Skipped is a selector of a registry that has no effect for a cluster.
type Skipped struct {
	Registry         string
	APIVersion, Kind string
	// Reason is a message for users.
	Reason string
}

// Selection is what is cached for one cluster.
type Selection struct {
	// NotReady is the reason why the cluster must not be watched now. It is empty for a cluster that is
	// ready. Objects of a cluster that is not ready stay in the cache.
	NotReady string
	// Kinds are sorted by group, version and kind.
	Kinds []Kind
	// OpenSearch is the back end of the cluster. It is nil if the cluster has none.
	OpenSearch *searchv1alpha1.OpenSearchConfig
	// OpenSearchRegistries are the matching registries with an OpenSearch back end, sorted. The first
	// of them determines OpenSearch.
	OpenSearchRegistries []string
	// Skipped is sorted by registry and kind.
	Skipped []Skipped
}

// Select returns what is cached for a cluster. Nothing is cached for a cluster that is being deleted.
func Select(cluster *clusterv1alpha1.Cluster, registries []*Registry) Selection {
	selection := Selection{NotReady: notReadyReason(cluster)}
	if cluster.DeletionTimestamp != nil {
		return selection
	}
	builder := newSelectionBuilder(cluster)
	for _, registry := range sortedByName(registries) {
		if !registry.Matches(cluster) {
			continue
		}
		builder.addRegistry(registry)
		if registry.OpenSearch != nil {
			selection.OpenSearch = cmp.Or(selection.OpenSearch, registry.OpenSearch)
			selection.OpenSearchRegistries = append(selection.OpenSearchRegistries, registry.Name)
		}
	}
	slices.SortFunc(builder.kinds, func(a, b Kind) int { return CompareKinds(a.GroupVersionKind, b.GroupVersionKind) })
	selection.Kinds, selection.Skipped = builder.kinds, builder.skipped
	return selection
}

func sortedByName(registries []*Registry) []*Registry {
	sorted := slices.Clone(registries)
	slices.SortFunc(sorted, func(a, b *Registry) int { return strings.Compare(a.Name, b.Name) })
	return sorted
}

// notReadyReason returns why a cluster must not be watched, or "".
func notReadyReason(cluster *clusterv1alpha1.Cluster) string {
	if cluster.DeletionTimestamp != nil {
		return fmt.Sprintf("cluster %q is being deleted", cluster.Name)
	}
	if domain.IsReady(cluster) {
		return ""
	}
	ready := conditions.Get(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	if ready == nil {
		return fmt.Sprintf("cluster %q is not ready: it has not reported its status", cluster.Name)
	}
	return fmt.Sprintf("cluster %q is not ready: %s: %s", cluster.Name, ready.Reason, ready.Message)
}

// selectionBuilder collects the kinds of one cluster.
type selectionBuilder struct {
	cluster *clusterv1alpha1.Cluster
	// isComplete is true if the list of APIs of the cluster is complete.
	isComplete bool
	kinds      []Kind
	skipped    []Skipped
	// indexes are the places of kinds in the field kinds.
	indexes map[schema.GroupVersionKind]int
}

func newSelectionBuilder(cluster *clusterv1alpha1.Cluster) *selectionBuilder {
	return &selectionBuilder{
		cluster: cluster, indexes: map[schema.GroupVersionKind]int{},
		isComplete: conditions.HasStatus(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionCompleteAPIEnablements, metav1.ConditionTrue),
	}
}

func (s *selectionBuilder) addRegistry(registry *Registry) {
	s.skipped = append(s.skipped, registry.invalid...)
	for _, selected := range registry.kinds {
		resource := ResourceOf(s.cluster, selected.kind)
		if resource == "" && s.isComplete {
			s.skipped = append(s.skipped, Skipped{
				Registry: registry.Name, APIVersion: selected.kind.GroupVersion().String(), Kind: selected.kind.Kind,
				Reason: fmt.Sprintf("cluster %q does not serve %s in %s", s.cluster.Name, selected.kind.Kind, selected.kind.GroupVersion()),
			})
			continue
		}
		s.addKind(registry.Name, selected, resource)
	}
}

func (s *selectionBuilder) addKind(registry string, selected selectedKind, resource string) {
	i, found := s.indexes[selected.kind]
	if !found {
		s.indexes[selected.kind] = len(s.kinds)
		s.kinds = append(s.kinds, Kind{
			GroupVersionKind: selected.kind, Resource: resource, Namespaces: selected.namespaces, Registries: []string{registry},
		})
		return
	}
	s.kinds[i].Namespaces = unionNamespaces(s.kinds[i].Namespaces, selected.namespaces)
	s.kinds[i].Registries = append(s.kinds[i].Registries, registry)
}

// ResourceOf returns the plural name of a kind in the list of APIs of a cluster, or "" if the list does
// not contain the kind.
func ResourceOf(cluster *clusterv1alpha1.Cluster, kind schema.GroupVersionKind) string {
	version := kind.GroupVersion().String()
	for _, enablement := range cluster.Status.APIEnablements {
		if enablement.GroupVersion != version {
			continue
		}
		for _, resource := range enablement.Resources {
			if resource.Kind == kind.Kind {
				return resource.Name
			}
		}
	}
	return ""
}

// HasSameSpec reports whether two states of a registry select the same.
func (r *Registry) HasSameSpec(other *Registry) bool {
	return equality.Semantic.DeepEqual(r.spec, other.spec)
}
