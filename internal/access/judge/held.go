package judge

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
	"karmada.io/karmada/internal/access/observe"
	"karmada.io/karmada/internal/access/report"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/guard"
	"karmada.io/karmada/internal/domain/work"
)

// ErrHeld says that a deletion waits for a confirmation or an explanation.
var ErrHeld = errors.New("the deletion of the Work waits for a confirmation or an explanation")

// settling is for how long a deletion whose template was not found deleted may wait
// without a condition: a template and its binding go at about the same time.
const settling = 5 * time.Second

// Hold reports in a condition and an event why a deletion is held and how to go on, and
// returns an error to try again by.
func (j *Judge) Hold(cluster *clusterv1alpha1.Cluster, of *workv1alpha1.Work, ruling Ruling) error {
	held := fmt.Errorf("cluster(%s): %w", cluster.Name, ErrHeld)
	j.counts.forgetWork(client.ObjectKeyFromObject(of))
	mass := isMass(ruling.Reason)
	if !mass && ruling.Reason != guard.RestoreUnconfirmed && j.now().Sub(of.DeletionTimestamp.Time) < settling {
		return held
	}
	condition := conditionOf(cluster, of, ruling)
	j.held.add(cluster.Name, client.ObjectKeyFromObject(of), condition.Reason)
	current := j.reports.Current(of)
	present := conditions.Get(current.Status.Conditions, condition.Type)
	if mass && work.HeldAsMassDeletion(current) {
		// The first reason stays, whatever the counts are by now.
		condition = *present
	}
	if present != nil && present.Status == condition.Status && present.Reason == condition.Reason && present.Message == condition.Message {
		// Users know already, also if an earlier process said so.
		return held
	}
	condition.LastTransitionTime = metav1.NewTime(j.now())
	j.reports.Report(of, report.Condition(condition.Type), report.Soon, func(status *workv1alpha1.WorkStatus) {
		conditions.Set(&status.Conditions, condition)
	})
	j.warn(cluster, of, ruling, condition)
	return held
}

// isMass reports whether a deletion is held because of how many there are.
func isMass(reason guard.Reason) bool {
	return reason == guard.MassDeletion || reason == guard.ClusterChanged || reason == guard.FleetDeletion
}

func conditionOf(cluster *clusterv1alpha1.Cluster, of *workv1alpha1.Work, ruling Ruling) metav1.Condition {
	if ruling.Reason == guard.RestoreUnconfirmed {
		return work.RestoreNotConfirmed(of, ruling.epoch.Message())
	}
	return work.DeletionHeld(of, cluster.Name, ruling.Reason)
}

// warn writes the event: on the Cluster once for all deletions that are held there, or on
// the Work if only this one is concerned.
func (j *Judge) warn(cluster *clusterv1alpha1.Cluster, of *workv1alpha1.Work, ruling Ruling, condition metav1.Condition) {
	switch ruling.Reason {
	case guard.MassDeletion, guard.ClusterChanged, guard.FleetDeletion, guard.RestoreUnconfirmed:
		if j.counts.setAnnounced(cluster.Name, condition.Reason) == condition.Reason {
			return
		}
		message := condition.Message
		if ruling.Reason == guard.FleetDeletion {
			message = work.FleetDeletionStopped(ruling.losses.text())
		}
		j.events.Failed(cluster, condition.Reason, errors.New(message))
	default:
		j.events.Failed(of, workv1alpha1.EventReasonDeletionHeld, errors.New(condition.Message))
	}
}

// shownLosses bounds how many clusters an event names.
const shownLosses = 10

// text names the clusters with their numbers.
func (l losses) text() string {
	total, text := 0, ""
	for i, one := range l {
		total += one.open
		if i < shownLosses {
			text += fmt.Sprintf(", %s %d", one.cluster, one.open)
		}
	}
	if left := len(l) - shownLosses; left > 0 {
		text += fmt.Sprintf(" and %d more clusters", left)
	}
	return fmt.Sprintf("%d Works in %d clusters (%s)", total, len(l), text[min(2, len(text)):])
}

// held counts the deletions that are held, for the metric.
type held struct {
	gauge *prometheus.GaugeVec

	mu    sync.Mutex
	works map[types.NamespacedName]heldWork
}

type heldWork struct{ cluster, reason string }

func newHeld(registry prometheus.Registerer) (*held, error) {
	h := &held{works: map[types.NamespacedName]heldWork{}, gauge: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "karmada_work_deletions_held", Help: "Number of Works whose deletion waits for a confirmation or an explanation.",
	}, []string{"member_cluster", "reason"})}
	err := observe.Register(registry, &h.gauge)
	// A process that begins anew finds the metric of the Judge before, and holds nothing
	// yet.
	h.gauge.Reset()
	return h, err
}

func (h *held) add(cluster string, key types.NamespacedName, reason string) {
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

func (h *held) remove(key types.NamespacedName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if before, ok := h.works[key]; ok {
		h.gauge.WithLabelValues(before.cluster, before.reason).Dec()
		delete(h.works, key)
	}
}

func (h *held) removeCluster(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, work := range h.works {
		if work.cluster == name {
			delete(h.works, key)
		}
	}
	h.gauge.DeletePartialMatch(prometheus.Labels{"member_cluster": name})
}
