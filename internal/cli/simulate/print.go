package simulate

import (
	"fmt"
	"strings"

	"karmada.io/karmada/internal/console"
	"karmada.io/karmada/internal/domain/simulation"
)

const (
	// maxTargets is the maximum number of clusters in a column of the default table.
	maxTargets = 4
	// maxSummary is the maximum number of clusters in the summary.
	maxSummary = 5
)

// document is the result in JSON and YAML.
type document struct {
	simulation.Result
	// Assumptions are the sentences that the command prints to standard error.
	Assumptions []string `json:"assumptions"`
}

// print prints the selected objects, and then the summary to standard error.
func (o *options) print(result simulation.Result, assumptions []string) error {
	shown := simulation.Result{Objects: []simulation.Outcome{}, Clusters: result.Clusters}
	for i := range result.Objects {
		if o.isShown(&result.Objects[i]) {
			shown.Objects = append(shown.Objects, result.Objects[i])
		}
	}
	output := console.Output{
		Header:    []string{"KIND", "NAMESPACE", "NAME", "NOW", "THEN", "RESULT", "REASON"},
		ColumnGap: 3, Object: document{shown, assumptions},
	}
	isWide := o.format == console.Wide
	for i := range shown.Objects {
		of := &shown.Objects[i]
		output.Rows = append(output.Rows, []string{
			of.Kind, orDash(of.Namespace), of.Name, describeTargets(of.Before, isWide), describeTargets(of.After, isWide),
			labels[of.Verdict], orDash(of.Message),
		})
		output.Names = append(output.Names, strings.ToLower(of.Kind)+"/"+of.Name)
	}
	if len(output.Rows) > 0 || !o.format.IsTable() {
		if err := o.format.Print(o.Program.Out, output); err != nil {
			return err
		}
	}
	o.Program.Messagef("%s", summaryOf(result))
	return nil
}

// isShown reports whether the object is printed. Of all objects of the control plane, only those that
// change or cannot be placed are printed.
func (o *options) isShown(of *simulation.Outcome) bool {
	return !o.all || o.showsUnchanged || of.IsChanged() || of.Verdict == simulation.Unplaced || of.Verdict == simulation.LastCopyLost
}

// labels are the texts of verdicts in the table.
var labels = map[simulation.Verdict]string{
	simulation.Unchanged: "unchanged", simulation.Changed: "changed", simulation.NotScheduled: "not scheduled",
	simulation.Unplaced: "not placed", simulation.LastCopyLost: "LAST COPY LOST",
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// describeTargets returns the clusters with their replicas, such as "east 4, west 2".
func describeTargets(targets []simulation.Target, isWide bool) string {
	if len(targets) == 0 {
		return "none"
	}
	var texts []string
	for i, target := range targets {
		if !isWide && i == maxTargets {
			texts = append(texts, fmt.Sprintf("%d more", len(targets)-maxTargets))
			break
		}
		text := target.Cluster
		if target.Replicas != nil {
			text += fmt.Sprintf(" %d", *target.Replicas)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}

// summaryOf returns one line with the numbers of objects, and what changes in each cluster.
func summaryOf(result simulation.Result) string {
	if len(result.Objects) == 0 {
		return "no object is concerned: the policies select none, or the control plane has none"
	}
	changed := 0
	for i := range result.Objects {
		if result.Objects[i].IsChanged() {
			changed++
		}
	}
	parts := []string{fmt.Sprintf("%d of %s would change", changed, countOf(len(result.Objects), "object"))}
	for _, each := range []struct {
		verdict simulation.Verdict
		text    string
	}{
		{simulation.Unplaced, "%d cannot be placed as wanted"},
		{simulation.LastCopyLost, "%d would lose the last copy"},
		{simulation.NotScheduled, "%d not scheduled by this scheduler"},
	} {
		if count := result.Count(each.verdict); count > 0 {
			parts = append(parts, fmt.Sprintf(each.text, count))
		}
	}
	text := strings.Join(parts, ", ")
	for i, cluster := range result.Clusters {
		if i == maxSummary {
			return text + fmt.Sprintf("; and %s", countOf(len(result.Clusters)-maxSummary, "more cluster"))
		}
		text += fmt.Sprintf("; %s: %d -> %s", cluster.Name, cluster.ObjectsBefore, countOf(cluster.ObjectsAfter, "object"))
		if cluster.ReplicasBefore != cluster.ReplicasAfter {
			text += fmt.Sprintf(", %d -> %s", cluster.ReplicasBefore, countOf(int(cluster.ReplicasAfter), "replica"))
		}
	}
	return text
}

func countOf(number int, noun string) string {
	if number != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", number, noun)
}
