package nodecapacity

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/toleration"
)

// matcher decides on which nodes a Pod may run.
type matcher struct {
	affinity    nodeaffinity.RequiredNodeAffinity
	isSelective bool
	tolerations []corev1.Toleration
	// labels are the keys of the labels to which the affinity refers, and usesName means that the
	// affinity also refers to the name of the node. Nodes that agree in all of them get the result
	// from known, because an evaluation takes longer than the comparison.
	labels   []string
	usesName bool
	known    map[string]bool
	key      []byte
}

func newMatcher(claim *workv1alpha2.NodeClaim) *matcher {
	if claim == nil {
		return &matcher{}
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: claim.NodeSelector}}
	if claim.HardNodeAffinity != nil {
		required := &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: claim.HardNodeAffinity}
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: required}
	}
	m := &matcher{
		affinity:    nodeaffinity.GetRequiredNodeAffinity(pod),
		isSelective: len(claim.NodeSelector) > 0 || claim.HardNodeAffinity != nil,
		tolerations: claim.Tolerations, known: map[string]bool{},
	}
	m.labels, m.usesName = referencesOf(claim)
	return m
}

// referencesOf returns the label keys to which the claim refers, and whether it refers to the node's
// name.
func referencesOf(claim *workv1alpha2.NodeClaim) (labels []string, usesName bool) {
	keys := map[string]struct{}{}
	for key := range claim.NodeSelector {
		keys[key] = struct{}{}
	}
	if claim.HardNodeAffinity != nil {
		for _, term := range claim.HardNodeAffinity.NodeSelectorTerms {
			usesName = usesName || len(term.MatchFields) > 0
			for _, expression := range term.MatchExpressions {
				keys[expression.Key] = struct{}{}
			}
		}
	}
	return slices.Sorted(maps.Keys(keys)), usesName
}

// matches reports whether the Pod may run on the node. An invalid affinity matches no node.
func (m *matcher) matches(node *Node) bool {
	for i := range node.taints {
		if toleration.FirstMatch(m.tolerations, &node.taints[i]) == nil {
			return false
		}
	}
	if !m.isSelective {
		return true
	}
	m.writeKey(node)
	result, ok := m.known[string(m.key)]
	if !ok {
		isMatch, err := m.affinity.Match(&node.identity)
		result = isMatch && err == nil
		m.known[string(m.key)] = result
	}
	return result
}

// writeKey sets key to a text that is equal for all nodes that the affinity cannot distinguish.
func (m *matcher) writeKey(node *Node) {
	m.key = m.key[:0]
	for _, label := range m.labels {
		if value, ok := node.identity.Labels[label]; ok {
			m.key = append(append(m.key, '='), value...)
		}
		m.key = append(m.key, 0)
	}
	if m.usesName {
		m.key = append(m.key, node.identity.Name...)
	}
}
