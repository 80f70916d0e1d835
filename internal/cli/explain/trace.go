package explain

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/console"
	"karmada.io/karmada/internal/domain/diagnose"
)

type traceOptions struct {
	Flags
	format console.Format
}

// NewTrace returns the command that explains how a template is propagated.
func NewTrace(program *command.Program) *cobra.Command {
	o := &traceOptions{Flags: NewFlags(program)}
	cmd := &cobra.Command{
		Use:   "trace (KIND/NAME | KIND NAME)",
		Short: "Explain why an object is or is not in its clusters",
		Long: `Follow one object from the control plane to its clusters: template, policy, binding,
schedule, override policies, Work, member object and status. Each line has a result: ok,
failed, pending (waits for a controller, a member or you), unknown (could not be read) or
- (not checked, or without effect). Lines with "left out" name the clusters that the
scheduler does not use, each with the filter and the reason. "Next:" tells you what to do.

Members are queried through the control plane. If the object is in more than 10 clusters,
only clusters with a problem are queried; for the others, the Works report the state.

The exit code is 0 if all lines are ok, and 1 if the state is not as wanted or unknown.`,
		Example: program.Examples(`
			# Why does a Deployment not run?
			{{program}} trace deployment/web -n shop

			# One line for each cluster
			{{program}} trace deploy web -n shop -o wide

			# Print JSON for a program
			{{program}} trace deploy/web -n shop -o json`),
		Args: o.validate,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.AddFlags(cmd)
	o.format.AddFlag(cmd)
	return cmd
}

// validate returns a usage error if arguments or flags are wrong. It sends no request.
func (o *traceOptions) validate(cmd *cobra.Command, args []string) error {
	if o.format == console.Name {
		return command.NewUsageError("--output name is not supported: use json, yaml or wide")
	}
	return validateArguments(cmd, args)
}

func (o *traceOptions) run(ctx context.Context, args []string) error {
	reader, err := o.NewReader(args)
	if err != nil {
		return err
	}
	facts := reader.Read(ctx, time.Now())
	facts.Members = reader.QueryMembers(ctx, diagnose.MemberQueries(facts))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	diagnosis := diagnose.Trace(facts)
	if err := o.print(reader.Template, diagnosis); err != nil {
		return err
	}
	return diagnosisError(diagnosis)
}

// diagnosisError returns an error that names the first link with the result of the diagnosis. It returns nil if the diagnosis
// is ok.
func diagnosisError(diagnosis diagnose.Diagnosis) error {
	switch diagnosis.Result {
	case diagnose.OK, diagnose.NotApplicable:
		return nil
	}
	for i := range diagnosis.Links {
		if link := &diagnosis.Links[i]; link.Result == diagnosis.Result {
			where := ""
			if link.Cluster != "" {
				where = " in cluster " + link.Cluster
			}
			return fmt.Errorf("%s is %s%s: %s", link.Stage, strings.ToLower(string(link.Result)), where, link.Reason)
		}
	}
	return fmt.Errorf("the result is %s", diagnosis.Result)
}

// maxRemedies limits how many remedies are printed after the lines.
const maxRemedies = 3

// traceDocument is the result in JSON and YAML.
type traceDocument struct {
	Template traceObject `json:"template"`
	diagnose.Diagnosis
}

type traceObject struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

func (o *traceOptions) print(template Template, diagnosis diagnose.Diagnosis) error {
	if o.format.IsTable() {
		style := console.NewStyle(o.Program.Out)
		return printText(o.Program.Out, style, linesOf(diagnosis, o.format == console.Wide), remediesOf(diagnosis))
	}
	apiVersion, kind := template.Kind().ToAPIVersionAndKind()
	return o.format.Print(o.Program.Out, console.Output{Object: traceDocument{
		Template:  traceObject{APIVersion: apiVersion, Kind: kind, Namespace: template.Key.Namespace, Name: template.Key.Name},
		Diagnosis: diagnosis,
	}})
}

// printText writes the lines, and then the remedies.
func printText(out io.Writer, style console.Style, lines []traceLine, remedies []string) error {
	for _, line := range lines {
		result := colorResult(style, line.result, fmt.Sprintf("%-7s", resultLabel(line.result)))
		if _, err := fmt.Fprintf(out, "%s  %-8s  %s\n", result, line.title, line.text); err != nil {
			return err
		}
	}
	for i, remedy := range remedies {
		prefix := "Next: "
		if i > 0 {
			prefix = "      "
		}
		if _, err := fmt.Fprintln(out, prefix+remedy); err != nil {
			return err
		}
	}
	return nil
}

// resultLabel returns the text of a result in the output.
func resultLabel(result diagnose.Result) string {
	if result == diagnose.NotApplicable {
		return "-"
	}
	return string(result)
}

func colorResult(style console.Style, result diagnose.Result, text string) string {
	switch result {
	case diagnose.OK:
		return style.Good(text)
	case diagnose.Failed:
		return style.Bad(text)
	case diagnose.Pending, diagnose.Unknown:
		return style.Warn(text)
	default:
		return text
	}
}

// remediesOf returns each remedy once, those of the most severe result first.
func remediesOf(diagnosis diagnose.Diagnosis) []string {
	var remedies []string
	for _, result := range []diagnose.Result{diagnose.Failed, diagnose.Unknown, diagnose.Pending, diagnose.OK, diagnose.NotApplicable} {
		for i := range diagnosis.Links {
			link := &diagnosis.Links[i]
			if link.Result == result && link.Remedy != "" && !slices.Contains(remedies, link.Remedy) {
				remedies = append(remedies, link.Remedy)
			}
		}
	}
	if more := len(remedies) - maxRemedies; more > 0 {
		return append(remedies[:maxRemedies:maxRemedies], fmt.Sprintf("(%d more with --output json)", more))
	}
	return remedies
}

const (
	// maxNamedClusters limits how many clusters one line names.
	maxNamedClusters = 5
	// placeholder replaces the name of the cluster in a message about several clusters.
	placeholder = "<cluster>"
	// leftOut is the title of the lines about clusters that the scheduler does not use.
	leftOut = "left out"
)

// traceLine is one line of the output.
type traceLine struct {
	result diagnose.Result
	title  string
	text   string
}

// traceFinding is a link or a cluster that is left out, before equal findings are merged.
type traceFinding struct {
	title   string
	result  diagnose.Result
	cluster string
	// reason is in front of the message if showsReason returns true.
	reason, message string
}

// linesOf returns the lines of a diagnosis. Clusters with the same message share one line, unless
// isWide is set. The message of several clusters contains a placeholder for the name.
func linesOf(diagnosis diagnose.Diagnosis, isWide bool) []traceLine {
	var lines []traceLine
	for _, stage := range diagnose.Stages() {
		var findings []traceFinding
		for i := range diagnosis.Links {
			link := &diagnosis.Links[i]
			if link.Stage == stage {
				findings = append(findings, traceFinding{string(stage), link.Result, link.Cluster, link.Reason, link.Message})
			}
		}
		lines = append(lines, mergeFindings(findings, isWide)...)
		if stage == diagnose.StageSchedule {
			lines = append(lines, leftOutLines(diagnosis.LeftOut, isWide)...)
		}
	}
	return lines
}

func leftOutLines(clusters []diagnose.LeftOutCluster, isWide bool) []traceLine {
	findings := make([]traceFinding, 0, len(clusters))
	for _, left := range clusters {
		findings = append(findings, traceFinding{leftOut, diagnose.NotApplicable, left.Cluster, left.Filter, left.Message})
	}
	return mergeFindings(findings, isWide)
}

// mergeFindings returns one line for all findings of one stage with the same text. More than
// maxNamedClusters healthy clusters share one line even if their numbers differ.
func mergeFindings(findings []traceFinding, isWide bool) []traceLine {
	var lines []traceLine
	at := map[string]int{}
	var clusters [][]string
	var merged []traceFinding
	healthy := 0
	for _, found := range findings {
		if found.result == diagnose.OK {
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
		lines = append(lines, traceLine{found.result, found.title, found.text(clusters[i], healthy > maxNamedClusters)})
	}
	return lines
}

// mergeKey returns the text by which findings are merged.
func (f *traceFinding) mergeKey(isLarge bool) string {
	if isLarge && f.result == diagnose.OK {
		return string(f.result) + " " + f.reason
	}
	return fmt.Sprintf("%s %s %s", f.result, f.reason, f.anonymous())
}

// anonymous returns the message with the placeholder instead of the name of the cluster.
func (f *traceFinding) anonymous() string {
	if f.cluster == "" {
		return f.message
	}
	name := regexp.MustCompile(`\b` + regexp.QuoteMeta(f.cluster) + `\b`)
	return name.ReplaceAllLiteralString(f.message, placeholder)
}

// showsReason reports whether the line contains the reason. Stages that were not checked need none.
func (f *traceFinding) showsReason() bool {
	isProblem := f.result != diagnose.OK && f.result != diagnose.NotApplicable
	return f.reason != "" && (isProblem || f.title == leftOut)
}

// text returns the text of a line about the given clusters.
func (f *traceFinding) text(clusters []string, isLarge bool) string {
	message := f.message
	switch {
	case len(clusters) > 1 && isLarge && f.result == diagnose.OK:
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
