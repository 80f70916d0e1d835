package trace

import (
	"fmt"
	"io"
	"slices"

	"karmada.io/karmada/internal/cli/chain"
	"karmada.io/karmada/internal/console"
	"karmada.io/karmada/internal/domain/diagnose"
)

// maxRemedies is the maximum number of remedies after the lines.
const maxRemedies = 3

// document is the result in JSON and YAML.
type document struct {
	Template object `json:"template"`
	diagnose.Diagnosis
}

type object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

func (o *options) print(template chain.Template, diagnosis diagnose.Diagnosis) error {
	if o.format.IsTable() {
		style := console.NewStyle(o.Program.Out)
		return printText(o.Program.Out, style, linesOf(diagnosis, o.format == console.Wide), remediesOf(diagnosis))
	}
	apiVersion, kind := template.Kind().ToAPIVersionAndKind()
	return o.format.Print(o.Program.Out, console.Output{Object: document{
		Template:  object{APIVersion: apiVersion, Kind: kind, Namespace: template.Key.Namespace, Name: template.Key.Name},
		Diagnosis: diagnosis,
	}})
}

// printText writes one line for each line of the diagnosis, and then the remedies.
func printText(out io.Writer, style console.Style, lines []line, remedies []string) error {
	for _, line := range lines {
		verdict := paint(style, line.verdict, fmt.Sprintf("%-7s", label(line.verdict)))
		if _, err := fmt.Fprintf(out, "%s  %-8s  %s\n", verdict, line.title, line.text); err != nil {
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

// label returns the text of a verdict.
func label(verdict diagnose.Verdict) string {
	if verdict == diagnose.NotApplicable {
		return "-"
	}
	return string(verdict)
}

func paint(style console.Style, verdict diagnose.Verdict, text string) string {
	switch verdict {
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

// remediesOf returns the remedies, those of the most severe verdict first. Each remedy is returned
// once.
func remediesOf(diagnosis diagnose.Diagnosis) []string {
	var remedies []string
	for _, verdict := range []diagnose.Verdict{diagnose.Failed, diagnose.Unknown, diagnose.Pending, diagnose.OK, diagnose.NotApplicable} {
		for i := range diagnosis.Links {
			link := &diagnosis.Links[i]
			if link.Verdict == verdict && link.Remedy != "" && !slices.Contains(remedies, link.Remedy) {
				remedies = append(remedies, link.Remedy)
			}
		}
	}
	if more := len(remedies) - maxRemedies; more > 0 {
		return append(remedies[:maxRemedies:maxRemedies], fmt.Sprintf("(%d more with --output json)", more))
	}
	return remedies
}
