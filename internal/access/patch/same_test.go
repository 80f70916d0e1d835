package patch

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func TestSame(t *testing.T) {
	labelled := workWith(`{"a":1}`)
	labelled.Labels = map[string]string{}
	parsed := workWith(`{"a":1}`)
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
		"equal manifests":                  {workWith(`{"a":1}`), workWith(`{"a":1}`), true},
		"nothing and empty":                {workWith(`{"a":1}`), labelled, true},
		"other manifests":                  {workWith(`{"a":1}`), workWith(`{"a":2}`), false},
		"one manifest more":                {workWith(`{"a":1}`), &workv1alpha1.Work{ObjectMeta: workWith("").ObjectMeta}, false},
		"a manifest that is an object too": {workWith(`{"a":1}`), parsed, false},
		"a reported status":                {status(`{"replicas":1}`), status(`{"replicas":1}`), true},
		"another reported status":          {status(`{"replicas":1}`), status(`{"replicas":2}`), false},
		"different types":                  {status(`{}`), workWith(`{}`), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Same(test.a, test.b); got != test.want {
				t.Errorf("same is %v", got)
			}
		})
	}
}

func TestLongManifestsAreComparedAsTexts(t *testing.T) {
	manifest := func(bytes int) *workv1alpha1.Work { return workWith(`{"text":"` + strings.Repeat("x", bytes) + `"}`) }
	cost := func(bytes int) float64 {
		left, right := manifest(bytes), manifest(bytes)
		return testing.AllocsPerRun(20, func() { Same(left, right) })
	}
	if short, long := cost(10), cost(10_000); long > short {
		t.Errorf("10 kB take %v allocations, 10 bytes %v", long, short)
	}
}

func BenchmarkSame(b *testing.B) {
	manifest := `{"metadata":{"name":"` + strings.Repeat("x", 3000) + `"}}`
	left, right := workWith(manifest), workWith(manifest)
	b.ReportAllocs()
	for b.Loop() {
		if !Same(left, right) {
			b.Fatal("they differ")
		}
	}
}
