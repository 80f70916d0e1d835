package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestVerifyBudget(t *testing.T) {
	file := filepath.Join(t.TempDir(), "budget.json")
	budget := `[{"scenario": "burst", "what": "writes", "unit": "requests", "recorded": 10, "max": 11}]`
	if err := os.WriteFile(file, []byte(budget), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		row     row
		wantErr string
	}{
		"below the maximum":                 {row{"burst", "writes", 9, "requests"}, ""},
		"the maximum":                       {row{"burst", "writes", 11, "requests"}, ""},
		"above the maximum":                 {row{"burst", "writes", 11.5, "requests"}, "burst: writes is 11.5 requests, and the maximum is 11.0"},
		"the scenario is not measured":      {row{"update", "writes", 9, "requests"}, "burst: writes in requests is not measured"},
		"the value has a different unit":    {row{"burst", "writes", 9, "kB"}, "not measured"},
		"the value has a different subject": {row{"burst", "reads", 9, "requests"}, "not measured"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := verifyBudget(file, &report{Rows: []row{test.row}})
			if (err != nil) != (test.wantErr != "") || err != nil && (!strings.Contains(err.Error(), test.wantErr) || !errors.Is(err, errOverBudget)) {
				t.Errorf("the error is %v, want %q", err, test.wantErr)
			}
		})
	}
}

func TestVerifyBudgetNamesTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "budget.json")
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := verifyBudget(file, &report{}); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("the error for an invalid file is %v", err)
	}
}
