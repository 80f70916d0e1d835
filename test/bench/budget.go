package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
)

// budgetLine limits one measurement to a recorded value and a margin. The margin covers the differences between runs and
// machines.
type budgetLine struct {
	Scenario string  `json:"scenario"`
	What     string  `json:"what"`
	Unit     string  `json:"unit"`
	Recorded float64 `json:"recorded"`
	// Margin has the unit of Recorded. It is added to MarginPercent, which is a percentage of Recorded.
	Margin        float64 `json:"margin,omitempty"`
	MarginPercent float64 `json:"marginPercent,omitempty"`
}

var errOverBudget = errors.New("over budget")

func (l budgetLine) measurement() measurement { return measurement{l.Scenario, l.What, l.Unit} }

// maximum returns the largest accepted value.
func (l budgetLine) maximum() float64 { return l.Recorded*(1+l.MarginPercent/100) + l.Margin }

// errNotMeasured returns the error for a line of the given budget file that a run does not measure.
func (l budgetLine) errNotMeasured(file string) error {
	return fmt.Errorf("%s: %s in %s is not measured: remove the line from %s, or measure it: %w", l.Scenario, l.What, l.Unit, file,
		errOverBudget)
}

func readBudget(file string) ([]budgetLine, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the budget: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	var lines []budgetLine
	if err := decoder.Decode(&lines); err != nil {
		return nil, fmt.Errorf("decoding the budget %s: %w", file, err)
	}
	return lines, nil
}

// verifyBudget returns an error for each line of the budget file that the report exceeds, and for each
// line that the report lacks.
func verifyBudget(file string, r *report) error {
	lines, err := readBudget(file)
	if err != nil {
		return err
	}
	var errs []error
	for _, line := range lines {
		value, isMeasured := r.value(line.measurement())
		switch {
		case !isMeasured:
			errs = append(errs, line.errNotMeasured(file))
		case value > line.maximum():
			errs = append(errs, fmt.Errorf("%s: %s is %s %s, and the maximum is %s (recorded: %s): reduce it, or record it in %s "+
				"with test/bench/budget --record and give the reason in the commit message: %w", line.Scenario, line.What,
				formatSignificant(value), line.Unit, formatSignificant(line.maximum()), formatSignificant(line.Recorded), file, errOverBudget))
		}
	}
	return errors.Join(errs...)
}

// recordBudget sets each recorded value in the budget file to the largest value in the report files. It keeps the margins.
func recordBudget(file string, reportFiles []string) error {
	lines, err := readBudget(file)
	if err != nil {
		return err
	}
	reports, err := readReports(reportFiles)
	if err != nil {
		return err
	}
	values, _ := valuesByMeasurement(reports)
	for i, line := range lines {
		measured := values[line.measurement()]
		if len(measured) == 0 {
			return line.errNotMeasured(file)
		}
		if lines[i].Recorded, err = strconv.ParseFloat(formatSignificant(slices.Max(measured)), 64); err != nil {
			return fmt.Errorf("rounding the value of %s: %w", line.What, err)
		}
	}
	return writeBudget(file, lines)
}

// writeBudget writes each budget line as one line of text, so that diffs are short.
func writeBudget(file string, lines []budgetLine) error {
	var text bytes.Buffer
	for i, line := range lines {
		content, err := json.Marshal(line)
		if err != nil {
			return fmt.Errorf("encoding the budget: %w", err)
		}
		separator := ",\n  "
		if i == 0 {
			separator = "[\n  "
		}
		text.WriteString(separator)
		text.Write(content)
	}
	text.WriteString("\n]\n")
	if err := os.WriteFile(file, text.Bytes(), 0o644); err != nil {
		return fmt.Errorf("writing the budget: %w", err)
	}
	return nil
}
