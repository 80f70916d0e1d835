package cluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

func TestWarnings(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	annotated := func(annotations map[string]string) *clusterv1alpha1.Cluster {
		c := &clusterv1alpha1.Cluster{}
		c.Annotations = annotations
		return c
	}
	confirms := func(value string) *clusterv1alpha1.Cluster {
		return annotated(map[string]string{"work.karmada.io/confirm-deletions": value})
	}
	tests := map[string]struct {
		cluster, old *clusterv1alpha1.Cluster
		want         []string
	}{
		"a cluster without orders":                     {cluster: annotated(nil)},
		"a time of now confirms":                       {cluster: confirms("2026-05-01T12:00:00Z")},
		"a time of another zone does":                  {cluster: confirms("2026-05-01T14:00:00+02:00"), old: annotated(nil)},
		"a clock may be a little ahead":                {cluster: confirms("2026-05-01T12:05:00Z")},
		"what was said before is not told again":       {cluster: confirms("foo"), old: confirms("foo")},
		"nor that an order was taken back":             {cluster: annotated(nil), old: confirms("foo")},
		"a word confirms nothing":                      {cluster: confirms("foo"), old: confirms("2026-05-01T12:00:00Z"), want: []string{`metadata.annotations[work.karmada.io/confirm-deletions]: "foo" confirms nothing: it must be a time such as 2026-05-01T12:00:00Z`}},
		"no word confirms nothing either":              {cluster: confirms(""), old: annotated(nil), want: []string{`metadata.annotations[work.karmada.io/confirm-deletions]: "" confirms nothing: it must be a time such as 2026-05-01T12:00:00Z`}},
		"a time to come confirms what nobody knows of": {cluster: confirms("2030-01-01T00:00:00Z"), want: []string{"metadata.annotations[work.karmada.io/confirm-deletions]: it also confirms every deletion that begins before 2030-01-01T00:00:00Z"}},
		"a cluster is dead when that is true":          {cluster: annotated(map[string]string{"cluster.karmada.io/declared-dead": "true"})},
		"or alive when that is":                        {cluster: annotated(map[string]string{"cluster.karmada.io/declared-dead": "false"})},
		"and not when it is said otherwise":            {cluster: annotated(map[string]string{"cluster.karmada.io/declared-dead": "yes"}), want: []string{`metadata.annotations[cluster.karmada.io/declared-dead]: "yes" has no effect: it must be "true"`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Warnings(test.cluster, test.old, now)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
