package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const metricsText = `# HELP apiserver_request_total Counter of requests.
# TYPE apiserver_request_total counter
apiserver_request_total{code="201",dry_run="",group="work.karmada.io",resource="works",subresource="",verb="POST",version="v1alpha1"} 7
apiserver_request_total{code="409",dry_run="",group="work.karmada.io",resource="works",subresource="",verb="POST",version="v1alpha1"} 1
apiserver_request_total{code="200",dry_run="",group="work.karmada.io",resource="works",subresource="status",verb="PATCH",version="v1alpha1"} 5
apiserver_request_total{code="200",dry_run="",group="work.karmada.io",resource="works",subresource="",verb="LIST",version="v1alpha1"} 100
apiserver_request_total{code="200",dry_run="",group="coordination.k8s.io",resource="leases",subresource="",verb="PUT",version="v1"} 100
apiserver_request_total{code="201",dry_run="",group="",resource="serviceaccounts",subresource="token",verb="POST",version="v1"} 100
apiserver_request_total{code="200",dry_run="",group="apps",resource="deployments",subresource="",verb="APPLY",version="v1"} 2
apiserver_request_total{code="200",dry_run="",group="",resource="",subresource="/healthz",verb="POST",version=""} 100
# TYPE process_start_time_seconds gauge
process_start_time_seconds 1.75e+09
`

func TestWritesAreCountedByResourceAndVerb(t *testing.T) {
	got, err := parseCounters(strings.NewReader(metricsText))
	if err != nil {
		t.Fatal(err)
	}
	want := counters{started: 1.75e9, writes: writes{
		{"works", "POST"}:         8,
		{"works/status", "PATCH"}: 5,
		{"deployments", "APPLY"}:  2,
	}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(counters{}, write{})); diff != "" {
		t.Errorf("parseCounters() (-want +got):\n%s", diff)
	}
	if total := got.writes.total(); total != 15 {
		t.Errorf("total() = %v, want 15", total)
	}
}

func TestTextThatIsNoMetricsIsAnError(t *testing.T) {
	if got, err := parseCounters(strings.NewReader("<html>\n")); err == nil {
		t.Errorf("parseCounters() = %v, want an error", got)
	}
}

func TestOnlyWhatWasWrittenSinceCounts(t *testing.T) {
	post, patch := write{"works", "POST"}, write{"works/status", "PATCH"}
	tests := map[string]struct {
		before, after counters
		want          writes
	}{
		"counters that grew count by what they grew": {
			before: counters{started: 1, writes: writes{post: 3}},
			after:  counters{started: 1, writes: writes{post: 5, patch: 2}},
			want:   writes{post: 2, patch: 2},
		},
		"kinds that did not grow are left out": {
			before: counters{started: 1, writes: writes{post: 3}},
			after:  counters{started: 1, writes: writes{post: 3}},
			want:   writes{},
		},
		"a restarted server counts from zero, even if it wrote more than before": {
			before: counters{started: 1, writes: writes{post: 3}},
			after:  counters{started: 2, writes: writes{post: 5}},
			want:   writes{post: 5},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.after.since(test.before), cmp.AllowUnexported(write{})); diff != "" {
				t.Errorf("since() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWritesOfMembersAreAddedUp(t *testing.T) {
	post := write{"deployments", "POST"}
	before := sample{members: []counters{{writes: writes{post: 1}}, {writes: writes{post: 2}}}}
	after := sample{members: []counters{{writes: writes{post: 4}}, {writes: writes{post: 6}}}}
	if diff := cmp.Diff(writes{post: 7}, after.memberWrites(before), cmp.AllowUnexported(write{})); diff != "" {
		t.Errorf("memberWrites() (-want +got):\n%s", diff)
	}
}
