// Package toleration decides whether tolerations match a cluster's taints, and how long a workload may
// stay in a tainted cluster.
//
// Every function is pure. A toleration of a taint without a time never expires, and a longer toleration
// never leads to an earlier deadline.
package toleration

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Tolerates reports whether the toleration tolerates the taint, as for Pods: an empty key or effect
// matches any key or effect, and an empty operator means Equal. The operators Lt and Gt never match.
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

// Deadline is the time until which a workload may stay in a tainted cluster. The zero value means that
// there is no deadline.
type Deadline struct {
	// Taint is the taint that causes the eviction, or nil if the workload is not evicted.
	Taint *corev1.Taint
	// Until is the time of the eviction. With a Taint, the zero time means immediate eviction.
	Until time.Time
}

// IsOver reports whether the deadline has passed.
func (d Deadline) IsOver(now time.Time) bool { return d.Taint != nil && !now.Before(d.Until) }

// EvictionDeadline returns how long a workload with the given tolerations may stay in a cluster with the
// given taints. Only NoExecute taints evict the workload: immediately if a taint is not tolerated, and
// otherwise when the toleration's time has passed since the taint was added. For each taint, the first
// matching toleration is used, and applies to all taints that it tolerates.
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

// tolerationEnd returns when the taint is no longer tolerated. ends is false if the toleration never
// expires.
func tolerationEnd(toleration *corev1.Toleration, taint *corev1.Taint) (until time.Time, ends bool) {
	if toleration.TolerationSeconds == nil || taint.TimeAdded == nil {
		return time.Time{}, false
	}
	seconds := min(max(*toleration.TolerationSeconds, 0), maxSeconds)
	return taint.TimeAdded.Add(time.Duration(seconds) * time.Second), true
}
