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
# TYPE apiserver_request_body_size_bytes histogram
apiserver_request_body_size_bytes_bucket{group="work.karmada.io",resource="works",verb="create",le="+Inf"} 7
apiserver_request_body_size_bytes_sum{group="work.karmada.io",resource="works",verb="create"} 7000
apiserver_request_body_size_bytes_count{group="work.karmada.io",resource="works",verb="create"} 7
apiserver_request_body_size_bytes_bucket{group="coordination.k8s.io",resource="leases",verb="update",le="+Inf"} 9
apiserver_request_body_size_bytes_sum{group="coordination.k8s.io",resource="leases",verb="update"} 9000
apiserver_request_body_size_bytes_count{group="coordination.k8s.io",resource="leases",verb="update"} 9
# TYPE process_start_time_seconds gauge
process_start_time_seconds 1.75e+09
`

func TestParseCounters(t *testing.T) {
	got, err := parseCounters(strings.NewReader(metricsText))
	if err != nil {
		t.Fatal(err)
	}
	want := counters{started: 1.75e9, writtenBytes: 7000, requests: requestCounts{
		{"works", "POST"}:         8,
		{"works/status", "PATCH"}: 5,
		{"works", "LIST"}:         100,
		{"deployments", "APPLY"}:  2,
	}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(counters{}, requestKind{})); diff != "" {
		t.Errorf("parseCounters() (-want +got):\n%s", diff)
	}
	if writes, reads := got.requests.writes().total(), got.requests.reads().total(); writes != 15 || reads != 100 {
		t.Errorf("%v writes and %v reads, want 15 and 100", writes, reads)
	}
}

func TestParseCountersError(t *testing.T) {
	if got, err := parseCounters(strings.NewReader("<html>\n")); err == nil {
		t.Errorf("parseCounters() = %v, want an error", got)
	}
}

func TestCountersSince(t *testing.T) {
	post, patch := requestKind{"works", "POST"}, requestKind{"works/status", "PATCH"}
	tests := map[string]struct {
		before, after counters
		want          requestCounts
	}{
		"increased counters return the increase": {
			before: counters{started: 1, requests: requestCounts{post: 3}},
			after:  counters{started: 1, requests: requestCounts{post: 5, patch: 2}},
			want:   requestCounts{post: 2, patch: 2},
		},
		"unchanged counters are left out": {
			before: counters{started: 1, requests: requestCounts{post: 3}},
			after:  counters{started: 1, requests: requestCounts{post: 3}},
			want:   requestCounts{},
		},
		"counters of a restarted server begin at zero": {
			before: counters{started: 1, requests: requestCounts{post: 3}},
			after:  counters{started: 2, requests: requestCounts{post: 5}},
			want:   requestCounts{post: 5},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.after.since(test.before).requests, cmp.AllowUnexported(requestKind{})); diff != "" {
				t.Errorf("since() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMemberWritesAreSummed(t *testing.T) {
	post := requestKind{"deployments", "POST"}
	before := sample{members: []counters{{requests: requestCounts{post: 1}}, {requests: requestCounts{post: 2}}}}
	after := sample{members: []counters{{requests: requestCounts{post: 4}}, {requests: requestCounts{post: 6}}}}
	if diff := cmp.Diff(requestCounts{post: 7}, after.memberWrites(before), cmp.AllowUnexported(requestKind{})); diff != "" {
		t.Errorf("memberWrites() (-want +got):\n%s", diff)
	}
}
