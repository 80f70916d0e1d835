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

func TestParseCounters(t *testing.T) {
	got, err := parseCounters(strings.NewReader(metricsText))
	if err != nil {
		t.Fatal(err)
	}
	want := counters{started: 1.75e9, writes: writeCounts{
		{"works", "POST"}:         8,
		{"works/status", "PATCH"}: 5,
		{"deployments", "APPLY"}:  2,
	}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(counters{}, writeKind{})); diff != "" {
		t.Errorf("parseCounters() (-want +got):\n%s", diff)
	}
	if total := got.writes.total(); total != 15 {
		t.Errorf("total() = %v, want 15", total)
	}
}

func TestParseCountersError(t *testing.T) {
	if got, err := parseCounters(strings.NewReader("<html>\n")); err == nil {
		t.Errorf("parseCounters() = %v, want an error", got)
	}
}

func TestWritesSince(t *testing.T) {
	post, patch := writeKind{"works", "POST"}, writeKind{"works/status", "PATCH"}
	tests := map[string]struct {
		before, after counters
		want          writeCounts
	}{
		"increased counters return the increase": {
			before: counters{started: 1, writes: writeCounts{post: 3}},
			after:  counters{started: 1, writes: writeCounts{post: 5, patch: 2}},
			want:   writeCounts{post: 2, patch: 2},
		},
		"unchanged counters are left out": {
			before: counters{started: 1, writes: writeCounts{post: 3}},
			after:  counters{started: 1, writes: writeCounts{post: 3}},
			want:   writeCounts{},
		},
		"counters of a restarted server begin at zero": {
			before: counters{started: 1, writes: writeCounts{post: 3}},
			after:  counters{started: 2, writes: writeCounts{post: 5}},
			want:   writeCounts{post: 5},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.after.writesSince(test.before), cmp.AllowUnexported(writeKind{})); diff != "" {
				t.Errorf("writesSince() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMemberWritesAreSummed(t *testing.T) {
	post := writeKind{"deployments", "POST"}
	before := sample{members: []counters{{writes: writeCounts{post: 1}}, {writes: writeCounts{post: 2}}}}
	after := sample{members: []counters{{writes: writeCounts{post: 4}}, {writes: writeCounts{post: 6}}}}
	if diff := cmp.Diff(writeCounts{post: 7}, after.memberWrites(before), cmp.AllowUnexported(writeKind{})); diff != "" {
		t.Errorf("memberWrites() (-want +got):\n%s", diff)
	}
}
