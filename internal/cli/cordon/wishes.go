package cordon

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"karmada.io/karmada/internal/cli/command"
)

// wishes are the taints to be set and to be removed. One to be removed without an
// effect means all of its key.
type wishes struct{ set, remove []corev1.Taint }

// parse reads the arguments: the type, names of clusters, then taints.
func parse(args []string) (names []string, wanted wishes, err error) {
	if len(args) == 0 || !slices.Contains([]string{"cluster", "clusters"}, args[0]) {
		return nil, wishes{}, command.Wrong("only clusters can be tainted: begin with clusters and their names")
	}
	for _, arg := range args[1:] {
		// No name of a cluster looks like a taint.
		isTaint := strings.ContainsAny(arg, "=:") || strings.HasSuffix(arg, "-")
		switch {
		case !isTaint && len(wanted.set)+len(wanted.remove) > 0:
			return nil, wishes{}, command.Wrong("name all clusters before the taints: %q comes after", arg)
		case !isTaint && slices.Contains(names, arg):
		case !isTaint:
			names = append(names, arg)
		default:
			if err := wanted.add(arg); err != nil {
				return nil, wishes{}, command.Wrong("taint %q: %w", arg, err)
			}
		}
	}
	if len(wanted.set)+len(wanted.remove) == 0 {
		return nil, wishes{}, command.Wrong("the taint is missing")
	}
	return names, wanted, wanted.contradiction()
}

// add reads one taint: key[=value]:Effect or key[=value][:Effect]-.
func (w *wishes) add(text string) error {
	text, removed := strings.CutSuffix(text, "-")
	keyValue, effect, hasEffect := strings.Cut(text, ":")
	key, value, _ := strings.Cut(keyValue, "=")
	if wrong := validation.IsQualifiedName(key); len(wrong) > 0 {
		return fmt.Errorf("key %q: %s", key, strings.Join(wrong, "; "))
	}
	if wrong := validation.IsValidLabelValue(value); len(wrong) > 0 {
		return fmt.Errorf("value %q: %s", value, strings.Join(wrong, "; "))
	}
	known := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute}
	read := corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
	if (hasEffect || !removed) && !slices.Contains(known, read.Effect) {
		return fmt.Errorf("the effect must be NoSchedule or NoExecute, not %q: clusters know no other", effect)
	}
	if removed {
		w.remove = append(w.remove, read)
		return nil
	}
	if slices.ContainsFunc(w.set, func(other corev1.Taint) bool { return other.MatchTaint(&read) }) {
		return fmt.Errorf("%s:%s is given twice", key, effect)
	}
	w.set = append(w.set, read)
	return nil
}

// contradiction is the error of setting and removing the same taint.
func (w *wishes) contradiction() error {
	for _, removed := range w.remove {
		for _, set := range w.set {
			if covers(removed, set) {
				return command.Wrong("taint %s:%s cannot be both set and removed", set.Key, set.Effect)
			}
		}
	}
	return nil
}

// covers tells whether removing a taint means this one.
func covers(removed, taint corev1.Taint) bool {
	return removed.Key == taint.Key && (removed.Effect == "" || removed.Effect == taint.Effect)
}

// apply returns the taints of a cluster as wanted, and what that does to the cluster.
func (w *wishes) apply(cluster string, taints []corev1.Taint, overwrite bool) (changed []corev1.Taint, done string, err error) {
	changed = slices.Clone(taints)
	for _, removed := range w.remove {
		before := len(changed)
		changed = slices.DeleteFunc(changed, func(taint corev1.Taint) bool { return covers(removed, taint) })
		if len(changed) == before {
			return nil, "", fmt.Errorf("cluster %s: taint %q not found", cluster, strings.TrimSuffix(removed.Key+":"+string(removed.Effect), ":"))
		}
	}
	var present []string // keys of taints that are set already
	for _, set := range w.set {
		at := slices.IndexFunc(changed, func(taint corev1.Taint) bool { return taint.MatchTaint(&set) })
		if at < 0 {
			changed = append(changed, set)
			continue
		}
		changed[at].Value = set.Value
		present = append(present, set.Key)
	}
	overwritten := len(present) > 0
	switch {
	case overwritten && !overwrite:
		slices.Sort(present)
		return nil, "", fmt.Errorf("cluster %s already has %s taint(s) with same effect(s) and --overwrite is false: --overwrite gives them another value",
			cluster, strings.Join(slices.Compact(present), ","))
	case overwritten, len(w.set) > 0 && len(w.remove) > 0:
		return changed, "modified", nil
	case len(w.remove) > 0:
		return changed, "untainted", nil
	default:
		return changed, "tainted", nil
	}
}
