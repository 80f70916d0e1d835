package cluster

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

// maxClockAhead is how far a user's clock may be ahead of the control plane's clock.
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
		{workv1alpha1.ConfirmDeletionsAnnotation, func(value string) string { return confirmationProblem(value, now) }},
		{clusterv1alpha1.DeclaredDeadAnnotation, declaredDeadProblem},
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

func confirmationProblem(value string, now time.Time) string {
	if _, err := time.Parse(time.RFC3339, value); err != nil {
		return fmt.Sprintf("%q confirms nothing: it must be a time such as %s", value, now.UTC().Format(time.RFC3339))
	}
	return ""
}

// ValidateConfirmation rejects a deletion confirmation with a future time, because it would confirm
// deletions that have not begun. It accepts the stored value, and a time that is at most maxClockAhead
// in the future, because clocks differ. old is nil on creation.
func ValidateConfirmation(cluster, old *clusterv1alpha1.Cluster, now time.Time) field.ErrorList {
	value := cluster.Annotations[workv1alpha1.ConfirmDeletionsAnnotation]
	until, err := time.Parse(time.RFC3339, value)
	if err != nil || !until.After(now.Add(maxClockAhead)) || old != nil && old.Annotations[workv1alpha1.ConfirmDeletionsAnnotation] == value {
		return nil // Warnings reports a value that is not a time
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "annotations").Key(workv1alpha1.ConfirmDeletionsAnnotation), value,
		fmt.Sprintf("the time is in the future, so it would also confirm deletions that have not begun: confirm the deletions of cluster %q that have begun with the current time, such as %s",
			cluster.Name, now.UTC().Format(time.RFC3339)))}
}

func declaredDeadProblem(value string) string {
	if value == clusterv1alpha1.DeclaredDeadValue || value == "false" {
		return ""
	}
	return fmt.Sprintf("%q has no effect: it must be %q", value, clusterv1alpha1.DeclaredDeadValue)
}
