package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func writeReport(t *testing.T, name string, rows ...row) string {
	t.Helper()
	content, err := json.Marshal(report{Machine: "test", Rows: rows})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestCompareReports(t *testing.T) {
	cpu := func(value float64) row { return row{"burst", "CPU", value, "ms"} }
	base := []string{
		writeReport(t, "base1", cpu(50), row{"burst", "removed", 1, "s"}, row{"burst", "writes", 0, "requests"}),
		writeReport(t, "base2", cpu(60), row{"burst", "writes", 0, "requests"}),
		writeReport(t, "base3", cpu(40), row{"burst", "writes", 0, "requests"}),
	}
	current := []string{
		writeReport(t, "current1", cpu(30), row{"burst", "writes", 1, "requests"}),
		writeReport(t, "current2", cpu(20), row{"burst", "writes", 2, "requests"}, row{"burst", "new", 1, "s"}),
	}
	var out bytes.Buffer
	if err := compareReports(&out, base, current); err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(out.String(), "|---|\n")
	want := `| burst | CPU | ms | 50.0 (40.0 to 60.0) | 25.0 (20.0 to 30.0) | 0.50 | no |
| burst | writes | requests | 0.00 (0.00 to 0.00) | 1.50 (1.00 to 2.00) |  | no |
`
	if diff := cmp.Diff(want, table); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestCompareReportsNamesTheFile(t *testing.T) {
	invalid := filepath.Join(t.TempDir(), "invalid")
	if err := os.WriteFile(invalid, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{invalid, filepath.Join(t.TempDir(), "missing")} {
		if err := compareReports(&bytes.Buffer{}, []string{file}, []string{file}); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("the error for %s is %v", file, err)
		}
	}
}
