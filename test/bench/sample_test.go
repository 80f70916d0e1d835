package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const programMetricsText = `# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total 12.34
# TYPE process_resident_memory_bytes gauge
process_resident_memory_bytes 5.24288e+07
# TYPE go_memstats_mallocs_total counter
go_memstats_mallocs_total 1000
# TYPE go_memstats_alloc_bytes_total counter
go_memstats_alloc_bytes_total 64000
`

func serveText(t *testing.T, text string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestReadUsageOfProgram(t *testing.T) {
	o := options{programMetrics: map[string]string{"karmada-scheduler": serveText(t, programMetricsText)}}
	used, allocated, err := (&bench{options: o}).readUsage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantUsage := map[string]usage{"karmada-scheduler": {cpu: 12340 * time.Millisecond, rss: 50 << 20}}
	if diff := cmp.Diff(wantUsage, used, cmp.AllowUnexported(usage{})); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
	wantAllocations := map[string]allocations{"karmada-scheduler": {objects: 1000, bytes: 64000}}
	if diff := cmp.Diff(wantAllocations, allocated, cmp.AllowUnexported(allocations{})); diff != "" {
		t.Errorf("allocations (-want +got):\n%s", diff)
	}
}

func TestReadUsageErrors(t *testing.T) {
	withoutCPU := strings.ReplaceAll(programMetricsText, "process_cpu_seconds_total", "other_seconds_total")
	tests := map[string]struct {
		text, name string
		want       error
		mentions   string
	}{
		"a missing metric":      {withoutCPU, "karmada-scheduler", errMissingMetric, "process_cpu_seconds_total"},
		"the name of a process": {programMetricsText, "self", errDuplicateName, "self"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := options{processes: map[string]int{"self": os.Getpid()}, programMetrics: map[string]string{test.name: serveText(t, test.text)}}
			_, _, err := (&bench{options: o}).readUsage(t.Context())
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.mentions) {
				t.Errorf("the error is %v, want %v with %q", err, test.want, test.mentions)
			}
		})
	}
}

func TestReportProgramUsage(t *testing.T) {
	before := sample{
		processes:   map[string]usage{"karmada-scheduler": {cpu: time.Second}},
		allocations: map[string]allocations{"karmada-scheduler": {objects: 1000, bytes: 64000}},
	}
	after := sample{
		processes:   map[string]usage{"karmada-scheduler": {cpu: 1100 * time.Millisecond, rss: 50 << 20}},
		allocations: map[string]allocations{"karmada-scheduler": {objects: 3000, bytes: 84000}},
	}
	var r report
	r.addCost("burst", before, after, 10)
	want := []row{
		{"burst", "CPU of karmada-scheduler, per template", 10, "ms"},
		{"burst", "allocations of karmada-scheduler, per template", 200, "objects"},
		{"burst", "allocations of karmada-scheduler, per template", 2, "kB"},
		{"burst", "memory of karmada-scheduler", 50, "MiB"},
	}
	if diff := cmp.Diff(want, r.Rows[:len(want)]); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}
