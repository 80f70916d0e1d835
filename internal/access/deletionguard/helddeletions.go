package deletionguard

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/guard"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
)

// ErrDeletionHeld reports that a deletion waits for a confirmation or an explanation.
var ErrDeletionHeld = errors.New("the deletion of the Work waits for a confirmation or an explanation")

// heldConditionDelay is how long a deletion may be held without a condition. A template and its binding
// are deleted at about the same time, so the deletion of the template usually explains the deletion
// of the Work within this delay.
const heldConditionDelay = 5 * time.Second

// ReportHeld writes a condition and an event that say why a deletion is held and what the user can
// do. It returns an error so that the caller retries.
func (g *Guard) ReportHeld(cluster *clusterv1alpha1.Cluster, karmadaWork *workv1alpha1.Work, decision Decision) error {
	heldErr := fmt.Errorf("cluster(%s): %w", cluster.Name, ErrDeletionHeld)
	g.needDecision(client.ObjectKeyFromObject(karmadaWork))
	if !isReportedOnCluster(decision.Reason) && g.now().Sub(karmadaWork.DeletionTimestamp.Time) < heldConditionDelay {
		return heldErr
	}
	condition := newHeldCondition(cluster, karmadaWork, decision)
	g.held.add(cluster.Name, client.ObjectKeyFromObject(karmadaWork), condition.Reason)
	current := g.reports.Latest(karmadaWork)
	present := conditions.Get(current.Status.Conditions, condition.Type)
	if present != nil && present.Status == condition.Status && present.Reason == condition.Reason && present.Message == condition.Message {
		// This condition is already written, maybe by an earlier process.
		return heldErr
	}
	condition.LastTransitionTime = metav1.NewTime(g.now())
	g.reports.Submit(karmadaWork, loop.ConditionPart(condition.Type), loop.StatusSettled, func(status *workv1alpha1.WorkStatus) {
		conditions.Set(&status.Conditions, condition)
	})
	g.recordHeldEvent(cluster, karmadaWork, decision, condition)
	return heldErr
}

// isReportedOnCluster reports whether one event on the Cluster covers all deletions that are held
// for this reason. For any other reason, each Work gets an event.
func isReportedOnCluster(reason guard.Reason) bool {
	switch reason {
	case guard.ReasonClusterChanged, guard.ReasonBudgetExceeded, guard.ReasonRestoreUnconfirmed:
		return true
	default:
		return false
	}
}

func newHeldCondition(cluster *clusterv1alpha1.Cluster, karmadaWork *workv1alpha1.Work, decision Decision) metav1.Condition {
	if decision.Reason == guard.ReasonRestoreUnconfirmed {
		return work.RestoreNotConfirmedCondition(karmadaWork, decision.epoch.HoldMessage())
	}
	return work.DeletionHeldCondition(karmadaWork, cluster.Name, decision.Reason)
}

// recordHeldEvent records an event about a held deletion, on the Cluster or on the Work.
func (g *Guard) recordHeldEvent(cluster *clusterv1alpha1.Cluster, karmadaWork *workv1alpha1.Work, decision Decision, condition metav1.Condition) {
	if !isReportedOnCluster(decision.Reason) {
		g.events.RecordFailure(karmadaWork, workv1alpha1.EventReasonDeletionHeld, errors.New(condition.Message))
		return
	}
	if g.held.swapAnnouncedReason(cluster.Name, condition.Reason) != condition.Reason {
		g.events.RecordFailure(cluster, condition.Reason, errors.New(condition.Message))
	}
}

// heldDeletions tracks the held deletions and sets the metric that counts them.
type heldDeletions struct {
	gauge *prometheus.GaugeVec

	mu    sync.Mutex
	works map[types.NamespacedName]heldWork
	// announcedReasons holds, by cluster, the reason of the last event about held deletions in the
	// cluster.
	announcedReasons map[string]string
}

type heldWork struct{ cluster, reason string }

func newHeldDeletions(registry prometheus.Registerer) (*heldDeletions, error) {
	h := &heldDeletions{works: map[types.NamespacedName]heldWork{}, announcedReasons: map[string]string{}, gauge: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "karmada_work_deletions_held", Help: "Number of Works whose deletion waits for a confirmation or an explanation.",
	}, []string{"member_cluster", "reason"})}
	err := loop.RegisterMetric(registry, &h.gauge)
	// After the restore of a control plane, the process creates another Guard. The new Guard gets
	// the registered metric of the previous Guard, but has no held deletions yet.
	h.gauge.Reset()
	return h, err
}

func (h *heldDeletions) add(cluster string, key types.NamespacedName, reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	wanted := heldWork{cluster: cluster, reason: reason}
	before, ok := h.works[key]
	if before == wanted {
		return
	}
	if ok {
		h.gauge.WithLabelValues(before.cluster, before.reason).Dec()
	}
	h.works[key] = wanted
	h.gauge.WithLabelValues(cluster, reason).Inc()
}

func (h *heldDeletions) remove(key types.NamespacedName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if before, ok := h.works[key]; ok {
		h.gauge.WithLabelValues(before.cluster, before.reason).Dec()
		delete(h.works, key)
	}
}

func (h *heldDeletions) removeCluster(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, work := range h.works {
		if work.cluster == name {
			delete(h.works, key)
		}
	}
	delete(h.announcedReasons, name)
	h.gauge.DeletePartialMatch(prometheus.Labels{"member_cluster": name})
}

// swapAnnouncedReason stores the reason of an event about the held deletions of a cluster, and
// returns the reason of the previous event.
func (h *heldDeletions) swapAnnouncedReason(cluster, reason string) (previous string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	previous = h.announcedReasons[cluster]
	h.announcedReasons[cluster] = reason
	return previous
}
