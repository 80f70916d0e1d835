package tainteviction

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestBacklogMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	measured, err := newEvictionMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	b := newBacklog(measured, QueueName)
	web, db := request{client.ObjectKey{Name: "web"}, "m1"}, request{client.ObjectKey{Name: "db"}, "m1"}
	shows := func(depth, kinds string) {
		t.Helper()
		want := "# HELP eviction_queue_depth Bindings in the queue to be checked against the taints of a cluster, or to be evicted.\n" +
			"# TYPE eviction_queue_depth gauge\neviction_queue_depth{name=\"binding-eviction\"} " + depth + "\n"
		if kinds != "" {
			want += "# HELP eviction_kind_total Bindings in the queue to be checked against the taints of a cluster, or to be evicted, by the kind of their objects.\n" +
				"# TYPE eviction_kind_total gauge\neviction_kind_total{member_cluster=\"m1\",resource_kind=\"Deployment\"} " + kinds + "\n"
		}
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "eviction_queue_depth", "eviction_kind_total"); err != nil {
			t.Error(err)
		}
	}
	for _, each := range []request{web, db, web} {
		b.add(each, "Deployment")
	}
	shows("2", "2")
	b.remove(web)
	b.remove(web)
	shows("1", "1")
	b.remove(db)
	shows("0", "")
}
