package membership

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"karmada.io/karmada/internal/cli/command"
)

// taintChanges contains the taints to set and the taints to remove. A taint to remove without an effect stands for all taints
// with its key.
type taintChanges struct{ set, remove []corev1.Taint }

// parseTaintArguments parses the positional arguments: the type clusters, the names of clusters, and the taints.
func parseTaintArguments(args []string) (names []string, changes taintChanges, err error) {
	if len(args) == 0 || !slices.Contains([]string{"cluster", "clusters"}, args[0]) {
		return nil, taintChanges{}, command.NewUsageError("only clusters can be tainted: write clusters, then their names")
	}
	for _, arg := range args[1:] {
		// The name of a cluster contains none of these characters, so the argument is a taint.
		isTaint := strings.ContainsAny(arg, "=:") || strings.HasSuffix(arg, "-")
		switch {
		case !isTaint && len(changes.set)+len(changes.remove) > 0:
			return nil, taintChanges{}, command.NewUsageError("write all clusters before the taints: %q follows a taint", arg)
		case !isTaint && slices.Contains(names, arg):
		case !isTaint:
			names = append(names, arg)
		default:
			if err := changes.add(arg); err != nil {
				return nil, taintChanges{}, command.NewUsageError("taint %q: %w", arg, err)
			}
		}
	}
	if len(changes.set)+len(changes.remove) == 0 {
		return nil, taintChanges{}, command.NewUsageError("the taint is missing")
	}
	return names, changes, changes.validateConflicts()
}

// ParseTaint parses a taint to set (key[=value]:Effect) or to remove (key[=value][:Effect]-).
func ParseTaint(text string) (taint corev1.Taint, isRemoved bool, err error) {
	text, isRemoved = strings.CutSuffix(text, "-")
	keyValue, effect, hasEffect := strings.Cut(text, ":")
	key, value, _ := strings.Cut(keyValue, "=")
	if wrong := validation.IsQualifiedName(key); len(wrong) > 0 {
		return corev1.Taint{}, isRemoved, fmt.Errorf("key %q: %s", key, strings.Join(wrong, "; "))
	}
	if wrong := validation.IsValidLabelValue(value); len(wrong) > 0 {
		return corev1.Taint{}, isRemoved, fmt.Errorf("value %q: %s", value, strings.Join(wrong, "; "))
	}
	known := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute}
	taint = corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
	if (hasEffect || !isRemoved) && !slices.Contains(known, taint.Effect) {
		return corev1.Taint{}, isRemoved, fmt.Errorf("the effect must be NoSchedule or NoExecute, not %q", effect)
	}
	return taint, isRemoved, nil
}

// add parses a taint and adds it to the changes.
func (t *taintChanges) add(text string) error {
	read, isRemoved, err := ParseTaint(text)
	switch {
	case err != nil:
		return err
	case isRemoved:
		t.remove = append(t.remove, read)
		return nil
	case slices.ContainsFunc(t.set, func(other corev1.Taint) bool { return other.MatchTaint(&read) }):
		return fmt.Errorf("%s:%s is given twice", read.Key, read.Effect)
	}
	t.set = append(t.set, read)
	return nil
}

// validateConflicts returns a usage error if a taint is both set and removed.
func (t *taintChanges) validateConflicts() error {
	for _, removed := range t.remove {
		for _, set := range t.set {
			if covers(removed, set) {
				return command.NewUsageError("taint %s:%s cannot be both set and removed", set.Key, set.Effect)
			}
		}
	}
	return nil
}

// covers reports whether the removal of removed also removes taint.
func covers(removed, taint corev1.Taint) bool {
	return removed.Key == taint.Key && (removed.Effect == "" || removed.Effect == taint.Effect)
}

// apply returns the cluster's taints after the changes, and a word for the result, such as "tainted". Without overwrite, it
// returns an error for a taint that exists with another value.
func (t *taintChanges) apply(cluster string, taints []corev1.Taint, overwrite bool) (changed []corev1.Taint, done string, err error) {
	changed = slices.Clone(taints)
	for _, removed := range t.remove {
		before := len(changed)
		changed = slices.DeleteFunc(changed, func(taint corev1.Taint) bool { return covers(removed, taint) })
		if len(changed) == before {
			return nil, "", fmt.Errorf("cluster %s: taint %q not found", cluster, strings.TrimSuffix(removed.Key+":"+string(removed.Effect), ":"))
		}
	}
	var existingKeys []string
	for _, set := range t.set {
		at := slices.IndexFunc(changed, func(taint corev1.Taint) bool { return taint.MatchTaint(&set) })
		if at < 0 {
			changed = append(changed, set)
			continue
		}
		changed[at].Value = set.Value
		existingKeys = append(existingKeys, set.Key)
	}
	overwritten := len(existingKeys) > 0
	switch {
	case overwritten && !overwrite:
		slices.Sort(existingKeys)
		return nil, "", fmt.Errorf("cluster %s already has %s taint(s) with same effect(s) and --overwrite is false: --overwrite gives them another value",
			cluster, strings.Join(slices.Compact(existingKeys), ","))
	case overwritten, len(t.set) > 0 && len(t.remove) > 0:
		return changed, "modified", nil
	case len(t.remove) > 0:
		return changed, "untainted", nil
	default:
		return changed, "tainted", nil
	}
}
