package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVerifyBudget(t *testing.T) {
	file := filepath.Join(t.TempDir(), "budget.json")
	budget := `[{"scenario": "burst", "what": "writes", "unit": "requests", "recorded": 10, "margin": 0.5, "marginPercent": 5}]`
	if err := os.WriteFile(file, []byte(budget), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		row     row
		wantErr string
	}{
		"below the maximum":            {row{"burst", "writes", 9, "requests"}, ""},
		"the maximum":                  {row{"burst", "writes", 11, "requests"}, ""},
		"above the maximum":            {row{"burst", "writes", 11.5, "requests"}, "burst: writes is 11.5 requests, and the maximum is 11.0"},
		"the scenario is not measured": {row{"update", "writes", 9, "requests"}, "burst: writes in requests is not measured"},
		"the value has another unit":   {row{"burst", "writes", 9, "kB"}, "not measured"},
		"another quantity is measured": {row{"burst", "reads", 9, "requests"}, "not measured"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := verifyBudget(file, &report{Rows: []row{test.row}})
			if (err != nil) != (test.wantErr != "") ||
				err != nil && (!strings.Contains(err.Error(), test.wantErr) || !errors.Is(err, errOverBudget)) {
				t.Errorf("the error is %v, want %q", err, test.wantErr)
			}
		})
	}
}

func TestRecordBudget(t *testing.T) {
	file := filepath.Join(t.TempDir(), "budget.json")
	lines := []budgetLine{
		{Scenario: "burst", What: "writes", Unit: "requests", Recorded: 10, Margin: 1},
		{Scenario: "burst", What: "allocations", Unit: "objects", Recorded: 1000, MarginPercent: 15},
	}
	if err := writeBudget(file, lines); err != nil {
		t.Fatal(err)
	}
	reports := []string{
		writeReport(t, "first", row{"burst", "writes", 8.126, "requests"}, row{"burst", "allocations", 1234.5, "objects"}),
		writeReport(t, "second", row{"burst", "writes", 7, "requests"}, row{"burst", "allocations", 1300.2, "objects"}),
	}
	if err := recordBudget(file, reports); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := `[
  {"scenario":"burst","what":"writes","unit":"requests","recorded":8.13,"margin":1},
  {"scenario":"burst","what":"allocations","unit":"objects","recorded":1300,"marginPercent":15}
]
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("budget (-want +got):\n%s", diff)
	}
	if err := recordBudget(file, []string{writeReport(t, "third", row{"burst", "writes", 7, "requests"})}); err == nil ||
		!strings.Contains(err.Error(), "burst: allocations in objects is not measured") {
		t.Errorf("the error for a report without allocations is %v", err)
	}
}

func TestBudgetErrorsNameTheFile(t *testing.T) {
	for name, content := range map[string]string{"no JSON": "{", "an unknown field": `[{"max": 1}]`} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "budget.json")
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := verifyBudget(file, &report{}); err == nil || !strings.Contains(err.Error(), file) {
				t.Errorf("the error is %v, want the name of the file", err)
			}
		})
	}
}

func TestCommittedBudget(t *testing.T) {
	lines, err := readBudget("budget.json")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[measurement]bool{}
	for _, line := range lines {
		if seen[line.measurement()] || line.Recorded <= 0 || line.maximum() <= line.Recorded {
			t.Errorf("%s: %s in %s is a duplicate, or has no recorded value or no margin", line.Scenario, line.What, line.Unit)
		}
		seen[line.measurement()] = true
	}
	if len(lines) == 0 {
		t.Error("the budget has no lines")
	}
}
