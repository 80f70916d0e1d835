package search

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"karmada.io/karmada/internal/servers/search/feed"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

type fixedReport []objectcache.SourceReport

func (f fixedReport) Report() []objectcache.SourceReport { return f }

func TestMetricsReportTheParts(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	m, err := newMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	m.cache = fixedReport{
		{Cluster: "m1", APIVersion: "apps/v1", Kind: "Deployment", State: objectcache.Current, Objects: 3, Bytes: 900},
		{Cluster: "m1", APIVersion: "v1", Kind: "Nothing", State: objectcache.NotServed},
	}
	m.indexState = func() feed.State { return feed.State{ClusterState: feed.ClusterState{Lag: 2 * time.Second}} }
	m.openSearch = func() []openSearchState {
		return []openSearchState{{backend: "https://o:9200", rejected: 4, feed: feed.State{ClusterState: feed.ClusterState{Err: errors.New("full"), Lag: time.Minute}}}}
	}
	m.countWatches(2)
	m.countWatches(-1)
	want := `
# HELP karmada_search_cached_bytes Memory of the cached objects in bytes, by member cluster and kind.
# TYPE karmada_search_cached_bytes gauge
karmada_search_cached_bytes{cluster="m1",kind="apps/v1 Deployment"} 900
# HELP karmada_search_cached_objects Cached objects by member cluster and kind.
# TYPE karmada_search_cached_objects gauge
karmada_search_cached_objects{cluster="m1",kind="apps/v1 Deployment"} 3
# HELP karmada_search_index_lag_seconds Age in seconds of the oldest change that is not in the full-text index, 0 if there is none.
# TYPE karmada_search_index_lag_seconds gauge
karmada_search_index_lag_seconds 2
# HELP karmada_search_opensearch_failing 1 if OpenSearch does not accept objects, otherwise 0.
# TYPE karmada_search_opensearch_failing gauge
karmada_search_opensearch_failing{backend="https://o:9200"} 1
# HELP karmada_search_opensearch_lag_seconds Age in seconds of the oldest change that is not in OpenSearch, 0 if there is none.
# TYPE karmada_search_opensearch_lag_seconds gauge
karmada_search_opensearch_lag_seconds{backend="https://o:9200"} 60
# HELP karmada_search_opensearch_rejected_objects Objects that OpenSearch rejects for their content or size.
# TYPE karmada_search_opensearch_rejected_objects gauge
karmada_search_opensearch_rejected_objects{backend="https://o:9200"} 4
# HELP karmada_search_proxy_watches Open watches of the global proxy.
# TYPE karmada_search_proxy_watches gauge
karmada_search_proxy_watches 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	if _, err := newMetrics(registry); err != nil {
		t.Errorf("a second server in the process: %v", err)
	}
	m.unregister()
	if count, err := testutil.GatherAndCount(registry); err != nil || count != 0 {
		t.Errorf("%d metrics remain after the end of the server, %v", count, err)
	}
}

func TestTheNumberOfTimeSeriesIsBounded(t *testing.T) {
	t.Parallel()
	m, err := newMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	reports := make(fixedReport, maxSources+10)
	for i := range reports {
		reports[i] = objectcache.SourceReport{Cluster: fmt.Sprint("m", i), Kind: "Pod", State: objectcache.Current, Objects: 1, Bytes: int64(i)}
	}
	m.cache = reports
	m.updateSources()
	if got := testutil.CollectAndCount(m.objects); got != maxSources+1 {
		t.Errorf("%d time series, want %d", got, maxSources+1)
	}
	if got := testutil.ToFloat64(m.objects.WithLabelValues(otherLabel, otherLabel)); got != 10 {
		t.Errorf("%v objects are counted together, want those of the 10 smallest sources", got)
	}
}
