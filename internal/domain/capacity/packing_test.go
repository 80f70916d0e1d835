package capacity

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

func TestAmount(t *testing.T) {
	tests := map[string]struct {
		name     corev1.ResourceName
		quantity string
		want     int64
	}{
		"cpu is counted in thousandths":              {"cpu", "1500m", 1500},
		"cpu is rounded up":                          {"cpu", "1n", 1},
		"memory is counted in bytes":                 {"memory", "1Ki", 1024},
		"memory is rounded up":                       {"memory", "100m", 1},
		"decimal and binary notation are comparable": {"memory", "1G", 1_000_000_000},
		"a negative amount stays negative":           {"memory", "-5", -5},
		"an amount of cpu that is too large":         {"cpu", "1E", math.MaxInt64},
		"an amount of memory that is too large":      {"memory", "10E", math.MaxInt64},
		"a quantity beyond all numbers":              {"memory", "1e999999999", math.MaxInt64},
		"a quantity with a fraction beyond int64":    {"memory", "12345678901234567890123.5", math.MaxInt64},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := ResourceAmount(test.name, resource.MustParse(test.quantity)); got != test.want {
				t.Errorf("Amount(%s, %s) = %d, want %d", test.name, test.quantity, got, test.want)
			}
		})
	}
}

func TestPodRequest(t *testing.T) {
	amounts := map[corev1.ResourceName]int64{"cpu": 5, "limits.cpu": 7, "requests.nvidia.com/gpu": 8, "nvidia.com/gpu": 1, "storage": 3, "hugepages-2Mi": 2, "attachable-volumes-csi": 4}
	want := map[corev1.ResourceName]int64{"cpu": 5, "nvidia.com/gpu": 1, "hugepages-2Mi": 2, "attachable-volumes-csi": 4, "pods": 1}
	if diff := cmp.Diff(want, PodRequest(amounts)); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

func FuzzArithmeticSaturates(f *testing.F) {
	f.Add(int64(math.MaxInt64), int64(2))
	f.Add(int64(0), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, a, b int64) {
		a, b = max(a, 0), max(b, 0)
		if sum := SaturatingAdd(a, b); sum < a || sum < b {
			t.Errorf("%d + %d = %d", a, b, sum)
		}
		if product := SaturatingMultiply(a, b); product < 0 || a > 0 && product/a > b || a > 0 && b > 0 && product < max(a, b) {
			t.Errorf("%d * %d = %d", a, b, product)
		}
		if difference := SaturatingSubtract(a, b); a >= b != (difference >= 0) {
			t.Errorf("%d - %d = %d", a, b, difference)
		}
		if n := ClampToInt32(a); n < 0 {
			t.Errorf("%d became %d", a, n)
		}
	})
}

func TestPlaceSets(t *testing.T) {
	only := func(allowed ...int) func(int) bool {
		return func(node int) bool { return slices.Contains(allowed, node) }
	}
	tests := map[string]struct {
		nodes     []ResourceVector
		parts     []SetPart
		limit     int64
		want      int64
		wantNodes []ResourceVector
	}{
		"a set without replicas always fits": {[]ResourceVector{{1}}, []SetPart{{Replicas: 0, Request: ResourceVector{1}}}, 9, 9, []ResourceVector{{1}}},
		"no nodes":                           {nil, []SetPart{{Replicas: 1, Request: ResourceVector{1}}}, 9, 0, nil},
		"the limit ends the placement":       {[]ResourceVector{{5}}, []SetPart{{Replicas: 1, Request: ResourceVector{1}}}, 3, 3, []ResourceVector{{2}}},
		"remainders of nodes are not used":   {[]ResourceVector{{5}, {5}}, []SetPart{{Replicas: 1, Request: ResourceVector{2}}}, 9, 4, []ResourceVector{{1}, {1}}},
		"a set may spread over nodes":        {[]ResourceVector{{2}, {2}}, []SetPart{{Replicas: 4, Request: ResourceVector{1}}}, 9, 1, []ResourceVector{{0}, {0}}},
		"an incomplete set stays placed":     {[]ResourceVector{{3}}, []SetPart{{Replicas: 2, Request: ResourceVector{1}}}, 9, 1, []ResourceVector{{0}}},
		"parts share nodes":                  {[]ResourceVector{{6}}, []SetPart{{Replicas: 1, Request: ResourceVector{1}}, {Replicas: 1, Request: ResourceVector{2}}}, 9, 2, []ResourceVector{{0}}},
		"parts are limited to allowed nodes": {[]ResourceVector{{4}, {4}}, []SetPart{{Replicas: 1, Request: ResourceVector{1}, IsAllowed: only(1)}}, 9, 4, []ResourceVector{{4}, {0}}},
		"a part that is allowed nowhere":     {[]ResourceVector{{4}}, []SetPart{{Replicas: 1, Request: ResourceVector{1}, IsAllowed: only()}}, 9, 0, []ResourceVector{{4}}},
		"large numbers do not overflow":      {[]ResourceVector{{math.MaxInt64}}, []SetPart{{Replicas: math.MaxInt64, Request: ResourceVector{math.MaxInt64}}}, 9, 0, []ResourceVector{{0}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := PlaceSets(test.nodes, test.parts, test.limit)
			if diff := cmp.Diff(test.wantNodes, test.nodes); diff != "" || got != test.want {
				t.Errorf("%d sets, want %d; free resources (-want +got):\n%s", got, test.want, diff)
			}
		})
	}
}

// placeOneByOne is the definition of PlaceSets: it places one replica after another.
func placeOneByOne(nodes []ResourceVector, parts []SetPart, limit int64) int64 {
	for placed := range limit {
		for _, part := range parts {
			for range part.Replicas {
				at := -1
				for i, node := range nodes {
					if (part.IsAllowed == nil || part.IsAllowed(i)) && node.Fits(part.Request) > 0 {
						at = i
						break
					}
				}
				if at < 0 {
					return placed
				}
				nodes[at].reserve(part.Request, 1)
			}
		}
	}
	return limit
}

func TestPlaceSetsEqualsOneByOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var nodes, same []ResourceVector
		for range rapid.IntRange(0, 6).Draw(t, "nodes") {
			node := ResourceVector{rapid.Int64Range(0, 20).Draw(t, "cpu"), rapid.Int64Range(0, 20).Draw(t, "memory"), rapid.Int64Range(0, 10).Draw(t, "pods")}
			nodes, same = append(nodes, node), append(same, slices.Clone(node))
		}
		var parts []SetPart
		for range rapid.IntRange(1, 3).Draw(t, "parts") {
			part := SetPart{Replicas: rapid.Int64Range(0, 5).Draw(t, "replicas"), Request: ResourceVector{rapid.Int64Range(0, 6).Draw(t, "cpu"), rapid.Int64Range(0, 6).Draw(t, "memory"), 1}}
			if excluded := rapid.IntRange(-1, 5).Draw(t, "excluded"); excluded >= 0 {
				part.IsAllowed = func(node int) bool { return node != excluded }
			}
			parts = append(parts, part)
		}
		limit := rapid.Int64Range(0, 30).Draw(t, "limit")
		want, got := placeOneByOne(same, parts, limit), PlaceSets(nodes, parts, limit)
		if diff := cmp.Diff(same, nodes); diff != "" || got != want {
			t.Errorf("%d sets, want %d; free resources (-want +got):\n%s", got, want, diff)
		}
	})
}
