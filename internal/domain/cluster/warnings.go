package cluster

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

// ahead is how far the clock of a user may be ahead.
const ahead = 5 * time.Minute

// Warnings tells which annotations that a change brings are orders in vain, or go
// further than people mean. Before a creation old is nil.
func Warnings(cluster, old *clusterv1alpha1.Cluster, now time.Time) []string {
	if old == nil {
		old = &clusterv1alpha1.Cluster{}
	}
	var warnings []string
	for _, order := range []struct {
		annotation string
		judge      func(value string) (wrong string)
	}{
		{workv1alpha1.ConfirmDeletionsAnnotation, func(value string) string { return judgeConfirmation(value, now) }},
		{clusterv1alpha1.DeclaredDeadAnnotation, judgeDeath},
	} {
		value, given := cluster.Annotations[order.annotation]
		if before, was := old.Annotations[order.annotation]; !given || was && before == value {
			continue
		}
		if wrong := order.judge(value); wrong != "" {
			warnings = append(warnings, fmt.Sprintf("%s: %s", field.NewPath("metadata", "annotations").Key(order.annotation), wrong))
		}
	}
	return warnings
}

func judgeConfirmation(value string, now time.Time) string {
	until, err := time.Parse(time.RFC3339, value)
	switch {
	case err != nil:
		return fmt.Sprintf("%q confirms nothing: it must be a time such as %s", value, now.UTC().Format(time.RFC3339))
	case until.After(now.Add(ahead)):
		return fmt.Sprintf("it also confirms every deletion that begins before %s", value)
	}
	return ""
}

func judgeDeath(value string) string {
	if value == clusterv1alpha1.DeclaredDeadValue || value == "false" {
		return ""
	}
	return fmt.Sprintf("%q has no effect: it must be %q", value, clusterv1alpha1.DeclaredDeadValue)
}
