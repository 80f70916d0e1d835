package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
)

// measurement identifies the rows of several reports that have the same meaning.
type measurement struct{ scenario, what, unit string }

// comparison holds the values of one measurement in the reports of the base build and of the
// current build, in the order of the runs.
type comparison struct {
	measurement
	base, current []float64
}

// compareReports prints the medians and the ranges of each measurement in the given report files,
// and the ratio of the medians. Measurements that one build lacks are left out.
func compareReports(out io.Writer, baseFiles, currentFiles []string) error {
	base, err := readReports(baseFiles)
	if err != nil {
		return err
	}
	current, err := readReports(currentFiles)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s; %d members, %d templates; %d runs of the base and %d runs of the current build: median (minimum to maximum)\n\n",
		current[0].Machine, current[0].Members, current[0].Templates, len(base), len(current))
	text.WriteString("| scenario | what | unit | base | current | ratio | ranges overlap |\n|---|---|---|---:|---:|---:|---|\n")
	for _, c := range compareRows(base, current) {
		fmt.Fprintf(&text, "| %s | %s | %s | %s | %s | %s | %s |\n", c.scenario, c.what, c.unit, formatRange(c.base), formatRange(c.current),
			c.ratio(), c.overlap())
	}
	_, err = text.WriteTo(out)
	return err
}

func readReports(files []string) ([]report, error) {
	reports := make([]report, len(files))
	for i, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading a report: %w", err)
		}
		if err := json.Unmarshal(content, &reports[i]); err != nil {
			return nil, fmt.Errorf("decoding the report %s: %w", file, err)
		}
	}
	return reports, nil
}

// compareRows returns the comparisons in the row order of the current build's reports.
func compareRows(base, current []report) []comparison {
	baseValues, _ := valuesByMeasurement(base)
	currentValues, order := valuesByMeasurement(current)
	var comparisons []comparison
	for _, m := range order {
		if len(baseValues[m]) > 0 {
			comparisons = append(comparisons, comparison{m, baseValues[m], currentValues[m]})
		}
	}
	return comparisons
}

func valuesByMeasurement(reports []report) (values map[measurement][]float64, order []measurement) {
	values = map[measurement][]float64{}
	for _, r := range reports {
		for _, row := range r.Rows {
			m := row.measurement()
			if values[m] == nil {
				order = append(order, m)
			}
			values[m] = append(values[m], row.Value)
		}
	}
	return values, order
}

// ratio returns the current median divided by the base median, or "" if the base median is zero.
func (c comparison) ratio() string {
	base := median(c.base)
	if base == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", median(c.current)/base)
}

// overlap returns "yes" if the ranges of both builds overlap: the difference may then be noise.
func (c comparison) overlap() string {
	if slices.Max(c.base) >= slices.Min(c.current) && slices.Max(c.current) >= slices.Min(c.base) {
		return "yes"
	}
	return "no"
}

// median returns the middle value, or the mean of the two middle values. It needs at least one value.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

func formatRange(values []float64) string {
	return fmt.Sprintf("%s (%s to %s)", formatSignificant(median(values)), formatSignificant(slices.Min(values)),
		formatSignificant(slices.Max(values)))
}
