package search

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/domain/searchquery"
)

func TestQueryWithFlags(t *testing.T) {
	tests := map[string]struct {
		text, namespace string
		clusters        []string
		want            string
	}{
		"the query alone":                      {text: "kind:Pod OR web", want: "kind:Pod OR web"},
		"flags alone":                          {namespace: "shop", clusters: []string{"east"}, want: "namespace=shop (cluster=east)"},
		"flags apply to each part of an OR":    {text: "a OR b", namespace: "shop", want: "(a OR b) namespace=shop"},
		"several clusters and a pattern":       {text: "a", clusters: []string{"east", "eu-*"}, want: "(a) (cluster=east OR cluster:eu-*)"},
		"a cluster with a query that has none": {text: "-b", clusters: []string{"east"}, want: "(-b) (cluster=east)"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := &options{clusters: test.clusters}
			o.Namespace = test.namespace
			got := o.withFlags(test.text)
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if _, err := searchquery.Parse(got); err != nil {
				t.Errorf("the query cannot be parsed: %v", err)
			}
		})
	}
}

func TestSyntaxErrorShowsPosition(t *testing.T) {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	cmd := New(&command.Program{Name: "karmadactl", IOStreams: streams})
	err := cmd.Args(cmd, []string{"é", "kinnd:Pod"})
	if err == nil {
		t.Fatal("no error")
	}
	if command.ExitCode(err) != command.ExitUsage {
		t.Errorf("exit code %d", command.ExitCode(err))
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 3 || lines[1] != "  é kinnd:Pod" || lines[2] != "    ^" {
		t.Errorf("error:\n%v", err)
	}
}

func TestRow(t *testing.T) {
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	created, stale := metav1.NewTime(now.Add(-3*time.Hour)), metav1.NewTime(now.Add(-time.Minute))
	tests := map[string]struct {
		result     searchv1alpha1.SearchResult
		wide       []string
		uniqueName string
	}{
		"an object in a namespace": {
			result: searchv1alpha1.SearchResult{
				Cluster: "east", APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", CreationTimestamp: &created, StaleSince: &stale,
				Matches: []searchv1alpha1.SearchMatch{{Field: "image", Value: "nginx"}, {Field: "label.app", Value: "web"}},
			},
			wide:       []string{"east", "Deployment", "shop", "web", "3h", "apps/v1", "60s", "image=nginx, label.app=web"},
			uniqueName: "east/shop/Deployment.apps/web",
		},
		"an object without namespace, age and matches": {
			result:     searchv1alpha1.SearchResult{Cluster: "east", APIVersion: "v1", Kind: "Node", Name: "n1"},
			wide:       []string{"east", "Node", "<none>", "n1", "<none>", "v1", "<none>", "<none>"},
			uniqueName: "east/-/Node/n1",
		},
		"control characters of an object do not reach the terminal": {
			result: searchv1alpha1.SearchResult{
				Cluster: "east", APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "c",
				Matches: []searchv1alpha1.SearchMatch{{Field: "data.x", Value: "\x1b[2Ja\tb\nc"}},
			},
			wide:       []string{"east", "ConfigMap", "shop", "c", "<none>", "v1", "<none>", "data.x= [2Ja b c"},
			uniqueName: "east/shop/ConfigMap/c",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.wide, newRow(&test.result, now, true)); diff != "" {
				t.Errorf("cells (-want +got):\n%s", diff)
			}
			if got := newRow(&test.result, now, false); len(got) != len(tableHeader(false)) || len(test.wide) != len(tableHeader(true)) {
				t.Errorf("%d cells for %d columns", len(got), len(tableHeader(false)))
			}
			if got := uniqueName(&test.result); got != test.uniqueName {
				t.Errorf("name %q, want %q", got, test.uniqueName)
			}
		})
	}
}

func TestTruncateLast(t *testing.T) {
	long := strings.Repeat("x", 100)
	tests := map[string]struct {
		width int
		want  string
	}{
		"no terminal":         {0, long},
		"a wide terminal":     {200, long},
		"a terminal":          {40, strings.Repeat("x", 31) + "…"},
		"a very narrow one":   {5, strings.Repeat("x", 19) + "…"},
		"the exact width":     {108, long},
		"one character short": {107, strings.Repeat("x", 98) + "…"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			rows := [][]string{{"HEAD", "M"}, {"east", long}}
			truncateLast(rows, test.width, 4)
			if rows[1][1] != test.want {
				t.Errorf("%d characters: %s", len([]rune(rows[1][1])), rows[1][1])
			}
		})
	}
}
