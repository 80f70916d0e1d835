package patch

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func TestEqual(t *testing.T) {
	labelled := newWork(`{"a":1}`)
	labelled.Labels = map[string]string{}
	parsed := newWork(`{"a":1}`)
	parsed.Spec.Workload.Manifests[0].Object = &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Name: "parsed"}}
	status := func(raw string) *workv1alpha2.ResourceBinding {
		bound := &workv1alpha2.ResourceBinding{}
		bound.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{{ClusterName: "m1", Status: &runtime.RawExtension{Raw: []byte(raw)}}}
		return bound
	}
	tests := map[string]struct {
		a, b any
		want bool
	}{
		"equal manifests":                 {newWork(`{"a":1}`), newWork(`{"a":1}`), true},
		"nil and empty":                   {newWork(`{"a":1}`), labelled, true},
		"other manifests":                 {newWork(`{"a":1}`), newWork(`{"a":2}`), false},
		"an additional manifest":          {newWork(`{"a":1}`), &workv1alpha1.Work{ObjectMeta: newWork("").ObjectMeta}, false},
		"a manifest with a parsed object": {newWork(`{"a":1}`), parsed, false},
		"a reported status":               {status(`{"replicas":1}`), status(`{"replicas":1}`), true},
		"another reported status":         {status(`{"replicas":1}`), status(`{"replicas":2}`), false},
		"different types":                 {status(`{}`), newWork(`{}`), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Equal(test.a, test.b); got != test.want {
				t.Errorf("equal: %v", got)
			}
		})
	}
}

func TestEqualAllocations(t *testing.T) {
	manifest := func(bytes int) *workv1alpha1.Work { return newWork(`{"text":"` + strings.Repeat("x", bytes) + `"}`) }
	cost := func(bytes int) float64 {
		left, right := manifest(bytes), manifest(bytes)
		return testing.AllocsPerRun(20, func() { Equal(left, right) })
	}
	if short, long := cost(10), cost(10_000); long > short {
		t.Errorf("10 kB take %v allocations, 10 bytes %v", long, short)
	}
}

func BenchmarkEqual(b *testing.B) {
	manifest := `{"metadata":{"name":"` + strings.Repeat("x", 3000) + `"}}`
	left, right := newWork(manifest), newWork(manifest)
	b.ReportAllocs()
	for b.Loop() {
		if !Equal(left, right) {
			b.Fatal("they differ")
		}
	}
}
