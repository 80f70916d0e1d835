package nodecapacity

import (
	"cmp"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"karmada.io/karmada/internal/domain/capacity"
)

// replicaSetKind is the kind of the objects between a Deployment, or a similar workload, and its Pods.
var replicaSetKind = schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}

// revisionAnnotation is the annotation in which a Deployment numbers its ReplicaSets.
const revisionAnnotation = "deployment.kubernetes.io/revision"

// Owner identifies a workload within its namespace.
type Owner struct {
	Kind schema.GroupKind
	Name string
}

// ControllerOf returns the owner that controls the object. ok is false if there is none.
func ControllerOf(object metav1.Object) (owner Owner, uid types.UID, ok bool) {
	reference := metav1.GetControllerOfNoCopy(object)
	if reference == nil {
		return Owner{}, "", false
	}
	kind := schema.FromAPIVersionAndKind(reference.APIVersion, reference.Kind).GroupKind()
	return Owner{Kind: kind, Name: reference.Name}, reference.UID, true
}

// UnschedulablePod is a Pod for which kube-scheduler finds no node.
type UnschedulablePod struct {
	// Owner is the controller of the Pod. It is empty if the Pod has no controller.
	Owner    Owner
	OwnerUID types.UID
	Labels   map[string]string
	// Since is the time of the last change of the condition PodScheduled.
	Since time.Time
}

// NewUnschedulablePod returns the relevant part of the Pod, or nil if kube-scheduler does not report the
// Pod as unschedulable.
func NewUnschedulablePod(pod *corev1.Pod) *UnschedulablePod {
	for _, condition := range pod.Status.Conditions {
		if condition.Type != corev1.PodScheduled || condition.Status != corev1.ConditionFalse ||
			condition.Reason != corev1.PodReasonUnschedulable {
			continue
		}
		p := &UnschedulablePod{Labels: pod.Labels, Since: condition.LastTransitionTime.Time}
		p.Owner, p.OwnerUID, _ = ControllerOf(pod)
		return p
	}
	return nil
}

// ReplicaSet is a ReplicaSet that a workload controls.
type ReplicaSet struct {
	UID types.UID
	// Revision is the ReplicaSet's revision in its workload, or 0.
	Revision int64
	Created  time.Time
}

// NewReplicaSet returns the relevant part of the ReplicaSet's metadata.
func NewReplicaSet(object metav1.Object) ReplicaSet {
	revision, err := strconv.ParseInt(object.GetAnnotations()[revisionAnnotation], 10, 64)
	if err != nil {
		revision = 0
	}
	return ReplicaSet{UID: object.GetUID(), Revision: revision, Created: object.GetCreationTimestamp().Time}
}

// Newest returns the ReplicaSet for the workload's current Pod template, or nil if there are no
// ReplicaSets.
func Newest(replicaSets []ReplicaSet) *ReplicaSet {
	var newest *ReplicaSet
	for i := range replicaSets {
		if newest == nil || compareAge(&replicaSets[i], newest) > 0 {
			newest = &replicaSets[i]
		}
	}
	return newest
}

func compareAge(a, b *ReplicaSet) int {
	return cmp.Or(cmp.Compare(a.Revision, b.Revision), a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID))
}

// PodFilter reports whether a Pod belongs to a workload.
type PodFilter func(*UnschedulablePod) bool

// OwnedPods returns a filter for the Pods that the workload controls, directly or through its newest
// ReplicaSet, which may be nil.
func OwnedPods(workload Owner, newest *ReplicaSet) PodFilter {
	return func(pod *UnschedulablePod) bool {
		isOfReplicaSet := newest != nil && pod.Owner.Kind == replicaSetKind && pod.OwnerUID == newest.UID
		return isOfReplicaSet || pod.Owner == workload
	}
}

// SelectedPods returns a filter for the Pods whose labels the selector matches.
func SelectedPods(selector labels.Selector) PodFilter {
	return func(pod *UnschedulablePod) bool { return selector.Matches(labels.Set(pod.Labels)) }
}

// CountUnschedulable returns how many Pods pass the filter and have been unschedulable for longer than
// the threshold.
func CountUnschedulable(pods []*UnschedulablePod, belongs PodFilter, threshold time.Duration, now time.Time) int32 {
	count := int64(0)
	for _, pod := range pods {
		if belongs(pod) && pod.Since.Add(threshold).Before(now) {
			count++
		}
	}
	return capacity.ClampToInt32(count)
}
