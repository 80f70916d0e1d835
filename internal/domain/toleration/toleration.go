// Package toleration answers: may work come to a tainted cluster, and how long may
// it stay there?
//
// Invariants: everything is a pure function of its arguments; a taint without a
// time never ends a toleration; a longer toleration never ends a stay earlier.
package toleration

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Tolerates compares as Pods do: an empty key or effect stands for any, an empty
// operator for Equal. Lt and Gt tolerate nothing.
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

// First is the first toleration of a taint; nil when there is none.
func First(tolerations []corev1.Toleration, taint *corev1.Taint) *corev1.Toleration {
	for i := range tolerations {
		if Tolerates(&tolerations[i], taint) {
			return &tolerations[i]
		}
	}
	return nil
}

// Stay is how long work may stay in a cluster with taints. The zero value is for
// ever.
type Stay struct {
	// Taint is what ends the stay; nil when nothing does.
	Taint *corev1.Taint
	// Until is when it ends; the zero time with a Taint is at once.
	Until time.Time
}

// Over tells whether the stay has ended.
func (s Stay) Over(now time.Time) bool { return s.Taint != nil && !now.Before(s.Until) }

// InFor is how long work with these tolerations may stay in a cluster with these
// taints. Only taints of effect NoExecute drive work out: one that is not
// tolerated does so at once, and one that is tolerated for a time when that time
// has passed since the taint was added. Of the tolerations those count that are
// the first of some taint, each for all taints that it tolerates.
func InFor(taints []corev1.Taint, tolerations []corev1.Toleration) Stay {
	var used []*corev1.Toleration
	for i := range taints {
		if taints[i].Effect != corev1.TaintEffectNoExecute {
			continue
		}
		first := First(tolerations, &taints[i])
		if first == nil {
			return Stay{Taint: &taints[i]}
		}
		used = append(used, first)
	}
	var stay Stay
	for _, toleration := range used {
		for i := range taints {
			taint := &taints[i]
			if taint.Effect != corev1.TaintEffectNoExecute || !Tolerates(toleration, taint) {
				continue
			}
			if until, ends := end(toleration, taint); ends && (stay.Taint == nil || until.Before(stay.Until)) {
				stay = Stay{Taint: taint, Until: until}
			}
		}
	}
	return stay
}

// longest is as far as a duration reaches.
const longest = int64(math.MaxInt64 / time.Second)

// end is when a toleration of a taint ends, if it does.
func end(toleration *corev1.Toleration, taint *corev1.Taint) (until time.Time, ends bool) {
	if toleration.TolerationSeconds == nil || taint.TimeAdded == nil {
		return time.Time{}, false
	}
	seconds := min(max(*toleration.TolerationSeconds, 0), longest)
	return taint.TimeAdded.Add(time.Duration(seconds) * time.Second), true
}
