// Package toleration decides whether a workload may be scheduled to a tainted cluster, and how
// long it may stay there.
//
// Invariants: every function is pure; a toleration of a taint without a time never ends; a longer
// toleration never leads to an earlier deadline.
package toleration

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Tolerates reports whether a toleration tolerates a taint, in the same way as for Pods: an empty
// key or effect matches any key or effect, and an empty operator means Equal. The operators Lt and
// Gt never match.
func Tolerates(toleration *corev1.Toleration, taint *corev1.Taint) bool {
	if toleration.Effect != "" && toleration.Effect != taint.Effect {
		return false
	}
	if toleration.Key != "" && toleration.Key != taint.Key {
		return false
	}
	switch toleration.Operator {
	case corev1.TolerationOpExists:
		return true
	case "", corev1.TolerationOpEqual:
		return toleration.Value == taint.Value
	default:
		return false
	}
}

// FirstMatch returns the first toleration that tolerates the taint, or nil.
func FirstMatch(tolerations []corev1.Toleration, taint *corev1.Taint) *corev1.Toleration {
	for i := range tolerations {
		if Tolerates(&tolerations[i], taint) {
			return &tolerations[i]
		}
	}
	return nil
}

// Deadline is the time until which a workload may stay in a tainted cluster. The zero value means
// that there is no time limit.
type Deadline struct {
	// Taint is the taint that leads to the eviction, or nil if there is none.
	Taint *corev1.Taint
	// Until is the time of the eviction. With a Taint, the zero time means immediate eviction.
	Until time.Time
}

// IsOver reports whether the deadline has passed.
func (d Deadline) IsOver(now time.Time) bool { return d.Taint != nil && !now.Before(d.Until) }

// EvictionDeadline returns how long a workload with these tolerations may stay in a cluster with
// these taints. Only taints with the effect NoExecute evict the workload. If such a taint is not
// tolerated, the workload is evicted immediately. If the taint is tolerated for a limited time, the
// workload is evicted when that time has passed since the taint was added. For each taint, only the
// first matching toleration is used. If this toleration also tolerates other taints, it is used for
// these taints too.
func EvictionDeadline(taints []corev1.Taint, tolerations []corev1.Toleration) Deadline {
	var matching []*corev1.Toleration
	for i := range taints {
		if taints[i].Effect != corev1.TaintEffectNoExecute {
			continue
		}
		first := FirstMatch(tolerations, &taints[i])
		if first == nil {
			return Deadline{Taint: &taints[i]}
		}
		matching = append(matching, first)
	}
	var deadline Deadline
	for _, toleration := range matching {
		for i := range taints {
			taint := &taints[i]
			if taint.Effect != corev1.TaintEffectNoExecute || !Tolerates(toleration, taint) {
				continue
			}
			if until, ends := tolerationEnd(toleration, taint); ends && (deadline.Taint == nil || until.Before(deadline.Until)) {
				deadline = Deadline{Taint: taint, Until: until}
			}
		}
	}
	return deadline
}

// maxSeconds is the largest number of whole seconds that a time.Duration can hold.
const maxSeconds = int64(math.MaxInt64 / time.Second)

// tolerationEnd returns when a toleration of a taint ends. ends is false if the toleration never
// ends.
func tolerationEnd(toleration *corev1.Toleration, taint *corev1.Taint) (until time.Time, ends bool) {
	if toleration.TolerationSeconds == nil || taint.TimeAdded == nil {
		return time.Time{}, false
	}
	seconds := min(max(*toleration.TolerationSeconds, 0), maxSeconds)
	return taint.TimeAdded.Add(time.Duration(seconds) * time.Second), true
}
