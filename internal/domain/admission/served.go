package admission

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/spelling"
)

// ServedKinds contains the kinds that a control plane serves.
type ServedKinds struct {
	kinds map[schema.GroupVersionKind]servedKind
	// preferred maps each kind to its preferred version. Objects are propagated in this version.
	preferred map[schema.GroupKind]string
	// unavailable contains the groups whose discovery failed.
	unavailable sets.Set[string]
}

type servedKind struct{ namespaced bool }

// NewServedKinds returns the kinds in a discovery result. unavailable are the versions whose discovery
// failed. All kinds in these versions' groups count as unknown.
func NewServedKinds(groups []*metav1.APIGroup, lists []*metav1.APIResourceList, unavailable []schema.GroupVersion) *ServedKinds {
	served := &ServedKinds{kinds: map[schema.GroupVersionKind]servedKind{}, preferred: map[schema.GroupKind]string{},
		unavailable: sets.New[string]()}
	for _, version := range unavailable {
		served.unavailable.Insert(version.Group)
	}
	preferredVersions := map[string]string{}
	for _, group := range groups {
		preferredVersions[group.Name] = group.PreferredVersion.Version
	}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for i := range list.APIResources {
			served.addResource(version, &list.APIResources[i], preferredVersions[version.Group])
		}
	}
	return served
}

func (s *ServedKinds) addResource(version schema.GroupVersion, resource *metav1.APIResource, preferredVersion string) {
	if strings.Contains(resource.Name, "/") { // ignore subresources
		return
	}
	kind := version.WithKind(resource.Kind)
	s.kinds[kind] = servedKind{namespaced: resource.Namespaced}
	if s.preferred[kind.GroupKind()] == "" || version.Version == preferredVersion {
		s.preferred[kind.GroupKind()] = version.Version
	}
}

// Has reports whether the kind is served in the given version. It also returns true if the discovery of
// the kind's group failed.
func (s *ServedKinds) Has(kind schema.GroupVersionKind) bool {
	_, ok := s.kinds[kind]
	return ok || s.unavailable.Has(kind.Group)
}

// nearestKind returns a kind of the same group and version with a similar name. If there is none, it
// returns a kind of the same name in another group, or else the zero value.
func (s *ServedKinds) nearestKind(kind schema.GroupVersionKind) schema.GroupVersionKind {
	var names []string
	var elsewhere []schema.GroupVersionKind
	for served := range s.kinds {
		if served.GroupVersion() == kind.GroupVersion() {
			names = append(names, served.Kind)
		}
		if served.Kind == kind.Kind && s.preferred[served.GroupKind()] == served.Version {
			elsewhere = append(elsewhere, served)
		}
	}
	if name := spelling.Nearest(kind.Kind, names); name != "" {
		return kind.GroupVersion().WithKind(name)
	}
	if len(elsewhere) == 0 {
		return schema.GroupVersionKind{}
	}
	return slices.MinFunc(elsewhere, func(a, b schema.GroupVersionKind) int {
		return slices.Compare([]string{a.Group, a.Version}, []string{b.Group, b.Version})
	})
}

// warnUnservedSelector warns about a selector whose kind is not served, is served in another version,
// or is cluster-scoped although the policy is namespaced. clusterWide is the kind of the cluster-scoped
// policy that can select cluster-scoped objects. It is empty if the validated policy itself is
// cluster-scoped.
func (r *report) warnUnservedSelector(path *field.Path, selector *policyv1alpha1.ResourceSelector, kind schema.GroupVersionKind,
	clusterWide string) {
	if r.servedKinds == nil {
		return
	}
	served := r.servedKinds(kind)
	if served == nil || served.unavailable.Has(kind.Group) {
		return
	}
	preferred := schema.GroupVersion{Group: kind.Group, Version: served.preferred[kind.GroupKind()]}
	switch found, ok := served.kinds[kind]; {
	case !ok && preferred.Version != "":
		r.addWarning(path.Child("apiVersion"), "selects nothing: %s does not serve %s; use %s", selector.APIVersion, kind.Kind, preferred)
	case !ok:
		r.warnUnknownKind(path, selector, served.nearestKind(kind))
	case preferred.Version != kind.Version:
		r.addWarning(path.Child("apiVersion"), "selects nothing: the server prefers %s; use it", preferred)
	case !found.namespaced && clusterWide != "":
		r.addWarning(path, "never matches: %s of %s has no namespace; use a %s", kind.Kind, selector.APIVersion, clusterWide)
	}
}

func (r *report) warnUnknownKind(path *field.Path, selector *policyv1alpha1.ResourceSelector, near schema.GroupVersionKind) {
	const text = "selects nothing: no API serves %s of %s; did you mean %s?"
	switch near.Kind {
	case "":
		r.addWarning(path, "selects nothing until an API serves %s of %s", selector.Kind, selector.APIVersion)
	case selector.Kind:
		r.addWarning(path.Child("apiVersion"), text, selector.Kind, selector.APIVersion, near.GroupVersion())
	default:
		r.addWarning(path.Child("kind"), text, selector.Kind, selector.APIVersion, near.Kind)
	}
}

// warnUnknownClusters warns about cluster names for which no Cluster exists.
func (r *report) warnUnknownClusters(path *field.Path, names []string) {
	if r.clusters == nil {
		return
	}
	var validNames []string
	for _, name := range names {
		if isValidClusterName(name) {
			validNames = append(validNames, name)
		}
	}
	if len(validNames) == 0 {
		return
	}
	existing := r.clusters(validNames)
	if existing == nil {
		return
	}
	for i, name := range names {
		if existing.Has(name) || !isValidClusterName(name) {
			continue
		}
		if near := spelling.Nearest(name, sets.List(existing)); near != "" {
			r.addWarning(path.Index(i), "there is no cluster %q; did you mean %q?", name, near)
			continue
		}
		r.addWarning(path.Index(i), "there is no cluster %q yet", name)
	}
}
