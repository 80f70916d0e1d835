package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/spelling"
)

// NearMiss is a policy that selects a template's kind, but not the template itself.
type NearMiss struct {
	Policy Object
	// Differences explain why the policy's closest selector does not select the template. There is at
	// least one.
	Differences []string
	distance    int
}

// String describes the policy and its differences in a message to users.
func (n NearMiss) String() string {
	return fmt.Sprintf("%s comes nearest: %s", DisplayName(n.Policy), strings.Join(n.Differences, "; "))
}

// DisplayName returns the policy's kind and name for messages to users.
func DisplayName(policy Object) string { return ClaimOf(policy).DisplayName() }

// Weights of differences, whose sum is a selector's distance. A selector for all namespaces with a
// distance of farDistance or more is not a near miss, because it excludes most objects on purpose.
const (
	unservedDistance    = 1
	versionDistance     = 1
	caseDistance        = 1
	terminatingDistance = 1
	groupDistance       = 2
	similarDistance     = 2
	farDistance         = 10
)

// IsServed reports whether the control plane serves a kind. If the function is nil, every kind counts
// as served.
type IsServed func(schema.GroupVersionKind) bool

// NearestMiss returns the candidate that is closest to selecting the template, regardless of the order
// of candidates. It returns false if a candidate selects the template, or if no candidate is close. A
// candidate that selects the template's kind is close if it is limited to the template's namespace, or
// if its distance is less than farDistance.
func NearestMiss(template *unstructured.Unstructured, candidates []Object) (NearMiss, bool) {
	return nearestMiss(template, candidates, nil)
}

func nearestMiss(template *unstructured.Unstructured, candidates []Object, isServed IsServed) (NearMiss, bool) {
	var nearest NearMiss
	for _, candidate := range candidates {
		if !inScope(candidate, template) {
			continue
		}
		selectors := candidate.PropagationSpec().ResourceSelectors
		for i := range selectors {
			miss, ok := compareSelector(candidate, &selectors[i], template, isServed)
			if !ok {
				continue
			}
			if len(miss.Differences) == 0 {
				return NearMiss{}, false
			}
			if nearest.Policy == nil || miss.Compare(&nearest) < 0 {
				nearest = miss
			}
		}
	}
	return nearest, nearest.Policy != nil
}

// NearMisses returns up to limit candidates that are close to selecting the template (see NearestMiss),
// closest first, regardless of the order of candidates. It returns nil if a candidate selects the
// template. A selector for a kind that is not served is a mistake, so it is closer than a selector for
// another name.
func NearMisses(template *unstructured.Unstructured, candidates []Object, isServed IsServed, limit int) []NearMiss {
	var misses []NearMiss
	for _, candidate := range candidates {
		if !isTerminating(candidate) && inScope(candidate, template) && Selects(candidate, template) {
			return nil
		}
		if miss, ok := nearestMiss(template, []Object{candidate}, isServed); ok {
			misses = append(misses, miss)
		}
	}
	slices.SortFunc(misses, func(a, b NearMiss) int { return a.Compare(&b) })
	return misses[:min(len(misses), limit)]
}

// Compare returns a negative number if n is closer than other.
func (n *NearMiss) Compare(other *NearMiss) int {
	if n.distance == other.distance && IsCluster(n.Policy) != IsCluster(other.Policy) {
		if IsCluster(n.Policy) {
			return 1
		}
		return -1
	}
	return cmp.Or(cmp.Compare(n.distance, other.distance), cmp.Compare(n.Policy.GetName(), other.Policy.GetName()))
}

// SelectorDifferences returns the differences between the closest selector and the template. It returns
// nil if a selector selects the template, or if no selector is close.
func SelectorDifferences(template *unstructured.Unstructured, selectors []policyv1alpha1.ResourceSelector, isServed IsServed) []string {
	nearest := NearMiss{distance: farDistance}
	for i := range selectors {
		miss, ok := compareWithTemplate(&selectors[i], template, isServed)
		if ok && miss.distance < nearest.distance {
			nearest = miss
		}
	}
	return nearest.Differences
}

// compareSelector returns the differences between the policy's selector and the template. It returns
// false if the selector is meant for other kinds or namespaces.
func compareSelector(
	policy Object, selector *policyv1alpha1.ResourceSelector, template *unstructured.Unstructured, isServed IsServed,
) (NearMiss, bool) {
	miss, ok := compareWithTemplate(selector, template, isServed)
	if !ok {
		return NearMiss{}, false
	}
	miss.Policy = policy
	if isTerminating(policy) {
		miss.add(terminatingDistance, "it is being deleted")
	}
	limitedToNamespace := !IsCluster(policy) || selector.Namespace != ""
	return miss, limitedToNamespace || miss.distance < farDistance
}

// compareWithTemplate returns the differences between the selector and the template, without a policy.
// It returns false if the selector is meant for other kinds or namespaces.
func compareWithTemplate(
	selector *policyv1alpha1.ResourceSelector, template *unstructured.Unstructured, isServed IsServed,
) (miss NearMiss, ok bool) {
	wanted := schema.FromAPIVersionAndKind(selector.APIVersion, selector.Kind)
	isMistake := isServed != nil && !isServed(wanted)
	isSameKind := strings.EqualFold(selector.Kind, template.GetKind())
	isOtherGroup := wanted.Group != template.GroupVersionKind().Group
	if isMistake && spelling.Similar(wanted.Group, template.GroupVersionKind().Group) {
		isOtherGroup = false
	}
	switch {
	case selector.Namespace != "" && selector.Namespace != template.GetNamespace():
		return NearMiss{}, false
	case isMistake && (isSameKind || isSimilarName(strings.ToLower(selector.Kind), strings.ToLower(template.GetKind())) && !isOtherGroup):
		miss.add(unservedDistance, "selects %s %s, which the control plane does not serve, instead of %s %s",
			selector.APIVersion, selector.Kind, template.GetAPIVersion(), template.GetKind())
	case isSameKind:
		miss.compareVersion(selector, template)
	default:
		return NearMiss{}, false
	}
	miss.compareObject(selector, template)
	if isOtherGroup && len(miss.Differences) > 1 {
		return NearMiss{}, false // a different kind with the same name in another group
	}
	return miss, true
}

func (n *NearMiss) add(distance int, format string, args ...any) {
	n.distance += distance
	n.Differences = append(n.Differences, fmt.Sprintf(format, args...))
}

func (n *NearMiss) compareVersion(selector *policyv1alpha1.ResourceSelector, template *unstructured.Unstructured) {
	if selector.APIVersion != template.GetAPIVersion() {
		distance := groupDistance
		if wanted, err := schema.ParseGroupVersion(selector.APIVersion); err == nil && wanted.Group == template.GroupVersionKind().Group {
			distance = versionDistance
		}
		n.add(distance, "selects %s, the server prefers %s", selector.APIVersion, template.GetAPIVersion())
	}
	if selector.Kind != template.GetKind() {
		n.add(caseDistance, "selects kind %q, not %q", selector.Kind, template.GetKind())
	}
}

// compareObject compares the template's name, or its labels if the selector has no name, and adds the
// differences.
func (n *NearMiss) compareObject(selector *policyv1alpha1.ResourceSelector, template *unstructured.Unstructured) {
	name := template.GetName()
	switch {
	case selector.Name == name:
	case selector.Name != "":
		distance := farDistance + similarDistance
		if isSimilarName(selector.Name, name) {
			distance = similarDistance
		}
		n.add(distance, "selects name %q, not %q", selector.Name, name)
	case selector.LabelSelector != nil:
		n.compareLabels(selector.LabelSelector, template.GetLabels())
	}
}

// isSimilarName reports whether one of the object names may be a misspelling or variant of the other.
func isSimilarName(a, b string) bool {
	const enough = 3
	return spelling.Similar(a, b) ||
		min(len(a), len(b)) >= enough && (strings.Contains(a, b) || strings.Contains(b, a))
}

func (n *NearMiss) compareLabels(selector *metav1.LabelSelector, has labels.Set) {
	compiled, ok := compileSelector(selector)
	if !ok {
		n.add(similarDistance, "its labelSelector is not valid")
		return
	}
	requirements, _ := compiled.Requirements()
	for i := range requirements {
		requirement := &requirements[i]
		if requirement.Matches(has) {
			continue
		}
		key := requirement.Key()
		if value, found := has[key]; found {
			n.add(similarDistance, "requires %s, has %s=%s", requirement, key, value)
			continue
		}
		n.add(farDistance, "requires %s, has no label %s", requirement, key)
	}
}

// maxCandidates is the maximum number of policies that NearestMiss compares in each scope.
const maxCandidates = 256

// kindKey is the index key of a scope's policies that select a kind. It ignores the API version and the
// letter case of the kind.
type kindKey struct{ policyNamespace, kind string }

func kindKeys(policy Object) []kindKey {
	var keys []kindKey
	for _, selector := range policy.PropagationSpec().ResourceSelectors {
		key := kindKey{policy.GetNamespace(), strings.ToLower(selector.Kind)}
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// NearestMiss returns the result of the function NearestMiss for the indexed policies. If more than
// maxCandidates policies of a scope select the kind, it compares only those whose names are
// alphabetically closest to the template's name.
func (x *Index) NearestMiss(template *unstructured.Unstructured) (NearMiss, bool) {
	kind := strings.ToLower(template.GetKind())
	candidates := x.candidatesNear(kindKey{"", kind}, template.GetName())
	if namespace := template.GetNamespace(); namespace != "" {
		candidates = slices.Concat(x.candidatesNear(kindKey{namespace, kind}, template.GetName()), candidates)
	}
	return NearestMiss(template, candidates)
}

func (x *Index) candidatesNear(key kindKey, around string) []Object {
	list := x.byKind[key]
	if len(list) <= maxCandidates {
		return list
	}
	middle, _ := slices.BinarySearchFunc(list, around, compareName)
	start := min(max(0, middle-maxCandidates/2), len(list)-maxCandidates)
	return list[start : start+maxCandidates]
}

func compareName(policy Object, name string) int { return cmp.Compare(policy.GetName(), name) }

func (x *Index) addToKinds(policy Object) {
	for _, key := range kindKeys(policy) {
		i, _ := slices.BinarySearchFunc(x.byKind[key], policy.GetName(), compareName)
		x.byKind[key] = slices.Insert(x.byKind[key], i, policy)
	}
}

func (x *Index) removeFromKinds(policy Object) {
	for _, key := range kindKeys(policy) {
		list := x.byKind[key]
		i, found := slices.BinarySearchFunc(list, policy.GetName(), compareName)
		if !found {
			continue
		}
		if list = slices.Delete(list, i, i+1); len(list) == 0 {
			delete(x.byKind, key)
			continue
		}
		x.byKind[key] = list
	}
}
