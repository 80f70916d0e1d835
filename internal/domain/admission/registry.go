package admission

import (
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
	"karmada.io/karmada/internal/domain/spelling"
)

// manyKinds is the number of kinds from which a registry causes a warning if it selects every cluster.
const manyKinds = 20

// costlyKinds maps kinds that should rarely be cached for all clusters to the reason.
func costlyKinds() map[schema.GroupKind]string {
	const changes = "its objects change all the time"
	return map[schema.GroupKind]string{
		{Kind: "Event"}:                                    changes,
		{Group: "events.k8s.io", Kind: "Event"}:            changes,
		{Group: "coordination.k8s.io", Kind: "Lease"}:      changes,
		{Kind: "Endpoints"}:                                changes,
		{Group: "discovery.k8s.io", Kind: "EndpointSlice"}: changes,
		{Kind: "Secret"}:                                   "the memory and the disk of karmada-search then contain the secrets of every cluster",
	}
}

// ValidateRegistry validates a ResourceRegistry and returns the errors and the warnings. The API server
// that serves ResourceRegistries calls it, because no webhook validates this kind.
func (r Options) ValidateRegistry(registry *searchv1alpha1.ResourceRegistry) (field.ErrorList, []string) {
	report := &report{clusters: r.ClusterNames}
	report.addInvalid(field.NewPath("metadata", "name"), registry.Name, validation.IsDNS1123Subdomain(registry.Name))
	if registry.DeletionTimestamp == nil {
		report.validateRegistry(&registry.Spec, r.ServedByClusters)
	}
	return report.errors, report.warnings
}

func (r *report) validateRegistry(spec *searchv1alpha1.ResourceRegistrySpec, servedKinds func() sets.Set[schema.GroupVersionKind]) {
	path := specPath()
	r.validateClusterAffinity(path.Child("targetCluster"), &spec.TargetCluster)
	selectors := path.Child("resourceSelectors")
	if len(spec.ResourceSelectors) == 0 {
		r.addWarning(selectors, "is empty, so nothing is cached: add at least one kind")
	}
	seen := map[searchv1alpha1.ResourceSelector]bool{}
	for i, selector := range spec.ResourceSelectors {
		r.validateResourceSelector(selectors.Index(i), selector)
		if seen[selector] {
			r.addWarning(selectors.Index(i), "has no effect: an entry before it is the same")
		}
		seen[selector] = true
	}
	r.warnUnservedKinds(selectors, spec.ResourceSelectors, servedKinds)
	if isEmptyAffinity(&spec.TargetCluster) {
		r.warnSelectsEverything(path, spec.ResourceSelectors)
	}
	if spec.BackendStore != nil {
		r.validateOpenSearch(path.Child("backendStore", "openSearch"), spec.BackendStore.OpenSearch)
	}
}

func (r *report) validateResourceSelector(path *field.Path, selector searchv1alpha1.ResourceSelector) {
	if _, err := schema.ParseGroupVersion(selector.APIVersion); err != nil {
		r.addErrors(field.Invalid(path.Child("apiVersion"), selector.APIVersion,
			"must be a version, such as v1, or a group and a version, such as apps/v1"))
	}
	if selector.Namespace != "" {
		r.addInvalid(path.Child("namespace"), selector.Namespace, validation.IsDNS1123Label(selector.Namespace))
	}
	switch {
	case selector.APIVersion == "":
		r.addWarning(path.Child("apiVersion"), "is empty, so the entry selects nothing: set it to the version of the kind, such as v1 or apps/v1")
	case selector.Kind == "":
		r.addWarning(path.Child("kind"), "is empty, so the entry selects nothing: set it to a kind, such as Pod")
	case strings.Contains(selector.APIVersion+selector.Kind, "*"):
		r.addWarning(path, "selects nothing: %q and %q are names, not patterns; add one entry for each kind", selector.APIVersion, selector.Kind)
	case selector.Kind == strings.ToLower(selector.Kind):
		r.addWarning(path.Child("kind"), "selects nothing if %q is the name of a resource: use the kind, such as Pod instead of pods",
			selector.Kind)
	}
}

// warnUnservedKinds warns about kinds that no cluster serves.
func (r *report) warnUnservedKinds(path *field.Path, selectors []searchv1alpha1.ResourceSelector,
	servedKinds func() sets.Set[schema.GroupVersionKind]) {
	if servedKinds == nil {
		return
	}
	served := servedKinds()
	if len(served) == 0 {
		return
	}
	for i, selector := range selectors {
		kind := schema.FromAPIVersionAndKind(selector.APIVersion, selector.Kind)
		if served.Has(kind) || selector.APIVersion == "" || selector.Kind == "" || strings.Contains(selector.APIVersion+selector.Kind, "*") {
			continue
		}
		if near := nearestKind(kind, served); near != "" {
			r.addWarning(path.Index(i), "no cluster serves %s %s at present; did you mean %s?", selector.APIVersion, selector.Kind, near)
			continue
		}
		r.addWarning(path.Index(i), "no cluster serves %s %s at present", selector.APIVersion, selector.Kind)
	}
}

// nearestKind returns the served kind that the user probably meant: the same kind in another version or
// group, or a kind in the same version with a similar name. It returns "" if there is none.
func nearestKind(kind schema.GroupVersionKind, served sets.Set[schema.GroupVersionKind]) string {
	var same, similar []string
	for candidate := range served {
		name := candidate.GroupVersion().String() + " " + candidate.Kind
		switch {
		case candidate.Kind == kind.Kind:
			same = append(same, name)
		case candidate.GroupVersion() == kind.GroupVersion():
			similar = append(similar, name)
		}
	}
	if len(same) > 0 {
		return slices.Max(same)
	}
	return spelling.Nearest(kind.GroupVersion().String()+" "+kind.Kind, similar)
}

// warnSelectsEverything warns about the many or costly kinds of a registry that selects every cluster.
func (r *report) warnSelectsEverything(path *field.Path, selectors []searchv1alpha1.ResourceSelector) {
	if len(selectors) >= manyKinds {
		r.addWarning(path, "caches %d kinds of every cluster: karmada-search needs memory for each object; select only the kinds and the clusters that users search", len(selectors))
	}
	costly := costlyKinds()
	for i, selector := range selectors {
		kind := schema.FromAPIVersionAndKind(selector.APIVersion, selector.Kind).GroupKind()
		if reason, is := costly[kind]; is {
			r.addWarning(path.Child("resourceSelectors").Index(i),
				"caches each %s of every cluster, but %s: omit it, or select clusters in targetCluster", selector.Kind, reason)
		}
	}
}

func (r *report) validateOpenSearch(path *field.Path, config *searchv1alpha1.OpenSearchConfig) {
	if config == nil {
		return
	}
	if len(config.Addresses) == 0 {
		r.addWarning(path.Child("addresses"), "is empty, so no object is stored in OpenSearch: add at least one URL")
	}
	for i, address := range config.Addresses {
		parsed, err := url.Parse(address)
		itemPath := path.Child("addresses").Index(i)
		switch {
		case err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Hostname() == "":
			r.addErrors(field.Invalid(itemPath, address,
				"must be a URL with a host that begins with http:// or https://, such as https://opensearch.example.com:9200"))
		case parsed.User != nil:
			r.addWarning(itemPath, "contains credentials that every reader of the registry sees: store them in the Secret of secretRef")
		}
	}
}
