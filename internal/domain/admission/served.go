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

// Served are the kinds that a control plane serves.
type Served struct {
	kinds map[schema.GroupVersionKind]servedKind
	// preferred is the version of each kind whose objects are propagated.
	preferred map[schema.GroupKind]string
	// silent are the groups that did not answer.
	silent sets.Set[string]
}

type servedKind struct{ namespaced bool }

// NewServed reads what a discovery found. silent names the versions that did not
// answer: nothing is known of their groups.
func NewServed(groups []*metav1.APIGroup, lists []*metav1.APIResourceList, silent []schema.GroupVersion) *Served {
	served := &Served{kinds: map[schema.GroupVersionKind]servedKind{}, preferred: map[schema.GroupKind]string{}, silent: sets.New[string]()}
	for _, version := range silent {
		served.silent.Insert(version.Group)
	}
	favourites := map[string]string{}
	for _, group := range groups {
		favourites[group.Name] = group.PreferredVersion.Version
	}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for i := range list.APIResources {
			served.add(version, &list.APIResources[i], favourites[version.Group])
		}
	}
	return served
}

func (s *Served) add(version schema.GroupVersion, resource *metav1.APIResource, favourite string) {
	if strings.Contains(resource.Name, "/") { // a subresource
		return
	}
	kind := version.WithKind(resource.Kind)
	s.kinds[kind] = servedKind{namespaced: resource.Namespaced}
	if s.preferred[kind.GroupKind()] == "" || version.Version == favourite {
		s.preferred[kind.GroupKind()] = version.Version
	}
}

// Has reports whether the kind is served in that version. It also reports true
// when the group did not answer.
func (s *Served) Has(kind schema.GroupVersionKind) bool {
	_, ok := s.kinds[kind]
	return ok || s.silent.Has(kind.Group)
}

// nearest returns a kind of the same version that has a similar name, else a kind
// of the same name in another group; the zero value when there is neither.
func (s *Served) nearest(kind schema.GroupVersionKind) schema.GroupVersionKind {
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

// servedSelector warns about a selector of a kind that is not served, is served in
// another version, or has no namespace although the policy has one. clusterWide is
// the kind of policy that selects kinds without namespaces; empty when the policy
// is one.
func (r *report) servedSelector(path *field.Path, selector *policyv1alpha1.ResourceSelector, kind schema.GroupVersionKind, clusterWide string) {
	if r.served == nil {
		return
	}
	served := r.served(kind)
	if served == nil || served.silent.Has(kind.Group) {
		return
	}
	preferred := schema.GroupVersion{Group: kind.Group, Version: served.preferred[kind.GroupKind()]}
	switch found, ok := served.kinds[kind]; {
	case !ok && preferred.Version != "":
		r.warn(path.Child("apiVersion"), "selects nothing: %s does not serve %s; use %s", selector.APIVersion, kind.Kind, preferred)
	case !ok:
		r.unservedSelector(path, selector, served.nearest(kind))
	case preferred.Version != kind.Version:
		r.warn(path.Child("apiVersion"), "selects nothing: the server prefers %s; use it", preferred)
	case !found.namespaced && clusterWide != "":
		r.warn(path, "never matches: %s of %s has no namespace; use a %s", kind.Kind, selector.APIVersion, clusterWide)
	}
}

func (r *report) unservedSelector(path *field.Path, selector *policyv1alpha1.ResourceSelector, near schema.GroupVersionKind) {
	const text = "selects nothing: no API serves %s of %s; did you mean %s?"
	switch near.Kind {
	case "":
		r.warn(path, "selects nothing until an API serves %s of %s", selector.Kind, selector.APIVersion)
	case selector.Kind:
		r.warn(path.Child("apiVersion"), text, selector.Kind, selector.APIVersion, near.GroupVersion())
	default:
		r.warn(path.Child("kind"), text, selector.Kind, selector.APIVersion, near.Kind)
	}
}

// knownClusters warns about names that no Cluster has.
func (r *report) knownClusters(path *field.Path, names []string) {
	if r.clusters == nil {
		return
	}
	var named []string
	for _, name := range names {
		if canNameCluster(name) {
			named = append(named, name)
		}
	}
	if len(named) == 0 {
		return
	}
	known := r.clusters(named)
	if known == nil {
		return
	}
	for i, name := range names {
		if known.Has(name) || !canNameCluster(name) {
			continue
		}
		if near := spelling.Nearest(name, sets.List(known)); near != "" {
			r.warn(path.Index(i), "there is no cluster %q; did you mean %q?", name, near)
			continue
		}
		r.warn(path.Index(i), "there is no cluster %q yet", name)
	}
}
