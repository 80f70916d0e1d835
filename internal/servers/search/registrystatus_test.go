package search

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

// fixture is a registry in a control plane, and a report that the test sets.
type fixture struct {
	t       *testing.T
	karmada client.Client
	writes  int
	now     time.Time
	// onWrite is called after each write. evaluated is closed after the first evaluation.
	onWrite   func()
	evaluated chan struct{}
	report    []objectcache.SourceReport
	problems  map[string]string
	writer    *registryStatusWriter
}

func (f *fixture) Report() []objectcache.SourceReport { return f.report }
func (f *fixture) StatesChanged() <-chan struct{}     { return make(chan struct{}) }
func (f *fixture) Evaluated() <-chan struct{}         { return f.evaluated }

func newFixture(t *testing.T) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := searchv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), onWrite: func() {}}
	registry := &searchv1alpha1.ResourceRegistry{ObjectMeta: metav1.ObjectMeta{Name: "all", Generation: 3}}
	f.karmada = fake.NewClientBuilder().WithScheme(scheme).WithObjects(registry).WithStatusSubresource(registry).
		WithInterceptorFuncs(interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client, name string, o client.Object, options ...client.SubResourceUpdateOption) error {
			f.writes++
			defer f.onWrite()
			return c.SubResource(name).Update(ctx, o, options...)
		}}).Build()
	f.restart()
	return f
}

// restart begins with a new process.
func (f *fixture) restart() {
	f.writer = newRegistryStatusWriter(registryStatusOptions{
		Karmada: f.karmada, Cache: f, Problems: func(cluster string) string { return f.problems[cluster] }, Now: func() time.Time { return f.now },
	})
}

// pass lets time pass, and returns the number of writes of one reconcile.
func (f *fixture) pass(wait time.Duration) int {
	f.t.Helper()
	f.now = f.now.Add(wait)
	before := f.writes
	if err := f.writer.Reconcile(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	return f.writes - before
}

func (f *fixture) status() searchv1alpha1.ResourceRegistryStatus {
	f.t.Helper()
	registry := &searchv1alpha1.ResourceRegistry{}
	if err := f.karmada.Get(f.t.Context(), types.NamespacedName{Name: "all"}, registry); err != nil {
		f.t.Fatal(err)
	}
	return registry.Status
}

func (f *fixture) expectWrites(step string, want, got int) {
	f.t.Helper()
	if got != want {
		f.t.Errorf("%s: %d writes, want %d", step, got, want)
	}
}

func (f *fixture) pods(cluster string, state objectcache.State, objects int, message string) objectcache.SourceReport {
	return objectcache.SourceReport{
		Cluster: cluster, APIVersion: "v1", Kind: "Pod", Registries: []string{"all"}, State: state, Since: f.now, Objects: objects, Bytes: int64(objects) * 500, Message: message,
	}
}

func TestARestartWithNothingChangedWritesNothing(t *testing.T) {
	f := newFixture(t)
	f.report = []objectcache.SourceReport{f.pods("m1", objectcache.Current, 100, "")}
	f.expectWrites("first status", 1, f.pass(0))
	f.expectWrites("nothing changed", 0, f.pass(time.Hour))
	since := f.status().Clusters[0].Kinds[0].Since
	f.restart()
	f.report = []objectcache.SourceReport{f.pods("m1", objectcache.Waiting, 0, "")}
	f.expectWrites("waiting after a restart", 0, f.pass(time.Second))
	f.report = []objectcache.SourceReport{f.pods("m1", objectcache.Current, 100, "")}
	f.expectWrites("listed after a restart", 0, f.pass(time.Second))
	f.expectWrites("an hour later", 0, f.pass(time.Hour))
	if got := f.status().Clusters[0].Kinds[0].Since; !got.Equal(since) {
		t.Errorf("since changed from %s to %s", since, got)
	}
}

func TestStatesAreWrittenAtOnceAndCountsRarely(t *testing.T) {
	f := newFixture(t)
	f.report = []objectcache.SourceReport{f.pods("m1", objectcache.Current, 100, ""), f.pods("m2", objectcache.Current, 100, "")}
	f.expectWrites("first status", 1, f.pass(time.Hour))
	f.report[0].Objects = 105
	f.expectWrites("a small difference", 0, f.pass(time.Minute))
	f.expectWrites("a small difference after an hour", 1, f.pass(time.Hour))
	f.report[0].Objects = 200
	f.expectWrites("a large difference at once", 0, f.pass(time.Second))
	f.expectWrites("a large difference after 10 seconds", 1, f.pass(10*time.Second))
	f.report[0].Bytes *= 3
	f.expectWrites("another compression", 0, f.pass(2*time.Hour))
	f.report[1] = f.pods("m2", objectcache.Stale, 100, "cluster \"m2\" is not ready")
	f.expectWrites("a changed state", 1, f.pass(time.Second))
}

func TestFewObjectsAreASmallDifference(t *testing.T) {
	f := newFixture(t)
	f.report = []objectcache.SourceReport{f.pods("m1", objectcache.Current, 1, "")}
	f.expectWrites("first status", 1, f.pass(time.Hour))
	f.report[0].Objects = 10
	f.expectWrites("9 more objects", 0, f.pass(time.Minute))
	f.report[0].Objects = 11
	f.expectWrites("10 more objects", 1, f.pass(time.Second))
}

func TestCountsOfALargeStatusAreWrittenMoreRarely(t *testing.T) {
	f := newFixture(t)
	for i := range 1000 {
		f.report = append(f.report, f.pods(fmt.Sprintf("m%d", i), objectcache.Current, 100, ""))
	}
	f.expectWrites("first status", 1, f.pass(time.Hour))
	f.report[0].Objects = 200
	f.expectWrites("after 49 seconds", 0, f.pass(49*time.Second))
	f.expectWrites("after 50 seconds", 1, f.pass(time.Second))
}

func TestAKnownErrorIsWrittenAfterAStart(t *testing.T) {
	f := newFixture(t)
	f.report = []objectcache.SourceReport{f.pods("m1", objectcache.Current, 100, ""), f.pods("m2", objectcache.Current, 100, "")}
	f.pass(time.Hour)
	f.restart()
	f.report = []objectcache.SourceReport{f.pods("m1", objectcache.Waiting, 0, ""), f.pods("m2", objectcache.Waiting, 0, "pods is forbidden")}
	f.expectWrites("an error", 1, f.pass(time.Second))
	status := f.status()
	if got := status.Clusters[0].Kinds[0]; got.State != searchv1alpha1.RegistryKindCurrent || got.Objects != 100 {
		t.Errorf("the kind that is being listed became %+v", got)
	}
	f.expectWrites("nothing more within the first minute", 0, f.pass(time.Second))
	f.expectWrites("still waiting after a minute", 1, f.pass(time.Minute))
}

func TestRunWritesAfterTheFirstEvaluation(t *testing.T) {
	f := newFixture(t)
	evaluated, written := make(chan struct{}), make(chan struct{})
	f.report = []objectcache.SourceReport{f.pods("m1", objectcache.Current, 1, "")}
	f.onWrite = func() { close(written) }
	f.evaluated = evaluated
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.writer.Run(ctx)
	}()
	close(evaluated)
	<-written
	cancel()
	<-ended
}

func TestConditionCached(t *testing.T) {
	f := newFixture(t)
	unserved := func(cluster string) objectcache.SourceReport {
		return objectcache.SourceReport{Cluster: cluster, APIVersion: "example.org/v1", Kind: "Widget", Registries: []string{"all"}, State: objectcache.NotServed, Message: "not served"}
	}
	widgets := unserved("m2")
	widgets.State, widgets.Message = objectcache.Current, ""
	tests := map[string]struct {
		report  []objectcache.SourceReport
		reason  string
		message string
	}{
		"no cluster":                             {nil, "NoCluster", "no cluster is selected: check spec.targetCluster"},
		"all current":                            {[]objectcache.SourceReport{f.pods("m1", objectcache.Current, 1, "")}, "Complete", "the objects of all selected kinds are cached"},
		"first list":                             {[]objectcache.SourceReport{f.pods("m1", objectcache.Waiting, 0, "")}, "Listing", "objects are being listed: m1: Pod.v1 is being listed"},
		"one cluster is stale":                   {[]objectcache.SourceReport{f.pods("m1", objectcache.Stale, 1, "no answer"), f.pods("m2", objectcache.Current, 1, "")}, "Incomplete", "not all objects are cached: m1: Pod.v1 is stale: no answer"},
		"no cluster serves a kind":               {[]objectcache.SourceReport{unserved("m1"), f.pods("m1", objectcache.Current, 1, "")}, "NotServed", "not all objects are cached: m1: Widget.example.org/v1: not served"},
		"only some of the clusters serve a kind": {[]objectcache.SourceReport{unserved("m1"), widgets}, "Complete", "the objects of all selected kinds are cached"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.report = test.report
			f.pass(time.Hour)
			got := conditions.Get(f.status().Conditions, searchv1alpha1.RegistryConditionCached)
			if got == nil || got.Reason != test.reason || got.Message != test.message || got.ObservedGeneration != 3 {
				t.Fatalf("condition %+v, want reason %s and message %q", got, test.reason, test.message)
			}
			if !conditions.IsKnown("ResourceRegistry", *got) {
				t.Error("the condition is not in the table")
			}
		})
	}
}

func TestAStatusWithManyKindsIsBounded(t *testing.T) {
	f := newFixture(t)
	for i := range 3000 {
		source := f.pods("m1", objectcache.Current, 1, "")
		source.Kind = "Kind" + strings.Repeat("x", i%50) + string(rune('a'+i%26))
		source.Cluster = "m" + strings.Repeat("y", i/100)
		f.report = append(f.report, source)
	}
	f.report = append(f.report, f.pods("zzz", objectcache.Stale, 1, "no answer"))
	f.pass(time.Hour)
	count, last := 0, ""
	for _, cluster := range f.status().Clusters {
		count += len(cluster.Kinds)
		last = cluster.Name
	}
	if diff := cmp.Diff(2000, count); diff != "" || last != "zzz" {
		t.Errorf("%d kinds, the last cluster is %s, want 2000 kinds with that of the problem", count, last)
	}
	f.expectWrites("nothing changed", 0, f.pass(time.Hour))
}

func TestProblemsOfTheBackEndAreReported(t *testing.T) {
	f := newFixture(t)
	registry := &searchv1alpha1.ResourceRegistry{}
	if err := f.karmada.Get(t.Context(), types.NamespacedName{Name: "all"}, registry); err != nil {
		t.Fatal(err)
	}
	registry.Spec.BackendStore = &searchv1alpha1.BackendStoreConfig{OpenSearch: &searchv1alpha1.OpenSearchConfig{}}
	if err := f.karmada.Update(t.Context(), registry); err != nil {
		t.Fatal(err)
	}
	f.report = []objectcache.SourceReport{{Cluster: "m1", APIVersion: "v1", Kind: "Pod", Registries: []string{"all"}, State: objectcache.Current, Objects: 1}}
	steps := []struct {
		name, problem, wantReason, wantMessage string
	}{
		{"nothing is wrong", "", searchv1alpha1.RegistryReasonComplete, "are cached"},
		{"the back end fails", "the disk is full", searchv1alpha1.RegistryReasonBackendFailing, "m1: the disk is full"},
		{"the back end recovers", "", searchv1alpha1.RegistryReasonComplete, "are cached"},
	}
	for _, step := range steps {
		f.problems = map[string]string{"m1": step.problem}
		if writes := f.pass(2 * time.Minute); writes != 1 {
			t.Errorf("%s: %d writes, want 1", step.name, writes)
		}
		condition := conditions.Get(f.status().Conditions, searchv1alpha1.RegistryConditionCached)
		if condition.Reason != step.wantReason || !strings.Contains(condition.Message, step.wantMessage) {
			t.Errorf("%s: condition %+v", step.name, condition)
		}
		if writes := f.pass(time.Second); writes != 0 {
			t.Errorf("%s: %d writes without a change, want 0", step.name, writes)
		}
		f.restart()
		f.problems = nil // the new process did not ask the back end yet
		if writes := f.pass(time.Second); writes != 0 {
			t.Errorf("%s: %d writes after a restart, want 0", step.name, writes)
		}
	}
	f.report[0].State, f.report[0].Message = objectcache.Stale, "not ready"
	f.problems = map[string]string{"m1": "the disk is full"}
	f.pass(time.Minute)
	condition := conditions.Get(f.status().Conditions, searchv1alpha1.RegistryConditionCached)
	if condition.Reason != searchv1alpha1.RegistryReasonIncomplete || !strings.Contains(condition.Message, "not ready") || !strings.Contains(condition.Message, "the disk is full") {
		t.Errorf("both are wrong: condition %+v", condition)
	}
}
