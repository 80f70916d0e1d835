package interpret

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/interpreter/script"
)

// failed is the result for an invalid script. The result for a valid script is PASS, and for an operation without a script
// UNSET.
const failed = "ERROR"

// checkReport is the validation result for one customization.
type checkReport struct {
	Source string       `json:"source"`
	Name   string       `json:"name"`
	Target targetReport `json:"target"`
	Rules  []ruleReport `json:"rules"`
}

// targetReport is the target kind of a customization. Error is empty if the kind is complete and valid.
type targetReport struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Error      string `json:"error,omitempty"`
}

// ruleReport is the validation result for one script. Error is empty unless Result is ERROR.
type ruleReport struct {
	Operation string `json:"operation"`
	Result    string `json:"result"`
	Error     string `json:"error,omitempty"`
}

// reportValidity compiles the scripts of all customizations, and prints a report.
func (o *options) reportValidity(sources []source) error {
	reports := []checkReport{}
	failures := 0
	for _, source := range sources {
		report := checkReport{Source: source.location, Name: source.Name, Target: validateTarget(source.Spec.Target),
			Rules: validateScripts(source)}
		reports = append(reports, report)
		if report.Target.Error != "" || slices.ContainsFunc(report.Rules, func(rule ruleReport) bool { return rule.Result == failed }) {
			failures++
		}
	}
	o.noteUnusedScripts(sources, interpreter.ScriptOperations()...)
	var err error
	if o.hasOutputFormat() {
		err = o.printDocument(map[string]any{"customizations": reports})
	} else {
		_, err = fmt.Fprint(o.Program.Out, formatReports(reports))
	}
	switch {
	case err != nil:
		return err
	case failures > 0 && len(sources) == 1:
		return fmt.Errorf("1 of 1 customization is not valid")
	case failures > 0:
		return fmt.Errorf("%d of %d customizations are not valid", failures, len(sources))
	}
	return nil
}

func validateTarget(target configv1alpha1.CustomizationTarget) targetReport {
	report := targetReport{APIVersion: target.APIVersion, Kind: target.Kind}
	_, invalid := schema.ParseGroupVersion(target.APIVersion)
	switch {
	case target.APIVersion == "" && target.Kind == "":
		report.Error = "spec.target.apiVersion and spec.target.kind are not set"
	case target.APIVersion == "":
		report.Error = "spec.target.apiVersion is not set"
	case target.Kind == "":
		report.Error = "spec.target.kind is not set"
	case invalid != nil:
		report.Error = fmt.Sprintf("spec.target.apiVersion is %q: write group/version, or v1 for the core group", target.APIVersion)
	}
	return report
}

func validateScripts(source source) (reports []ruleReport) {
	for _, operation := range interpreter.ScriptOperations() {
		report := ruleReport{Operation: string(operation.Name), Result: "UNSET"}
		if text := operation.Script(&source.Spec.Customizations); text != "" {
			report.Result = "PASS"
			if err := script.Check(text); err != nil {
				report.Result, report.Error = failed, oneLine(err)
			}
		}
		reports = append(reports, report)
	}
	return reports
}

// formatReports returns the reports as text.
func formatReports(reports []checkReport) string {
	var text strings.Builder
	for _, report := range reports {
		target := report.Target.APIVersion + " " + report.Target.Kind
		if report.Target.Error != "" {
			target = failed + ": " + report.Target.Error
		}
		fmt.Fprintf(&text, "%s\nSOURCE: %s\nTARGET: %s\nRULERS:\n", strings.Repeat("-", 35), report.Source, target)
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

// oneLine returns the text of an error without line breaks.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
