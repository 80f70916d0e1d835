package work

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/binding"
)

const job = `{apiVersion: batch/v1, kind: Job, metadata: {name: sum, namespace: shop}, spec: {completions: 10, parallelism: 4}}`

// completionsByTarget returns the completions in each target's manifest. The value -1 means that the
// manifest has no completions.
func completionsByTarget(t testing.TB, template *unstructured.Unstructured, scheduling policyv1alpha1.ReplicaSchedulingType, total int32, replicas ...int32) []int64 {
	t.Helper()
	from := resourceBinding(replicas...)
	from.Spec.Replicas = total
	from.Spec.Placement = &policyv1alpha1.Placement{
		ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: scheduling},
	}
	var all []int64
	for _, target := range from.Spec.Clusters {
		in := inputForFirstTarget(template, from)
		in.Target, in.Cluster = target, newCluster(target.Name)
		got, err := Render(in)
		if err != nil {
			t.Fatal(err)
		}
		part, found, err := unstructured.NestedInt64(decodedManifest(t, got).Object, "spec", "completions")
		if err != nil {
			t.Fatal(err)
		}
		if !found {
			part = -1
		}
		all = append(all, part)
	}
	return all
}

func TestJobCompletions(t *testing.T) {
	even, odd := types.UID("u0"), types.UID("u0")
	for suffix := range 100 {
		uid := "u" + string(rune('0'+suffix))
		if binding.Hash32(uid)%2 == 0 {
			even = types.UID(uid)
		} else {
			odd = types.UID(uid)
		}
	}
	withUID := func(uid types.UID) *unstructured.Unstructured {
		template := parseObject(t, job)
		template.SetUID(uid)
		return template
	}
	plain := parseObject(t, job)
	bare := parseObject(t, job)
	unstructured.RemoveNestedField(bare.Object, "spec", "completions")
	foreign := parseObject(t, job)
	foreign.SetAPIVersion("batch.example.io/v1")
	tests := map[string]struct {
		template *unstructured.Unstructured
		kind     policyv1alpha1.ReplicaSchedulingType
		total    int32
		replicas []int32
		want     []int64
	}{
		"ties go to the smaller name without a UID":           {plain, "Divided", 4, []int32{1, 1, 2}, []int64{3, 2, 5}},
		"ties go to the smaller name when the hash is even":   {withUID(even), "Divided", 4, []int32{1, 1, 2}, []int64{3, 2, 5}},
		"ties go to the larger name when the hash is odd":     {withUID(odd), "Divided", 4, []int32{1, 1, 2}, []int64{2, 3, 5}},
		"a target without replicas gets no completions":       {plain, "Divided", 4, []int32{4, 0}, []int64{10, 0}},
		"nothing is divided without any replicas":             {plain, "Divided", 4, []int32{0, 0}, []int64{10, 10}},
		"nothing is divided when replicas are duplicated":     {plain, "Duplicated", 4, []int32{4, 4}, []int64{10, 10}},
		"nothing is divided when the binding has no replicas": {plain, "Divided", 0, []int32{1, 1}, []int64{10, 10}},
		"a Job without completions stays so":                  {bare, "Divided", 4, []int32{2, 2}, []int64{-1, -1}},
		"a kind Job of another API group is not divided":      {foreign, "Divided", 4, []int32{2, 2}, []int64{10, 10}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := completionsByTarget(t, tc.template, tc.kind, tc.total, tc.replicas...)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("completions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCompletionsSumUp(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		replicas := rapid.SliceOfN(rapid.Int32Range(0, 9), 1, 6).Draw(rt, "replicas")
		weight := int32(0)
		for _, each := range replicas {
			weight += each
		}
		if weight == 0 {
			return
		}
		sum := int64(0)
		for _, part := range completionsByTarget(t, parseObject(t, job), "Divided", weight, replicas...) {
			sum += part
		}
		if sum != 10 {
			rt.Fatalf("%v replicas complete %d times, want 10", replicas, sum)
		}
	})
}
