package cluster

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

// maxClockAhead is how far the clock of a user may be ahead of the clock of the control plane.
const maxClockAhead = 5 * time.Minute

// Warnings returns a warning for each annotation that a change sets and that has no effect, or more
// effects than users expect. old is nil on creation.
func Warnings(cluster, old *clusterv1alpha1.Cluster, now time.Time) []string {
	if old == nil {
		old = &clusterv1alpha1.Cluster{}
	}
	var warnings []string
	for _, check := range []struct {
		annotation string
		validate   func(value string) (problem string)
	}{
		{workv1alpha1.ConfirmDeletionsAnnotation, func(value string) string { return checkConfirmation(value, now) }},
		{clusterv1alpha1.DeclaredDeadAnnotation, checkDeclaredDead},
	} {
		value, given := cluster.Annotations[check.annotation]
		if before, was := old.Annotations[check.annotation]; !given || was && before == value {
			continue
		}
		if problem := check.validate(value); problem != "" {
			warnings = append(warnings, fmt.Sprintf("%s: %s", field.NewPath("metadata", "annotations").Key(check.annotation), problem))
		}
	}
	return warnings
}

func checkConfirmation(value string, now time.Time) string {
	until, err := time.Parse(time.RFC3339, value)
	switch {
	case err != nil:
		return fmt.Sprintf("%q confirms nothing: it must be a time such as %s", value, now.UTC().Format(time.RFC3339))
	case until.After(now.Add(maxClockAhead)):
		return fmt.Sprintf("it also confirms every deletion that begins before %s", value)
	}
	return ""
}

func checkDeclaredDead(value string) string {
	if value == clusterv1alpha1.DeclaredDeadValue || value == "false" {
		return ""
	}
	return fmt.Sprintf("%q has no effect: it must be %q", value, clusterv1alpha1.DeclaredDeadValue)
}
