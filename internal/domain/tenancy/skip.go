package tenancy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	appsv1alpha1 "karmada.io/karmada/api/apps/v1alpha1"
	autoscalingv1alpha1 "karmada.io/karmada/api/autoscaling/v1alpha1"
	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	networkingv1alpha1 "karmada.io/karmada/api/networking/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	remedyv1alpha1 "karmada.io/karmada/api/remedy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

// SkippedAPIs is the set of kinds that are never templates. The zero value is empty. A control
// plane uses at least DefaultSkippedAPIs.
type SkippedAPIs struct {
	groups   sets.Set[string]
	versions sets.Set[schema.GroupVersion]
	// kinds holds the kinds in lower case, because users may write kinds in any case.
	kinds sets.Set[schema.GroupVersionKind]
}

// DefaultSkippedAPIs returns the kinds that are always skipped: the control plane's own API groups, and
// objects that only record activity (events, leases).
func DefaultSkippedAPIs() SkippedAPIs {
	return SkippedAPIs{
		groups: sets.New(
			clusterv1alpha1.GroupName, policyv1alpha1.GroupName, workv1alpha1.GroupName, configv1alpha1.GroupName,
			networkingv1alpha1.GroupName, autoscalingv1alpha1.GroupName, remedyv1alpha1.GroupName, appsv1alpha1.GroupName,
			"events.k8s.io",
		),
		versions: sets.New(schema.GroupVersion{Group: "coordination.k8s.io", Version: "v1"}),
		kinds:    sets.New(schema.GroupVersionKind{Version: "v1", Kind: "event"}),
	}
}

// ParseSkippedAPIs parses the value of --skipped-propagating-apis and adds it to the defaults.
// The value consists of tokens that are separated by ';'. Empty tokens are ignored:
//
//	group               the whole group
//	group/version       all kinds of a group version
//	v1/Kind,...         kinds of the core group
//	group/version/Kind,... kinds of a group version
//
// A token with two parts that starts with "v1" always lists kinds of the core group. Kinds are
// compared without regard to case. ParseSkippedAPIs returns an error that contains the token if a
// token has another form.
func ParseSkippedAPIs(expression string) (SkippedAPIs, error) {
	skipped := DefaultSkippedAPIs()
	for token := range strings.SplitSeq(expression, ";") {
		token = strings.TrimSpace(token)
		if token == "" {
			continue
		}
		if err := skipped.add(token); err != nil {
			return SkippedAPIs{}, err
		}
	}
	return skipped, nil
}

func (s SkippedAPIs) add(token string) error {
	parts := strings.Split(token, "/")
	if slices.Contains(parts, "") {
		return fmt.Errorf("skipped API %q has an empty part; want group, group/version, v1/kind or group/version/kind, kinds separated by commas",
			token)
	}
	switch {
	case len(parts) == 1:
		s.groups.Insert(token)
	case len(parts) == 2 && strings.HasPrefix(token, "v1"):
		return s.addKinds(token, schema.GroupVersion{Version: parts[0]}, parts[1])
	case len(parts) == 2:
		s.versions.Insert(schema.GroupVersion{Group: parts[0], Version: parts[1]})
	case len(parts) == 3:
		return s.addKinds(token, schema.GroupVersion{Group: parts[0], Version: parts[1]}, parts[2])
	default:
		return fmt.Errorf("skipped API %q has more than two '/'; want group, group/version, v1/kind or group/version/kind, kinds separated by commas", token)
	}
	return nil
}

func (s SkippedAPIs) addKinds(token string, version schema.GroupVersion, kinds string) error {
	for kind := range strings.SplitSeq(kinds, ",") {
		kind = strings.ToLower(strings.TrimSpace(kind))
		if kind == "" {
			return fmt.Errorf("skipped API %q names an empty kind", token)
		}
		s.kinds.Insert(version.WithKind(kind))
	}
	return nil
}

// Skips reports whether objects of the given kind are never templates.
func (s SkippedAPIs) Skips(gvk schema.GroupVersionKind) bool {
	return s.groups.Has(gvk.Group) ||
		s.versions.Has(gvk.GroupVersion()) ||
		s.kinds.Has(gvk.GroupVersion().WithKind(strings.ToLower(gvk.Kind)))
}

// IsWatchable reports whether templates can be watched through a served resource. The resource must not
// be skipped, must not be a subresource, and must support the verbs list, watch and delete. The caller
// passes only resources of each group's preferred version, because other versions contain the same
// objects.
func (s SkippedAPIs) IsWatchable(version schema.GroupVersion, resource metav1.APIResource) bool {
	if strings.Contains(resource.Name, "/") || s.Skips(version.WithKind(resource.Kind)) {
		return false
	}
	for _, verb := range []string{"delete", "list", "watch"} {
		if !slices.Contains(resource.Verbs, verb) {
			return false
		}
	}
	return true
}

// SkippedNamespaces identifies the namespaces whose objects are never templates. The zero value skips
// only the control plane's own namespaces.
type SkippedNamespaces struct {
	patterns []*regexp.Regexp
}

// ParseSkippedNamespaces compiles the values of --skipped-propagating-namespaces. Each value is a
// regular expression that must match a whole namespace name.
func ParseSkippedNamespaces(expressions []string) (SkippedNamespaces, error) {
	skipped := SkippedNamespaces{}
	for _, expression := range expressions {
		pattern, err := regexp.Compile("^(?:" + expression + ")$")
		if err != nil {
			return SkippedNamespaces{}, fmt.Errorf("compiling skipped namespace %q: %w", expression, err)
		}
		skipped.patterns = append(skipped.patterns, pattern)
	}
	return skipped, nil
}

// Skips reports whether the object is never a template because of its namespace. A cluster-scoped
// object's namespace is empty, and an expression may match the empty namespace. For a Namespace object,
// Skips also checks the object's name, because a policy that selects all Namespaces must not propagate
// the control plane's Namespaces.
func (s SkippedNamespaces) Skips(gvk schema.GroupVersionKind, namespace, name string) bool {
	if s.skipsName(namespace) {
		return true
	}
	if gvk.Group != "" {
		return false
	}
	switch gvk.Kind {
	case "Namespace":
		return s.skipsName(name)
	case "ConfigMap":
		// Every API server writes its own ConfigMap with this name. This check is needed if no flag
		// skips the namespaces kube-.*.
		return namespace == "kube-system" && name == "extension-apiserver-authentication"
	}
	return false
}

func (s SkippedNamespaces) skipsName(namespace string) bool {
	if IsReservedNamespace(namespace) {
		return true
	}
	return slices.ContainsFunc(s.patterns, func(p *regexp.Regexp) bool { return p.MatchString(namespace) })
}

// IsReservedNamespace reports whether the namespace belongs to the control plane. Objects in such a
// namespace are never propagated, regardless of the flags.
func IsReservedNamespace(namespace string) bool {
	return namespace == clusterv1alpha1.NamespaceKarmadaSystem || namespace == clusterv1alpha1.NamespaceKarmadaCluster ||
		strings.HasPrefix(namespace, clusterv1alpha1.ExecutionNamespacePrefix)
}

// IsExcludedFromPropagation reports whether a Namespace's label excludes it from propagation to
// clusters. The label's value is compared case-insensitively.
func IsExcludedFromPropagation(namespace metav1.Object) bool {
	return strings.EqualFold(namespace.GetLabels()[policyv1alpha1.NamespaceSkipAutoPropagationLabel], "true")
}
