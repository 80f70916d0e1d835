package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// budgetLine is the recorded value of one measurement, and the largest accepted value.
type budgetLine struct {
	Scenario string  `json:"scenario"`
	What     string  `json:"what"`
	Unit     string  `json:"unit"`
	Recorded float64 `json:"recorded"`
	Max      float64 `json:"max"`
}

var errOverBudget = errors.New("over budget")

// verifyBudget returns an error for each line of the budget file that the report exceeds, and for each
// line that the report lacks.
func verifyBudget(file string, r *report) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the budget: %w", err)
	}
	var lines []budgetLine
	if err := json.Unmarshal(content, &lines); err != nil {
		return fmt.Errorf("decoding the budget %s: %w", file, err)
	}
	values := map[measurement]float64{}
	for _, row := range r.Rows {
		values[measurement{row.Scenario, row.What, row.Unit}] = row.Value
	}
	var errs []error
	for _, line := range lines {
		value, isMeasured := values[measurement{line.Scenario, line.What, line.Unit}]
		switch {
		case !isMeasured:
			errs = append(errs, fmt.Errorf("%s: %s in %s is not measured: remove the line from %s, or measure it: %w", line.Scenario, line.What,
				line.Unit, file, errOverBudget))
		case value > line.Max:
			errs = append(errs, fmt.Errorf("%s: %s is %s %s, and the maximum is %s (recorded: %s): reduce it, or raise the line in %s and give the reason in the commit message: %w",
				line.Scenario, line.What, formatSignificant(value), line.Unit, formatSignificant(line.Max), formatSignificant(line.Recorded), file,
				errOverBudget))
		}
	}
	return errors.Join(errs...)
}
