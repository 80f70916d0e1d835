package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestPercentile(t *testing.T) {
	tests := map[string]struct {
		values []time.Duration
		p      float64
		want   time.Duration
	}{
		"no values":                         {nil, 50, 0},
		"one value":                         {[]time.Duration{7}, 99, 7},
		"median of an odd number of values": {[]time.Duration{3, 1, 2}, 50, 2},
		"median of an even number of values is the lower one": {[]time.Duration{4, 3, 1, 2}, 50, 2},
		"the 100th is the maximum":                            {[]time.Duration{1, 3, 2}, 100, 3},
		"the 0th is the minimum":                              {[]time.Duration{2, 1, 3}, 0, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := percentile(test.values, test.p); got != test.want {
				t.Errorf("percentile(%v, %v) = %d, want %d", test.values, test.p, got, test.want)
			}
		})
	}
}

func TestPercentileRank(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		numbers := rapid.SliceOfN(rapid.Int64Range(0, 1000), 1, 200).Draw(t, "values")
		p := rapid.Float64Range(1, 100).Draw(t, "p")
		values := make([]time.Duration, 0, len(numbers))
		for _, n := range numbers {
			values = append(values, time.Duration(n))
		}
		got := percentile(values, p)
		if !slices.Contains(values, got) {
			t.Fatalf("percentile(%v, %v) = %d is not one of the values", values, p, got)
		}
		below, notAbove := 0, 0
		for _, v := range values {
			if v < got {
				below++
			}
			if v <= got {
				notAbove++
			}
		}
		needed := p / 100 * float64(len(values))
		if float64(notAbove) < needed-1e-9 || float64(below) >= needed {
			t.Fatalf("percentile(%v, %v) = %d: %d less, %d not greater, %v needed", values, p, got, below, notAbove, needed)
		}
	})
}

func TestReportSave(t *testing.T) {
	r := &report{Machine: "linux/amd64, 2 CPUs", Members: 3, Templates: 10, Replicas: 1}
	post, patch := requestKind{"works", "POST"}, requestKind{"works/status", "PATCH"}
	before := sample{processes: map[string]usage{"karmada": {cpu: time.Second}}}
	after := sample{
		processes: map[string]usage{"karmada": {cpu: 2 * time.Second, rss: 300 << 20}},
		karmada:   counters{requests: requestCounts{post: 30, patch: 35}},
	}
	r.addDuration("burst", "in every member", 4*time.Second, 10)
	r.addCost("burst", before, after, 10)

	file := filepath.Join(t.TempDir(), "results.json")
	var out strings.Builder
	if err := r.save(&out, file); err != nil {
		t.Fatal(err)
	}
	want := `linux/amd64, 2 CPUs; 3 members, 10 templates, 1 replicas in each member

| scenario | what | value | unit |
|---|---|---:|---|
| burst | in every member | 4.00 | s |
| burst | in every member | 2.50 | templates/s |
| burst | CPU of karmada, per template | 100 | ms |
| burst | memory of karmada | 300 | MiB |
| burst | reads of karmada, per template | 0.00 | requests |
| burst | bytes written to karmada, per template | 0.00 | kB |
| burst | writes to karmada, per template | 6.50 | requests |
| burst | writes to karmada, per template: PATCH works/status | 3.50 | requests |
| burst | writes to karmada, per template: POST works | 3.00 | requests |
| burst | writes to members, per template | 0.00 | requests |
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var saved report
	if err := json.Unmarshal(content, &saved); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, &saved); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
}

func TestFormatSignificant(t *testing.T) {
	tests := map[string]struct {
		value float64
		want  string
	}{
		"small":                   {1.234, "1.23"},
		"tens":                    {12.34, "12.3"},
		"hundreds":                {123.4, "123"},
		"large, without exponent": {12345678.9, "12345679"},
		"negative":                {-12.34, "-12.3"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := formatSignificant(test.value); got != test.want {
				t.Errorf("formatSignificant(%v) = %q, want %q", test.value, got, test.want)
			}
		})
	}
}

func TestAddShareOfDirect(t *testing.T) {
	direct := row{directScenario, inMembers, 80, "templates/s"}
	tests := map[string]struct {
		rows []row
		want []row
	}{
		"the rate is divided by the rate of direct": {[]row{direct}, []row{{"burst", inMembers, 0.5, "of direct"}}},
		"direct is not measured":                    {nil, nil},
		"direct has only the duration":              {[]row{{directScenario, inMembers, 2, "s"}}, nil},
		"the rate of direct is zero":                {[]row{{directScenario, inMembers, 0, "templates/s"}}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := report{Rows: append(test.rows, row{"burst", inMembers, 40, "templates/s"})}
			before := len(r.Rows)
			r.addShareOfDirect("burst", inMembers, inMembers, "templates/s")
			var got []row
			got = append(got, r.Rows[before:]...)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
}
