package tree

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/diagnose"
	"karmada.io/karmada/internal/domain/placement"
	"karmada.io/karmada/internal/domain/work"
)

// node is an object with the objects below it.
type node struct {
	// Cluster is the member that has the object. It is empty for objects of the control plane.
	Cluster   string  `json:"cluster,omitempty"`
	Kind      string  `json:"kind"`
	Namespace string  `json:"namespace,omitempty"`
	Name      string  `json:"name"`
	State     string  `json:"state,omitempty"`
	Children  []*node `json:"children,omitempty"`
}

// describe returns the kind, namespace and name, with the cluster in front for a member object.
func (n *node) describe() string {
	text := n.Kind + " " + strings.TrimPrefix(n.Namespace+"/"+n.Name, "/")
	if n.Cluster != "" {
		text = n.Cluster + ": " + text
	}
	return text
}

func sortNodes(nodes []*node) {
	slices.SortFunc(nodes, func(a, b *node) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

func newTemplateNode(kind schema.GroupVersionKind, key types.NamespacedName, template diagnose.Fact[*unstructured.Unstructured]) *node {
	root := &node{Kind: kind.Kind, Namespace: key.Namespace, Name: key.Name, State: "exists"}
	switch {
	case template.Err != nil:
		root.State = "unknown"
	case template.Value == nil:
		root.State = "does not exist"
	case template.Value.GetDeletionTimestamp() != nil:
		root.State = "is being deleted"
	}
	return root
}

func newBindingNode(bound binding.Object) *node {
	kind := workv1alpha2.ResourceKindClusterResourceBinding
	if binding.IsNamespaced(bound) {
		kind = workv1alpha2.ResourceKindResourceBinding
	}
	types := []string{workv1alpha2.Scheduled, workv1alpha2.FullyApplied}
	if bound.BindingSpec().Placement == nil {
		types = types[1:] // the scheduler does not handle a binding without a placement
	}
	state := describeConditions(bound, bound.BindingStatus().Conditions, types...)
	if placement.IsSchedulingSuspended(bound.BindingSpec()) {
		state = diagnose.ReasonSchedulingSuspended + ", " + state
	}
	return &node{Kind: kind, Namespace: bound.GetNamespace(), Name: bound.GetName(), State: state}
}

func newWorkNode(bound binding.Object, of *workv1alpha1.Work) *node {
	below := &node{
		Kind: workv1alpha1.ResourceKindWork, Namespace: of.Namespace, Name: of.Name,
		State: describeConditions(of, of.Status.Conditions, workv1alpha1.WorkApplied),
	}
	cluster, _ := work.ClusterOf(of.Namespace)
	if work.IsSuspended(of) || binding.IsDispatchSuspended(bound, cluster) {
		below.State = diagnose.ReasonDispatchSuspended + ", " + below.State
	}
	for ordinal := range of.Spec.Workload.Manifests {
		below.Children = append(below.Children, newMemberNode(cluster, of, ordinal))
	}
	return below
}

// newMemberNode returns the object of one manifest of a Work.
func newMemberNode(cluster string, of *workv1alpha1.Work, ordinal int) *node {
	manifest, err := work.DecodeManifest(of.Spec.Workload.Manifests[ordinal])
	if err != nil {
		return &node{Cluster: cluster, Kind: "manifest", Name: fmt.Sprint(ordinal), State: err.Error()}
	}
	object := &node{Cluster: cluster, Kind: manifest.GetKind(), Namespace: manifest.GetNamespace(), Name: manifest.GetName(), State: "not reported"}
	for i := range of.Status.ManifestStatuses {
		if status := &of.Status.ManifestStatuses[i]; status.Identifier.Ordinal == ordinal {
			object.State = cmp.Or(string(status.Health), "no health") + readyText(status.Status)
		}
	}
	return object
}

// describeConditions returns the conditions of an object with their status, such as "Applied", or
// "not Applied (AppliedFailed)".
func describeConditions(of metav1.Object, conditions []metav1.Condition, types ...string) string {
	var texts []string
	if of.GetDeletionTimestamp() != nil {
		texts = append(texts, "is being deleted")
	}
	for _, kind := range types {
		i := slices.IndexFunc(conditions, func(c metav1.Condition) bool { return c.Type == kind })
		switch {
		case i < 0:
			texts = append(texts, kind+" not reported")
		case conditions[i].Status == metav1.ConditionTrue:
			texts = append(texts, kind)
		default:
			texts = append(texts, fmt.Sprintf("not %s (%s)", kind, conditions[i].Reason))
		}
	}
	return strings.Join(texts, ", ")
}

// readyText returns the ready replicas in a reflected status, such as ", 2/4 ready". It returns an
// empty text for a status without replicas.
func readyText(status *runtime.RawExtension) string {
	var read struct {
		Replicas      *int32 `json:"replicas"`
		ReadyReplicas int32  `json:"readyReplicas"`
	}
	if status == nil || json.Unmarshal(status.Raw, &read) != nil || read.Replicas == nil {
		return ""
	}
	return fmt.Sprintf(", %d/%d ready", read.ReadyReplicas, *read.Replicas)
}
