package estimators

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/capacity"
)

// estimatorFunc is an Estimator for any demand.
type estimatorFunc func(ctx context.Context, clusters []*clusterv1alpha1.Cluster, report Report)

func (e estimatorFunc) Estimate(ctx context.Context, _ capacity.Demand, clusters []*clusterv1alpha1.Cluster, report Report) {
	e(ctx, clusters, report)
}

// reporting returns an estimator that reports the counts in the order of the clusters.
func reporting(counts ...int32) Estimator {
	return estimatorFunc(func(_ context.Context, _ []*clusterv1alpha1.Cluster, report Report) {
		for i, count := range counts {
			report(i, capacity.Estimate{Count: count})
		}
	})
}

// reportingAfter returns an estimator that waits before it reports. The wait ends early if the
// context ends.
func reportingAfter(delay time.Duration, counts ...int32) Estimator {
	return estimatorFunc(func(ctx context.Context, clusters []*clusterv1alpha1.Cluster, report Report) {
		select {
		case <-time.After(delay):
			reporting(counts...).Estimate(ctx, capacity.Demand{}, clusters, report)
		case <-ctx.Done():
		}
	})
}

// ignoringContext returns an estimator that reports after the delay, even if its context ended
// before.
func ignoringContext(delay time.Duration, counts ...int32) Estimator {
	return estimatorFunc(func(ctx context.Context, clusters []*clusterv1alpha1.Cluster, report Report) {
		reportingAfter(delay, counts...).Estimate(context.WithoutCancel(ctx), capacity.Demand{}, clusters, report)
	})
}

// reportingFirst returns an estimator that reports one count for the first cluster, and then waits
// until its context ends.
func reportingFirst(count int32) Estimator {
	return estimatorFunc(func(ctx context.Context, _ []*clusterv1alpha1.Cluster, report Report) {
		report(0, capacity.Estimate{Count: count})
		<-ctx.Done()
	})
}

func failing(err error) Estimator {
	return estimatorFunc(func(_ context.Context, clusters []*clusterv1alpha1.Cluster, report Report) {
		for i := range clusters {
			report(i, capacity.Estimate{Err: err})
		}
	})
}

func clustersNamed(names ...string) []*clusterv1alpha1.Cluster {
	clusters := make([]*clusterv1alpha1.Cluster, len(names))
	for i, name := range names {
		clusters[i] = &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	return clusters
}

// describeLimits returns the texts of the limits.
func describeLimits(limits []capacity.Limit) []string {
	texts := make([]string, len(limits))
	for i := range limits {
		texts[i] = limits[i].String()
	}
	return texts
}

func TestAsk(t *testing.T) {
	const timeout = 3 * time.Second
	tests := map[string]struct {
		table []Row
		want  []string
		took  time.Duration
	}{
		"no estimators": {want: []string{"unknown", "unknown"}},
		"one that reads memory": {
			table: []Row{{"near", 0, reporting(5, 7)}},
			want:  []string{"5 (near)", "7 (near)"},
		},
		"each cluster has the limit of the estimator with the smallest count": {
			table: []Row{{"near", 0, reporting(5, 7)}, {"far", timeout, reporting(9, 2)}},
			want:  []string{"5 (near)", "2 (far)"},
		},
		"the order of the table counts, not the order of the answers": {
			table: []Row{{"far", timeout, reportingAfter(time.Second, 5, 7)}, {"near", 0, reporting(5, 7)}},
			want:  []string{"5 (far)", "7 (far)"},
			took:  time.Second,
		},
		"estimators run at the same time": {
			table: []Row{{"a", timeout, reportingAfter(time.Second, 9, 9)}, {"b", timeout, reportingAfter(2*time.Second, 8, 8)}, {"c", timeout, reportingAfter(time.Second, 7, 7)}},
			want:  []string{"7 (c)", "7 (c)"},
			took:  2 * time.Second,
		},
		"an estimator that reads memory does not delay the start of the others": {
			table: []Row{{"near", 0, reportingAfter(2*time.Second, 9, 9)}, {"far", timeout, reportingAfter(2*time.Second, 8, 8)}},
			want:  []string{"8 (far)", "8 (far)"},
			took:  2 * time.Second,
		},
		"a slow estimator is given up at its own deadline": {
			table: []Row{{"slow", time.Second, reportingAfter(time.Hour, 1, 1)}, {"far", timeout, reportingAfter(2*time.Second, 8, 8)}},
			want:  []string{"8 (far); slow: no response within 1s", "8 (far); slow: no response within 1s"},
			took:  2 * time.Second,
		},
		"estimates before the deadline count": {
			table: []Row{{"near", 0, reporting(5, 7)}, {"far", timeout, reportingFirst(3)}},
			want:  []string{"3 (far)", "7 (near); far: no response within 3s"},
			took:  timeout,
		},
		"an estimator that ignores its context does not delay the result": {
			table: []Row{{"near", 0, reporting(5, 7)}, {"stuck", timeout, ignoringContext(time.Minute, 1, 1)}},
			want:  []string{"5 (near); stuck: no response within 3s", "7 (near); stuck: no response within 3s"},
			took:  timeout,
		},
		"an estimator that panics keeps what it reported": {
			table: []Row{{"near", 0, reporting(5, 7)}, {"far", timeout, estimatorFunc(func(_ context.Context, _ []*clusterv1alpha1.Cluster, report Report) {
				report(1, capacity.Estimate{Count: 3})
				panic("no connection")
			})}},
			want: []string{"5 (near); far: the estimator panicked: no connection", "3 (far)"},
		},
		"an error of an estimator": {
			table: []Row{{"far", timeout, failing(errors.New("connection refused"))}, {"near", 0, reporting(5, 7)}},
			want:  []string{"5 (near); far: connection refused", "7 (near); far: connection refused"},
		},
		"a cluster that an estimator does not know": {
			table: []Row{{"near", 0, reporting(5, 7)}, {"far", timeout, reporting(3, capacity.Unknown)}},
			want:  []string{"3 (far)", "7 (near)"},
		},
		"a cluster for which an estimator reports nothing": {
			table: []Row{{"near", 0, reporting(5)}, {"far", timeout, reporting(3)}},
			want:  []string{"3 (far)", "unknown; near: the estimator returned no estimate; far: the estimator returned no estimate"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				started := time.Now()
				limits := Ask(t.Context(), test.table, capacity.Demand{}, clustersNamed("a", "b"))
				if took := time.Since(started); took != test.took {
					t.Errorf("took %s, want %s", took, test.took)
				}
				// Reports after the deadline must not change the result. The test fails if a
				// goroutine still runs at the end of the test.
				<-time.After(time.Hour)
				if diff := cmp.Diff(test.want, describeLimits(limits)); diff != "" {
					t.Errorf("limits (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestAskEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(errors.New("the scheduler stops")) })
		started := time.Now()
		limits := Ask(ctx, []Row{{"far", time.Minute, reportingAfter(time.Hour, 1)}}, capacity.Demand{}, clustersNamed("a"))
		if took := time.Since(started); took != time.Second {
			t.Errorf("took %s, want 1s", took)
		}
		if diff := cmp.Diff([]string{"unknown; far: the scheduler stops"}, describeLimits(limits)); diff != "" {
			t.Errorf("limits (-want +got):\n%s", diff)
		}
	})
}

// The estimator reports from a separate goroutine for each cluster, as some clients do.
func TestReportsOfManyGoroutines(t *testing.T) {
	clusters := make([]*clusterv1alpha1.Cluster, 200)
	estimator := estimatorFunc(func(_ context.Context, clusters []*clusterv1alpha1.Cluster, report Report) {
		var reporters sync.WaitGroup
		for i := range clusters {
			reporters.Go(func() { report(i, capacity.Estimate{Count: int32(i)}) })
		}
		reporters.Wait()
	})
	for i, limit := range Ask(t.Context(), []Row{{"far", time.Minute, estimator}}, capacity.Demand{}, clusters) {
		if limit.Count != int32(i) || !limit.IsKnown() {
			t.Errorf("cluster %d: %s", i, limit.String())
		}
	}
}

func TestSummary(t *testing.T) {
	amounts := func(cpu string) corev1.ResourceList {
		return corev1.ResourceList{"cpu": resource.MustParse(cpu), "pods": resource.MustParse("100")}
	}
	clusters := clustersNamed("large", "small", "silent")
	clusters[0].Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: amounts("10")}
	clusters[1].Status.ResourceSummary = &clusterv1alpha1.ResourceSummary{Allocatable: amounts("1")}
	requests := corev1.ResourceList{"cpu": resource.MustParse("2")}
	tests := map[string]struct {
		demand capacity.Demand
		want   []string
	}{
		"replicas": {
			capacity.Demand{Requirements: &workv1alpha2.ReplicaRequirements{ResourceRequest: requests}},
			[]string{"5 (summary)", "0 (summary)", "0 (summary)"},
		},
		"sets of components": {
			capacity.Demand{Components: []workv1alpha2.Component{
				{Name: "a", Replicas: 2, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: requests}}, {Name: "b", Replicas: 1},
			}},
			[]string{"2 (summary)", "0 (summary)", "0 (summary)"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			limits := Ask(t.Context(), []Row{{Name: "summary", Estimator: Summary{}}}, test.demand, clusters)
			if diff := cmp.Diff(test.want, describeLimits(limits)); diff != "" {
				t.Errorf("limits (-want +got):\n%s", diff)
			}
		})
	}
}
