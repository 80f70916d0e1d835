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

// Miss is a policy that selects the kind of a template, but not the template.
type Miss struct {
	Policy Object
	// Differences say why the selector that comes nearest does not select the
	// template. There is at least one.
	Differences []string
	distance    int
}

// String names the policy and why it does not select the template.
func (m Miss) String() string {
	return fmt.Sprintf("%s comes nearest: %s", Title(m.Policy), strings.Join(m.Differences, "; "))
}

// Title names a policy for people, with its kind.
func Title(policy Object) string { return ClaimOf(policy).Title() }

// The weights of differences. From far on, a difference does not look like a
// mistake: the author of one selector for the whole control plane means
// these objects not to be selected.
const (
	differsInVersion = 1
	differsInCase    = 1
	isTerminated     = 1
	differsInGroup   = 2
	differsSlightly  = 2
	far              = 10
)

// NearestMiss returns the candidate that comes nearest to selecting the template.
// It returns false when a candidate selects it, or when none was written for such
// objects: one of the template's kind counts if it is limited to the template's
// namespace; one for all namespaces only if it nearly selects the template. The
// order of the candidates is irrelevant.
func NearestMiss(template *unstructured.Unstructured, candidates []Object) (Miss, bool) {
	var nearest Miss
	for _, candidate := range candidates {
		if !inScope(candidate, template) {
			continue
		}
		selectors := candidate.PropagationSpec().ResourceSelectors
		for i := range selectors {
			miss, ok := compareSelector(candidate, &selectors[i], template)
			if !ok {
				continue
			}
			if len(miss.Differences) == 0 {
				return Miss{}, false
			}
			if nearest.Policy == nil || miss.Compare(&nearest) < 0 {
				nearest = miss
			}
		}
	}
	return nearest, nearest.Policy != nil
}

// Compare is negative when m is nearer than other.
func (m *Miss) Compare(other *Miss) int {
	if m.distance == other.distance && IsCluster(m.Policy) != IsCluster(other.Policy) {
		if IsCluster(m.Policy) {
			return 1
		}
		return -1
	}
	return cmp.Or(cmp.Compare(m.distance, other.distance), cmp.Compare(m.Policy.GetName(), other.Policy.GetName()))
}

// compareSelector returns false when the selector is not about such objects.
func compareSelector(policy Object, selector *policyv1alpha1.ResourceSelector, template *unstructured.Unstructured) (Miss, bool) {
	if !strings.EqualFold(selector.Kind, template.GetKind()) ||
		selector.Namespace != "" && selector.Namespace != template.GetNamespace() {
		return Miss{}, false
	}
	miss := Miss{Policy: policy}
	miss.compareVersion(selector, template)
	otherGroup := miss.distance == differsInGroup
	miss.compareObject(selector, template)
	if isTerminating(policy) {
		miss.add(isTerminated, "it is being deleted")
	}
	if otherGroup && len(miss.Differences) > 1 {
		return Miss{}, false // a kind of another group that has the same name
	}
	confined := !IsCluster(policy) || selector.Namespace != ""
	return miss, confined || miss.distance < far
}

func (m *Miss) add(distance int, format string, args ...any) {
	m.distance += distance
	m.Differences = append(m.Differences, fmt.Sprintf(format, args...))
}

func (m *Miss) compareVersion(selector *policyv1alpha1.ResourceSelector, template *unstructured.Unstructured) {
	if selector.APIVersion != template.GetAPIVersion() {
		distance := differsInGroup
		if wanted, err := schema.ParseGroupVersion(selector.APIVersion); err == nil && wanted.Group == template.GroupVersionKind().Group {
			distance = differsInVersion
		}
		m.add(distance, "selects %s, the server prefers %s", selector.APIVersion, template.GetAPIVersion())
	}
	if selector.Kind != template.GetKind() {
		m.add(differsInCase, "selects kind %q, not %q", selector.Kind, template.GetKind())
	}
}

// compareObject looks at the name, or else at the labels.
func (m *Miss) compareObject(selector *policyv1alpha1.ResourceSelector, template *unstructured.Unstructured) {
	name := template.GetName()
	switch {
	case selector.Name == name:
	case selector.Name != "":
		distance := far + differsSlightly
		if resembles(selector.Name, name) {
			distance = differsSlightly
		}
		m.add(distance, "selects name %q, not %q", selector.Name, name)
	case selector.LabelSelector != nil:
		m.compareLabels(selector.LabelSelector, template.GetLabels())
	}
}

// resembles reports whether one of two names of objects may have been written in
// place of the other.
func resembles(a, b string) bool {
	const enough = 3
	return spelling.Similar(a, b) ||
		min(len(a), len(b)) >= enough && (strings.Contains(a, b) || strings.Contains(b, a))
}

func (m *Miss) compareLabels(selector *metav1.LabelSelector, has labels.Set) {
	compiled, ok := compileSelector(selector)
	if !ok {
		m.add(differsSlightly, "its labelSelector is not valid")
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
			m.add(differsSlightly, "wants %s, has %s=%s", requirement, key, value)
			continue
		}
		m.add(far, "wants %s, has no label %s", requirement, key)
	}
}

// maxCandidates bounds how many policies of each scope NearestMiss looks at.
const maxCandidates = 256

// kindSlot is the place of the policies of one scope that select a kind, in any
// version and whatever its case.
type kindSlot struct{ policyNamespace, kind string }

func kindSlotsOf(policy Object) []kindSlot {
	var slots []kindSlot
	for _, selector := range policy.PropagationSpec().ResourceSelectors {
		at := kindSlot{policy.GetNamespace(), strings.ToLower(selector.Kind)}
		if !slices.Contains(slots, at) {
			slots = append(slots, at)
		}
	}
	return slots
}

// NearestMiss answers as the function NearestMiss does for the policies of the
// index. Of many policies for one kind it looks at those whose names are next to
// that of the template in the alphabet.
func (x *Index) NearestMiss(template *unstructured.Unstructured) (Miss, bool) {
	kind := strings.ToLower(template.GetKind())
	candidates := x.window(kindSlot{"", kind}, template.GetName())
	if namespace := template.GetNamespace(); namespace != "" {
		candidates = slices.Concat(x.window(kindSlot{namespace, kind}, template.GetName()), candidates)
	}
	return NearestMiss(template, candidates)
}

func (x *Index) window(at kindSlot, around string) []Object {
	list := x.kinds[at]
	if len(list) <= maxCandidates {
		return list
	}
	middle, _ := slices.BinarySearchFunc(list, around, compareName)
	start := min(max(0, middle-maxCandidates/2), len(list)-maxCandidates)
	return list[start : start+maxCandidates]
}

func compareName(policy Object, name string) int { return cmp.Compare(policy.GetName(), name) }

func (x *Index) putKinds(policy Object) {
	for _, at := range kindSlotsOf(policy) {
		i, _ := slices.BinarySearchFunc(x.kinds[at], policy.GetName(), compareName)
		x.kinds[at] = slices.Insert(x.kinds[at], i, policy)
	}
}

func (x *Index) removeKinds(policy Object) {
	for _, at := range kindSlotsOf(policy) {
		list := x.kinds[at]
		i, found := slices.BinarySearchFunc(list, policy.GetName(), compareName)
		if !found {
			continue
		}
		if list = slices.Delete(list, i, i+1); len(list) == 0 {
			delete(x.kinds, at)
			continue
		}
		x.kinds[at] = list
	}
}
