package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/conditions"
)

// DeletingCluster contains a Cluster in deletion and the objects that may block its deletion.
type DeletingCluster struct {
	Cluster *clusterv1alpha1.Cluster
	// ExecutionNamespace is the Cluster's execution namespace, or nil if there is none.
	ExecutionNamespace *corev1.Namespace
	// Works are the first Works in the execution namespace. WorkCount is the number of all Works there.
	Works     []workv1alpha1.Work
	WorkCount int
	// Warnings are the Works' events of type Warning.
	Warnings []corev1.Event
	// Bindings are the first bindings that list the Cluster in spec.clusters. MoreBindings is true if
	// there are more.
	Bindings     []binding.Object
	MoreBindings bool
}

// worksDeletingMessage is the message for Works in deletion whose status does not show what blocks
// them.
const worksDeletingMessage = "their objects are being deleted in the cluster, see the events of the Works"

// maxQuoteBytes limits the text that a message quotes from a condition or an event, in bytes.
const maxQuoteBytes = 300

// Blockers returns one line for each object that blocks the Cluster's deletion, with the reason that
// the object itself shows. The result is empty if no object blocks the deletion.
func (d DeletingCluster) Blockers() []string {
	holders := d.namespaceBlockers()
	if d.WorkCount > 0 && len(d.Works) > 0 {
		holders = append(holders, d.worksBlocker())
	}
	for _, bound := range d.Bindings {
		holders = append(holders, fmt.Sprintf("it is still in spec.clusters of %s: %s", describeBinding(bound), bindingReason(bound)))
	}
	if d.MoreBindings {
		holders = append(holders, "it is still in spec.clusters of more bindings")
	}
	for _, finalizer := range d.Cluster.Finalizers {
		if finalizer != clusterv1alpha1.ClusterControllerFinalizer {
			holders = append(holders, fmt.Sprintf("finalizer %s of the Cluster: the controller that set it must remove it", finalizer))
		}
	}
	if len(holders) == 0 {
		return d.conditionReason()
	}
	return holders
}

// conditionReason returns the reason that the Cluster's conditions show. The conditions are useful
// because the control plane may read objects that the caller may not read.
func (d DeletingCluster) conditionReason() []string {
	stored := d.Cluster.Status.Conditions
	if leaving := conditions.Get(stored, clusterv1alpha1.ClusterConditionLeaving); leaving != nil && leaving.Status == metav1.ConditionTrue {
		return []string{"the Cluster says " + describeCondition(*leaving)}
	}
	if ready := conditions.Get(stored, clusterv1alpha1.ClusterConditionReady); ready != nil && ready.Status != metav1.ConditionTrue {
		return []string{"the Cluster says " + describeCondition(*ready)}
	}
	return nil
}

// namespaceBlockers returns why the execution namespace blocks the deletion.
func (d DeletingCluster) namespaceBlockers() (holders []string) {
	if d.ExecutionNamespace == nil {
		return nil
	}
	if slices.Contains(d.Cluster.Finalizers, clusterv1alpha1.ClusterControllerFinalizer) && !d.isRemovalStarted() {
		holders = append(holders, fmt.Sprintf("Namespace %s is not being deleted: no controller has taken it up, see whether karmada-controller-manager is running and leads", d.ExecutionNamespace.Name))
	}
	for _, condition := range d.ExecutionNamespace.Status.Conditions {
		switch condition.Type {
		case corev1.NamespaceDeletionDiscoveryFailure, corev1.NamespaceDeletionGVParsingFailure, corev1.NamespaceDeletionContentFailure:
			if condition.Status == corev1.ConditionTrue {
				holders = append(holders, fmt.Sprintf("Namespace %s: %s", d.ExecutionNamespace.Name,
					withMessage(string(condition.Type), condition.Message)))
			}
		}
	}
	return holders
}

// isRemovalStarted reports whether the control plane has begun to remove the Cluster. In Pull mode,
// Works in deletion already show this, because the execution namespace is deleted only after the Works.
func (d DeletingCluster) isRemovalStarted() bool {
	if !d.ExecutionNamespace.DeletionTimestamp.IsZero() {
		return true
	}
	return d.Cluster.Spec.SyncMode == clusterv1alpha1.Pull &&
		slices.ContainsFunc(d.Works, func(work workv1alpha1.Work) bool { return work.DeletionTimestamp != nil })
}

// worksBlocker returns the number of remaining Works and one Work's reason. It prefers a Work whose own
// status shows a reason.
func (d DeletingCluster) worksBlocker() string {
	chosen, cause := d.Works[0], ""
	for _, work := range d.Works {
		if cause = d.workReason(work); cause != "" {
			chosen = work
			break
		}
	}
	remaining := "1 Work is left"
	if d.WorkCount > 1 {
		remaining = fmt.Sprintf("%d Works are left", d.WorkCount)
	}
	return fmt.Sprintf("%s, such as %s/%s: %s", remaining, chosen.Namespace, chosen.Name,
		cmp.Or(d.unreachableReason(), cause, d.pendingReason(chosen)))
}

// unreachableReason returns why the Works' objects cannot be deleted in the cluster.
func (d DeletingCluster) unreachableReason() string {
	ready := conditions.Get(d.Cluster.Status.Conditions, clusterv1alpha1.ClusterConditionReady)
	responding := conditions.Get(d.Cluster.Status.Conditions, clusterv1alpha1.ClusterConditionResponding)
	switch {
	case responding != nil && responding.Status != metav1.ConditionTrue:
		return "the cluster stopped responding a moment ago; their objects stay in it once it is not Ready"
	case ready == nil:
		return "no controller has collected its status yet"
	case ready.Status != metav1.ConditionTrue:
		return fmt.Sprintf("the cluster is not Ready (%s); their objects stay in it", ready.Message)
	default:
		return ""
	}
}

// workReason returns the reason that the Work itself shows: its deletion is held, the cluster rejects
// an object's deletion, or another owner has set a finalizer.
func (d DeletingCluster) workReason(work workv1alpha1.Work) string {
	if held := conditions.Get(work.Status.Conditions, workv1alpha1.WorkDeletionHeld); held != nil && held.Status == metav1.ConditionTrue {
		return describeCondition(*held)
	}
	if work.DeletionTimestamp == nil {
		return ""
	}
	latest, message := work.DeletionTimestamp.Time, ""
	for _, event := range d.Warnings {
		if event.InvolvedObject.UID == work.UID && !lastEventTime(event).Before(latest) {
			latest, message = lastEventTime(event), withMessage(event.Reason, event.Message)
		}
	}
	if message != "" {
		return message
	}
	for _, finalizer := range work.Finalizers {
		if finalizer != workv1alpha1.ExecutionFinalizer {
			return fmt.Sprintf("finalizer %s of the Work: the controller that set it must remove it", finalizer)
		}
	}
	return ""
}

// pendingReason returns the reason for a Work that shows none itself.
func (d DeletingCluster) pendingReason(work workv1alpha1.Work) string {
	if work.DeletionTimestamp == nil {
		return "the Work is not being deleted yet"
	}
	return worksDeletingMessage
}

// bindingReason returns why the binding still lists the Cluster, according to the binding's spec and
// conditions.
func bindingReason(bound binding.Object) string {
	spec := bound.BindingSpec()
	if bound.GetDeletionTimestamp() != nil {
		return "it is being deleted and has the finalizers " + strings.Join(bound.GetFinalizers(), ", ")
	}
	if spec.Suspension != nil && spec.Suspension.Scheduling != nil && *spec.Suspension.Scheduling {
		return "spec.suspension.scheduling is true; set it to false, or take the cluster out of spec.clusters"
	}
	scheduled := conditions.Get(bound.BindingStatus().Conditions, workv1alpha2.Scheduled)
	switch {
	case scheduled == nil && spec.SchedulerName != "":
		return fmt.Sprintf("it has no condition %s, its spec.schedulerName is %q", workv1alpha2.Scheduled, spec.SchedulerName)
	case scheduled == nil:
		return fmt.Sprintf("it has no condition %s", workv1alpha2.Scheduled)
	default:
		return describeCondition(*scheduled)
	}
}

func describeBinding(bound binding.Object) string {
	if binding.IsNamespaced(bound) {
		return workv1alpha2.ResourceKindResourceBinding + " " + bound.GetNamespace() + "/" + bound.GetName()
	}
	return workv1alpha2.ResourceKindClusterResourceBinding + " " + bound.GetName()
}

func describeCondition(condition metav1.Condition) string {
	return withMessage(fmt.Sprintf("%s=%s (%s)", condition.Type, condition.Status, condition.Reason), condition.Message)
}

func withMessage(reason, message string) string {
	return strings.TrimSuffix(reason+": "+conditions.Truncate(strings.TrimSpace(message), maxQuoteBytes), ": ")
}

// lastEventTime returns the event's latest time. The two event APIs use different fields.
func lastEventTime(event corev1.Event) time.Time {
	seen := event.LastTimestamp.Time
	if event.EventTime.After(seen) {
		seen = event.EventTime.Time
	}
	if event.Series != nil && event.Series.LastObservedTime.After(seen) {
		seen = event.Series.LastObservedTime.Time
	}
	return seen
}
