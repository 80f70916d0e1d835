package trace

import (
	"fmt"
	"regexp"
	"strings"

	"karmada.io/karmada/internal/domain/diagnose"
)

const (
	// maxNamedClusters is the maximum number of clusters that one line names.
	maxNamedClusters = 5
	// placeholder replaces the name of the cluster in a message about several clusters.
	placeholder = "<cluster>"
	// leftOut is the title of the lines about clusters that the scheduler does not use.
	leftOut = "left out"
)

// line is one line of the output.
type line struct {
	verdict diagnose.Verdict
	title   string
	text    string
}

// finding is a link or a cluster that is left out, before equal findings are merged.
type finding struct {
	title   string
	verdict diagnose.Verdict
	cluster string
	// reason is in front of the message if showsReason returns true.
	reason, message string
}

// linesOf returns the lines of a diagnosis. Clusters with the same message share one line, unless
// isWide is set. The message of several clusters contains a placeholder for the name.
func linesOf(diagnosis diagnose.Diagnosis, isWide bool) []line {
	var lines []line
	for _, stage := range diagnose.Stages() {
		var findings []finding
		for i := range diagnosis.Links {
			link := &diagnosis.Links[i]
			if link.Stage == stage {
				findings = append(findings, finding{string(stage), link.Verdict, link.Cluster, link.Reason, link.Message})
			}
		}
		lines = append(lines, mergeFindings(findings, isWide)...)
		if stage == diagnose.StageSchedule {
			lines = append(lines, leftOutLines(diagnosis.LeftOut, isWide)...)
		}
	}
	return lines
}

func leftOutLines(clusters []diagnose.LeftOutCluster, isWide bool) []line {
	findings := make([]finding, 0, len(clusters))
	for _, left := range clusters {
		findings = append(findings, finding{leftOut, diagnose.NotApplicable, left.Cluster, left.Filter, left.Message})
	}
	return mergeFindings(findings, isWide)
}

// mergeFindings returns one line for all findings of one stage with the same text. More than
// maxNamedClusters healthy clusters share one line even if their numbers differ.
func mergeFindings(findings []finding, isWide bool) []line {
	var lines []line
	at := map[string]int{}
	var clusters [][]string
	var merged []finding
	healthy := 0
	for _, found := range findings {
		if found.verdict == diagnose.OK {
			healthy++
		}
	}
	for _, found := range findings {
		key := found.mergeKey(healthy > maxNamedClusters)
		if isWide {
			key = fmt.Sprint(len(merged))
		}
		i, known := at[key]
		if !known {
			i = len(merged)
			at[key] = i
			merged, clusters = append(merged, found), append(clusters, nil)
		}
		if found.cluster != "" {
			clusters[i] = append(clusters[i], found.cluster)
		}
	}
	for i, found := range merged {
		lines = append(lines, line{found.verdict, found.title, found.text(clusters[i], healthy > maxNamedClusters)})
	}
	return lines
}

// mergeKey returns the text by which findings are merged.
func (f *finding) mergeKey(isLarge bool) string {
	if isLarge && f.verdict == diagnose.OK {
		return string(f.verdict) + " " + f.reason
	}
	return fmt.Sprintf("%s %s %s", f.verdict, f.reason, f.anonymous())
}

// anonymous returns the message with the placeholder instead of the name of the cluster.
func (f *finding) anonymous() string {
	if f.cluster == "" {
		return f.message
	}
	name := regexp.MustCompile(`\b` + regexp.QuoteMeta(f.cluster) + `\b`)
	return name.ReplaceAllLiteralString(f.message, placeholder)
}

// showsReason reports whether the line contains the reason. Stages that were not checked need none.
func (f *finding) showsReason() bool {
	isProblem := f.verdict != diagnose.OK && f.verdict != diagnose.NotApplicable
	return f.reason != "" && (isProblem || f.title == leftOut)
}

// text returns the text of a line about the given clusters.
func (f *finding) text(clusters []string, isLarge bool) string {
	message := f.message
	switch {
	case len(clusters) > 1 && isLarge && f.verdict == diagnose.OK:
		message = f.reason
	case len(clusters) > 1:
		message = f.anonymous()
	}
	if f.showsReason() && !strings.HasPrefix(message, f.reason) {
		message = f.reason + ": " + message
	}
	switch {
	case len(clusters) == 0:
		return message
	case len(clusters) > maxNamedClusters:
		return fmt.Sprintf("%s and %d more: %s", strings.Join(clusters[:maxNamedClusters], ", "), len(clusters)-maxNamedClusters, message)
	default:
		return strings.Join(clusters, ", ") + ": " + message
	}
}
