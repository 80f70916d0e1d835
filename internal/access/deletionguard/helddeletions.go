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
	"karmada.io/karmada/internal/domain/pacing"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/loop/statuswriter"
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
	g.counts.removeWork(client.ObjectKeyFromObject(karmadaWork))
	mass := isMassDeletion(decision.Reason)
	if !mass && decision.Reason != guard.ReasonRestoreUnconfirmed && g.now().Sub(karmadaWork.DeletionTimestamp.Time) < heldConditionDelay {
		return heldErr
	}
	condition := newHeldCondition(cluster, karmadaWork, decision)
	g.held.add(cluster.Name, client.ObjectKeyFromObject(karmadaWork), condition.Reason)
	current := g.reports.Latest(karmadaWork)
	present := conditions.Get(current.Status.Conditions, condition.Type)
	if mass && work.IsHeldAsMassDeletion(current) {
		// The condition that was set first stays, even if its numbers of objects are outdated.
		condition = *present
	}
	if present != nil && present.Status == condition.Status && present.Reason == condition.Reason && present.Message == condition.Message {
		// This condition is already written, maybe by an earlier process.
		return heldErr
	}
	condition.LastTransitionTime = metav1.NewTime(g.now())
	g.reports.Submit(karmadaWork, statuswriter.ConditionPart(condition.Type), pacing.Settled, func(status *workv1alpha1.WorkStatus) {
		conditions.Set(&status.Conditions, condition)
	})
	g.recordHeldEvent(cluster, karmadaWork, decision, condition)
	return heldErr
}

// isMassDeletion reports whether a deletion is held because there are too many deletions.
func isMassDeletion(reason guard.Reason) bool {
	return reason == guard.ReasonMassDeletion || reason == guard.ReasonClusterChanged || reason == guard.ReasonFleetDeletion
}

func newHeldCondition(cluster *clusterv1alpha1.Cluster, karmadaWork *workv1alpha1.Work, decision Decision) metav1.Condition {
	if decision.Reason == guard.ReasonRestoreUnconfirmed {
		return work.RestoreNotConfirmedCondition(karmadaWork, decision.epoch.HoldMessage())
	}
	return work.DeletionHeldCondition(karmadaWork, cluster.Name, decision.Reason)
}

// recordHeldEvent records an event about a held deletion. For a mass deletion or a restore, one
// event on the Cluster covers all held deletions. For any other reason the event is on the Work.
func (g *Guard) recordHeldEvent(cluster *clusterv1alpha1.Cluster, karmadaWork *workv1alpha1.Work, decision Decision, condition metav1.Condition) {
	switch decision.Reason {
	case guard.ReasonMassDeletion, guard.ReasonClusterChanged, guard.ReasonFleetDeletion, guard.ReasonRestoreUnconfirmed:
		if g.counts.swapAnnouncedReason(cluster.Name, condition.Reason) == condition.Reason {
			return
		}
		message := condition.Message
		if decision.Reason == guard.ReasonFleetDeletion {
			message = work.FleetDeletionMessage(decision.losses.summary())
		}
		g.events.RecordFailure(cluster, condition.Reason, errors.New(message))
	default:
		g.events.RecordFailure(karmadaWork, workv1alpha1.EventReasonDeletionHeld, errors.New(condition.Message))
	}
}

// maxListedClusters is the maximum number of clusters that an event names.
const maxListedClusters = 10

// summary returns a text that lists the clusters with their numbers of unexplained deletions.
func (c clusterLosses) summary() string {
	total, text := 0, ""
	for i, loss := range c {
		total += loss.unexplained
		if i < maxListedClusters {
			text += fmt.Sprintf(", %s %d", loss.cluster, loss.unexplained)
		}
	}
	if left := len(c) - maxListedClusters; left > 0 {
		text += fmt.Sprintf(" and %d more clusters", left)
	}
	return fmt.Sprintf("%d Works in %d clusters (%s)", total, len(c), text[min(2, len(text)):])
}

// heldDeletions tracks the held deletions and sets the metric that counts them.
type heldDeletions struct {
	gauge *prometheus.GaugeVec

	mu    sync.Mutex
	works map[types.NamespacedName]heldWork
}

type heldWork struct{ cluster, reason string }

func newHeldDeletions(registry prometheus.Registerer) (*heldDeletions, error) {
	h := &heldDeletions{works: map[types.NamespacedName]heldWork{}, gauge: prometheus.NewGaugeVec(prometheus.GaugeOpts{
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
	h.gauge.DeletePartialMatch(prometheus.Labels{"member_cluster": name})
}
