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
		"no annotations":                    {cluster: annotated(nil)},
		"the current time":                  {cluster: confirms("2026-05-01T12:00:00Z")},
		"a time in another zone":            {cluster: confirms("2026-05-01T14:00:00+02:00"), old: annotated(nil)},
		"a clock that is slightly ahead":    {cluster: confirms("2026-05-01T12:05:00Z")},
		"an unchanged annotation":           {cluster: confirms("foo"), old: confirms("foo")},
		"a removed annotation":              {cluster: annotated(nil), old: confirms("foo")},
		"a confirmation that is not a time": {cluster: confirms("foo"), old: confirms("2026-05-01T12:00:00Z"), want: []string{`metadata.annotations[work.karmada.io/confirm-deletions]: "foo" confirms nothing: it must be a time such as 2026-05-01T12:00:00Z`}},
		"an empty confirmation":             {cluster: confirms(""), old: annotated(nil), want: []string{`metadata.annotations[work.karmada.io/confirm-deletions]: "" confirms nothing: it must be a time such as 2026-05-01T12:00:00Z`}},
		"declared dead: true":               {cluster: annotated(map[string]string{"cluster.karmada.io/declared-dead": "true"})},
		"declared dead: false":              {cluster: annotated(map[string]string{"cluster.karmada.io/declared-dead": "false"})},
		"declared dead: another value":      {cluster: annotated(map[string]string{"cluster.karmada.io/declared-dead": "yes"}), want: []string{`metadata.annotations[cluster.karmada.io/declared-dead]: "yes" has no effect: it must be "true"`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Warnings(test.cluster, test.old, now)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestValidateConfirmation(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	confirms := func(value string) *clusterv1alpha1.Cluster {
		c := &clusterv1alpha1.Cluster{}
		c.Name, c.Annotations = "east", map[string]string{"work.karmada.io/confirm-deletions": value}
		return c
	}
	const rejected = `metadata.annotations[work.karmada.io/confirm-deletions]: Invalid value: "2030-01-01T00:00:00Z": the time is in the future, so it would also confirm deletions that have not begun: confirm the deletions of cluster "east" that have begun with the current time, such as 2026-05-01T12:00:00Z`
	tests := map[string]struct {
		cluster, old *clusterv1alpha1.Cluster
		want         string
	}{
		"the current time":               {cluster: confirms("2026-05-01T12:00:00Z")},
		"a time in the past":             {cluster: confirms("2020-05-01T12:00:00Z")},
		"a clock that is slightly ahead": {cluster: confirms("2026-05-01T12:05:00Z")},
		"a time in another zone":         {cluster: confirms("2026-05-01T14:00:00+02:00")},
		"not a time":                     {cluster: confirms("foo")},
		"no annotations":                 {cluster: &clusterv1alpha1.Cluster{}},
		"a stored time in the future":    {cluster: confirms("2030-01-01T00:00:00Z"), old: confirms("2030-01-01T00:00:00Z")},
		"a new Cluster with the future":  {cluster: confirms("2030-01-01T00:00:00Z"), want: rejected},
		"a change to the future":         {cluster: confirms("2030-01-01T00:00:00Z"), old: confirms("2026-05-01T12:00:00Z"), want: rejected},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := ValidateConfirmation(test.cluster, test.old, now).ToAggregate(); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}
