package capacity

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func TestLimit(t *testing.T) {
	errSlow := errors.New("no response within 3s")
	tests := map[string]struct {
		answers  []Estimate
		want     Limit
		wantText string
	}{
		"no answer":                          {nil, Limit{}, "unknown"},
		"the minimum counts":                 {[]Estimate{{Count: 5}, {Count: 3}}, Limit{Count: 3, Estimator: "second"}, "3 (second)"},
		"the minimum is first":               {[]Estimate{{Count: 3}, {Count: 5}}, Limit{Count: 3, Estimator: "first"}, "3 (first)"},
		"the first of equal answers limits":  {[]Estimate{{Count: 3}, {Count: 3}}, Limit{Count: 3, Estimator: "first"}, "3 (first)"},
		"an unknown answer is ignored":       {[]Estimate{{Count: Unknown}, {Count: 2}}, Limit{Count: 2, Estimator: "second"}, "2 (second)"},
		"a late unknown answer is ignored":   {[]Estimate{{Count: 5}, {Count: Unknown}}, Limit{Count: 5, Estimator: "first"}, "5 (first)"},
		"only unknown answers":               {[]Estimate{{Count: Unknown}}, Limit{}, "unknown"},
		"zero is a known answer":             {[]Estimate{{Count: 3}, {Count: 0}}, Limit{Count: 0, Estimator: "second"}, "0 (second)"},
		"an estimator that found no limit":   {[]Estimate{{Count: math.MaxInt32}}, Limit{Count: math.MaxInt32, Estimator: "first"}, "2147483647 (first)"},
		"an error is reported, others count": {[]Estimate{{Err: errSlow}, {Count: 7}}, Limit{7, "second", []Failure{{"first", errSlow}}}, "7 (second); first: no response within 3s"},
		"the count beside an error is not used": {
			[]Estimate{{Count: 1, Err: errSlow}}, Limit{Failures: []Failure{{"first", errSlow}}}, "unknown; first: no response within 3s"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := Limit{}
			for i, answer := range test.answers {
				got.Add([]string{"first", "second"}[i], answer)
			}
			if diff := cmp.Diff(test.want, got, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("limit (-want +got):\n%s", diff)
			}
			if got.String() != test.wantText {
				t.Errorf("text %q, want %q", got.String(), test.wantText)
			}
		})
	}
}

func TestCountsOfSeveralEstimators(t *testing.T) {
	limits := make([]Limit, 4)
	for i, count := range []int32{5, -1, 3, -1} {
		limits[i].Add("first", Estimate{Count: count})
	}
	for i, count := range []int32{7, 2, 0, -1} {
		limits[i].Add("second", Estimate{Count: count})
	}
	if diff := cmp.Diff([]int32{5, 2, 0, Unknown}, Counts(limits)); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

func TestDemandAvailable(t *testing.T) {
	requirements := requirementsOf("cpu", "2")
	components := []workv1alpha2.Component{{Name: "a", Replicas: 5}}
	tests := map[string]struct {
		demand Demand
		sets   bool
		want   int32
	}{
		"replicas without requirements": {Demand{}, false, 100},
		"replicas":                      {Demand{Requirements: requirements}, false, 5},
		"sets of components":            {Demand{Requirements: requirements, Components: components}, true, 20},
	}
	cluster := clusterWithAllocatable("cpu", "10", "pods", "100")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.demand.Counter(false)(cluster); got != test.want || test.demand.CountsSets() != test.sets {
				t.Errorf("%d available, counts sets: %t, want %d and %t", got, test.demand.CountsSets(), test.want, test.sets)
			}
		})
	}
}
