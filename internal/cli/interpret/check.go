package interpret

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"karmada.io/karmada/internal/domain/interpreter/customization"
	"karmada.io/karmada/internal/domain/interpreter/script"
)

// rule is the line above each customization in the output of --check.
var rule = strings.Repeat("-", 35)

// The results of a check.
const (
	passed = "PASS"
	unset  = "UNSET"
	failed = "ERROR"
)

// checkReport is the result of the check of one customization.
type checkReport struct {
	Source string       `json:"source"`
	Name   string       `json:"name"`
	Target targetReport `json:"target"`
	Rules  []ruleReport `json:"rules"`
}

// targetReport is the kind of a customization. Error is empty if the kind is complete and valid.
type targetReport struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Error      string `json:"error,omitempty"`
}

// ruleReport is the result of the check of one script. Error is empty unless Result is ERROR.
type ruleReport struct {
	Operation string `json:"operation"`
	Result    string `json:"result"`
	Error     string `json:"error,omitempty"`
}

// check compiles the scripts of all customizations, and prints a report.
func (o *options) check(sources []source) error {
	reports := []checkReport{}
	failures := 0
	for _, source := range sources {
		report := newCheckReport(source)
		reports = append(reports, report)
		if report.hasFailed() {
			failures++
		}
	}
	o.noteUnusedScripts(sources, customization.Operations()...)
	var err error
	if o.hasOutputFormat() {
		err = o.printDocument(map[string]any{"customizations": reports})
	} else {
		_, err = fmt.Fprint(o.Program.Out, formatReports(reports))
	}
	if err != nil {
		return err
	}
	if failures > 0 {
		return fmt.Errorf("%d of %s not valid", failures, countAre(len(sources), "customization"))
	}
	return nil
}

func newCheckReport(source source) checkReport {
	target := source.Spec.Target
	report := checkReport{Source: source.place, Name: source.Name, Target: targetReport{APIVersion: target.APIVersion, Kind: target.Kind}}
	_, invalid := schema.ParseGroupVersion(target.APIVersion)
	switch {
	case target.APIVersion == "" && target.Kind == "":
		report.Target.Error = "spec.target.apiVersion and spec.target.kind are not set"
	case target.APIVersion == "":
		report.Target.Error = "spec.target.apiVersion is not set"
	case target.Kind == "":
		report.Target.Error = "spec.target.kind is not set"
	case invalid != nil:
		report.Target.Error = fmt.Sprintf("spec.target.apiVersion is %q: write group/version, or v1 for the core group", target.APIVersion)
	}
	for _, operation := range customization.Operations() {
		checked := ruleReport{Operation: string(operation.Name), Result: unset}
		if text := operation.Script(&source.Spec.Customizations); text != "" {
			checked.Result = passed
			if err := script.Check(text); err != nil {
				checked.Result, checked.Error = failed, oneLine(err)
			}
		}
		report.Rules = append(report.Rules, checked)
	}
	return report
}

func (r checkReport) hasFailed() bool {
	for _, rule := range r.Rules {
		if rule.Result == failed {
			return true
		}
	}
	return r.Target.Error != ""
}

// formatReports returns the reports as text.
func formatReports(reports []checkReport) string {
	var text strings.Builder
	for _, report := range reports {
		fmt.Fprintf(&text, "%s\nSOURCE: %s\nTARGET: %s\nRULERS:\n", rule, report.Source, report.Target)
		for _, rule := range report.Rules {
			result := rule.Result
			if rule.Error != "" {
				result += ": " + rule.Error
			}
			fmt.Fprintf(&text, "    %-22s %s\n", rule.Operation+":", result)
		}
	}
	return text.String()
}

// String returns the target as in the report.
func (t targetReport) String() string {
	if t.Error != "" {
		return failed + ": " + t.Error
	}
	return t.APIVersion + " " + t.Kind
}

// oneLine returns the text of an error without line breaks.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// countAre returns a number with its noun and verb, such as "1 customization is".
func countAre(number int, noun string) string {
	if number == 1 {
		return "1 " + noun + " is"
	}
	return fmt.Sprintf("%d %ss are", number, noun)
}
