package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"runtime"
	"slices"
	"time"
)

// report collects results in the order in which they are added.
type report struct {
	Machine   string `json:"machine"`
	Members   int    `json:"members"`
	Templates int    `json:"templates"`
	Replicas  int32  `json:"replicasPerMember"`
	Rows      []row  `json:"results"`
}

// row is one result.
type row struct {
	Scenario string  `json:"scenario"`
	What     string  `json:"what"`
	Value    float64 `json:"value"`
	Unit     string  `json:"unit"`
}

func (r row) measurement() measurement { return measurement{r.Scenario, r.What, r.Unit} }

func newReport(o options) *report {
	return &report{
		Machine:   fmt.Sprintf("%s/%s, %d CPUs", runtime.GOOS, runtime.GOARCH, runtime.NumCPU()),
		Members:   len(o.memberContexts),
		Templates: o.templates,
		Replicas:  o.replicas,
	}
}

func (r *report) add(scenario, quantity string, value float64, unit string) {
	r.Rows = append(r.Rows, row{scenario, quantity, value, unit})
}

// addDuration reports a duration for count templates, and the rate.
func (r *report) addDuration(scenario, quantity string, duration time.Duration, count int) {
	r.addRate(scenario, quantity, duration, count, "templates/s")
}

// addRate reports a duration for count objects, and the rate with its unit.
func (r *report) addRate(scenario, quantity string, duration time.Duration, count int, unit string) {
	r.add(scenario, quantity, duration.Seconds(), "s")
	r.add(scenario, quantity, float64(count)/duration.Seconds(), unit)
}

// addPercentiles reports the p50 and the p99 of the given times.
func (r *report) addPercentiles(scenario, quantity string, times []time.Duration) {
	r.add(scenario, quantity+", p50", milliseconds(percentile(times, 50)), "ms")
	r.add(scenario, quantity+", p99", milliseconds(percentile(times, 99)), "ms")
}

// addShareOfDirect reports the scenario's quantity divided by directQuantity of the scenario direct, which has the same unit.
// It reports nothing if the run does not include direct.
func (r *report) addShareOfDirect(scenario, quantity, directQuantity, unit string) {
	value, _ := r.value(measurement{scenario, quantity, unit})
	if directValue, isMeasured := r.value(measurement{directScenario, directQuantity, unit}); isMeasured && directValue > 0 {
		r.add(scenario, quantity, value/directValue, "of direct")
	}
}

// value returns the value of the last row with the given measurement.
func (r *report) value(m measurement) (value float64, isMeasured bool) {
	for _, row := range slices.Backward(r.Rows) {
		if row.measurement() == m {
			return row.Value, true
		}
	}
	return 0, false
}

// addCost reports the difference between two samples, divided by the number of templates.
func (r *report) addCost(scenario string, before, after sample, count int) {
	for _, name := range slices.Sorted(maps.Keys(after.processes)) {
		cpu := after.processes[name].cpu - before.processes[name].cpu
		r.add(scenario, "CPU of "+name+", per template", milliseconds(cpu)/float64(count), "ms")
	}
	for _, name := range slices.Sorted(maps.Keys(after.allocations)) {
		a, b := after.allocations[name], before.allocations[name]
		r.add(scenario, "allocations of "+name+", per template", (a.objects-b.objects)/float64(count), "objects")
		r.add(scenario, "allocations of "+name+", per template", (a.bytes-b.bytes)/float64(count)/1000, "kB")
	}
	r.addMemory(scenario, after)
	karmada := after.karmadaRequests(before)
	r.addRequests(scenario, "reads of karmada, per template", karmada.requests.reads(), count)
	r.add(scenario, "bytes written to karmada, per template", karmada.writtenBytes/float64(count)/1000, "kB")
	r.addRequests(scenario, "writes to karmada, per template", karmada.requests.writes(), count)
	r.addRequests(scenario, "writes to members, per template", after.memberWrites(before), count)
}

func (r *report) addMemory(scenario string, s sample) {
	for _, name := range slices.Sorted(maps.Keys(s.processes)) {
		r.add(scenario, "memory of "+name, float64(s.processes[name].rss)/(1<<20), "MiB")
	}
}

// addRequests reports the number of requests, then each kind, the most frequent first.
func (r *report) addRequests(scenario, quantity string, counts requestCounts, count int) {
	r.add(scenario, quantity, counts.total()/float64(count), "requests")
	kinds := slices.SortedFunc(maps.Keys(counts), func(a, b requestKind) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a.String(), b.String()))
	})
	for _, kind := range kinds {
		r.add(scenario, quantity+": "+kind.String(), counts[kind]/float64(count), "requests")
	}
}

// save prints the results. If file is not empty, it also writes them to the file as JSON.
func (r *report) save(out io.Writer, file string) error {
	if err := r.markdown(out); err != nil {
		return fmt.Errorf("printing the results: %w", err)
	}
	if file == "" {
		return nil
	}
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the results: %w", err)
	}
	if err := os.WriteFile(file, append(content, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	return nil
}

func (r *report) markdown(out io.Writer) error {
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s; %d members, %d templates, %d replicas in each member\n\n", r.Machine, r.Members, r.Templates, r.Replicas)
	text.WriteString("| scenario | what | value | unit |\n|---|---|---:|---|\n")
	for _, row := range r.Rows {
		fmt.Fprintf(&text, "| %s | %s | %s | %s |\n", row.Scenario, row.What, formatSignificant(row.Value), row.Unit)
	}
	_, err := text.WriteTo(out)
	return err
}

// formatSignificant formats a value with at least three significant digits and without an
// exponent.
func formatSignificant(value float64) string {
	decimals := 2
	if magnitude := math.Abs(value); magnitude >= 100 {
		decimals = 0
	} else if magnitude >= 10 {
		decimals = 1
	}
	return fmt.Sprintf("%.*f", decimals, value)
}

// percentile returns the smallest value that at least p percent of the values do not exceed
// (nearest rank). It returns zero without values.
func percentile(values []time.Duration, p float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
