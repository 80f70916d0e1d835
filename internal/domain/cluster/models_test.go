package cluster_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/cluster"
)

const unbounded = "9223372036854775807"

// model returns the model of a grade. ranges are triples of resource name, min and max.
func model(grade uint, ranges ...string) clusterv1alpha1.ResourceModel {
	m := clusterv1alpha1.ResourceModel{Grade: grade}
	for i := 0; i+2 < len(ranges); i += 3 {
		m.Ranges = append(m.Ranges, clusterv1alpha1.ResourceModelRange{
			Name: corev1.ResourceName(ranges[i]),
			Min:  resource.MustParse(ranges[i+1]),
			Max:  resource.MustParse(ranges[i+2]),
		})
	}
	return m
}

func TestDefaultModels(t *testing.T) {
	want := []clusterv1alpha1.ResourceModel{
		model(0, "cpu", "0", "1", "memory", "0", "4Gi"),
		model(1, "cpu", "1", "2", "memory", "4Gi", "16Gi"),
		model(2, "cpu", "2", "4", "memory", "16Gi", "32Gi"),
		model(3, "cpu", "4", "8", "memory", "32Gi", "64Gi"),
		model(4, "cpu", "8", "16", "memory", "64Gi", "128Gi"),
		model(5, "cpu", "16", "32", "memory", "128Gi", "256Gi"),
		model(6, "cpu", "32", "64", "memory", "256Gi", "512Gi"),
		model(7, "cpu", "64", "128", "memory", "512Gi", "1Ti"),
		model(8, "cpu", "128", unbounded, "memory", "1Ti", unbounded),
	}
	if diff := cmp.Diff(want, cluster.DefaultModels()); diff != "" {
		t.Errorf("models (-want +got):\n%s", diff)
	}
}

func TestStandardizeModels(t *testing.T) {
	tests := map[string]struct {
		given, want []clusterv1alpha1.ResourceModel
	}{
		"no models": {},
		"grades are sorted, then opened at both ends for every resource": {
			given: []clusterv1alpha1.ResourceModel{
				model(2, "cpu", "2", "4", "memory", "8Gi", "16Gi"),
				model(1, "cpu", "1", "2", "memory", "4Gi", "8Gi"),
			},
			want: []clusterv1alpha1.ResourceModel{
				model(1, "cpu", "0", "2", "memory", "0", "8Gi"),
				model(2, "cpu", "2", unbounded, "memory", "8Gi", unbounded),
			},
		},
		"a single grade covers everything": {
			given: []clusterv1alpha1.ResourceModel{model(1, "cpu", "1", "2")},
			want:  []clusterv1alpha1.ResourceModel{model(1, "cpu", "0", unbounded)},
		},
		"a gap is left to validation": {
			given: []clusterv1alpha1.ResourceModel{model(1, "cpu", "0", "2"), model(2, "cpu", "3", "4")},
			want:  []clusterv1alpha1.ResourceModel{model(1, "cpu", "0", "2"), model(2, "cpu", "3", unbounded)},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			before := fmt.Sprint(test.given)
			if diff := cmp.Diff(test.want, cluster.StandardizeModels(test.given)); diff != "" {
				t.Errorf("models (-want +got):\n%s", diff)
			}
			if after := fmt.Sprint(test.given); after != before {
				t.Errorf("the argument changed from %s to %s", before, after)
			}
		})
	}
}

// TestStandardizedModelsOfRisingBoundsAreValid checks that standardized models pass validation and do
// not change if they are standardized again, for any ascending sequence of bounds, in any order of
// grades and with any outer bounds.
func TestStandardizedModelsOfRisingBoundsAreValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(1, 6).Draw(t, "grades")
		bound := rapid.Int64Range(0, 10).Draw(t, "lowest")
		models := make([]clusterv1alpha1.ResourceModel, count)
		for i := range models {
			next := bound + rapid.Int64Range(1, 1000).Draw(t, "width")
			models[i] = model(uint(i*2), "cpu", fmt.Sprint(bound), fmt.Sprint(next), "memory", fmt.Sprint(bound), fmt.Sprint(next))
			bound = next
		}
		shuffled := rapid.Permutation(models).Draw(t, "order")

		c := pushCluster()
		c.Spec.ResourceModels = shuffled
		cluster.Default(c)
		if errs := cluster.Validate(c); len(errs) != 0 {
			t.Fatalf("standardised models are rejected: %v", errs)
		}
		again := cluster.StandardizeModels(c.Spec.ResourceModels)
		if diff := cmp.Diff(c.Spec.ResourceModels, again); diff != "" {
			t.Fatalf("a second pass changes models (-first +second):\n%s", diff)
		}
	})
}
