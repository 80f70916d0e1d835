package explain

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"karmada.io/karmada/internal/console"
	"karmada.io/karmada/internal/domain/diagnose"
)

// linksInClusters returns one link for each of n clusters. The message contains the name.
func linksInClusters(n int, result diagnose.Result, message string) []diagnose.Link {
	links := make([]diagnose.Link, n)
	for i := range links {
		name := fmt.Sprintf("m%d", i)
		links[i] = diagnose.Link{Stage: diagnose.StageWork, Cluster: name, Result: result, Reason: "Because", Message: fmt.Sprintf(message, name)}
	}
	return links
}

func TestLines(t *testing.T) {
	tests := map[string]struct {
		diagnosis diagnose.Diagnosis
		isWide    bool
		want      []string
	}{
		"clusters with the same message share a line": {
			diagnose.Diagnosis{Links: linksInClusters(2, diagnose.Failed, "Work karmada-es-%s/web is refused")}, false,
			[]string{"failed work m0, m1: Because: Work karmada-es-<cluster>/web is refused"},
		},
		"in wide format each cluster has its line": {
			diagnose.Diagnosis{Links: linksInClusters(2, diagnose.OK, "Work karmada-es-%s/web is applied")}, true,
			[]string{"ok work m0: Work karmada-es-m0/web is applied", "ok work m1: Work karmada-es-m1/web is applied"},
		},
		"many clusters are counted": {
			diagnose.Diagnosis{Links: linksInClusters(100, diagnose.Pending, "%s waits")}, false,
			[]string{"pending work m0, m1, m2, m3, m4 and 95 more: Because: <cluster> waits"},
		},
		"many healthy clusters share a line": {
			diagnose.Diagnosis{Links: append(linksInClusters(50, diagnose.OK, "healthy, number x%s"), linksInClusters(1, diagnose.Failed, "%s is full")...)}, false,
			[]string{"ok work m0, m1, m2, m3, m4 and 45 more: Because", "failed work m0: Because: m0 is full"},
		},
		"few healthy clusters keep their numbers": {
			diagnose.Diagnosis{Links: linksInClusters(2, diagnose.OK, "healthy, number x%s")}, false,
			[]string{"ok work m0: healthy, number xm0", "ok work m1: healthy, number xm1"},
		},
		"a check in the control plane": {
			diagnose.Diagnosis{Links: []diagnose.Link{{Stage: diagnose.StagePolicy, Result: diagnose.OK, Reason: "Claimed", Message: "PropagationPolicy shop/web"}}}, false,
			[]string{"ok policy PropagationPolicy shop/web"},
		},
		"clusters that are left out": {
			diagnose.Diagnosis{LeftOut: []diagnose.LeftOutCluster{{Cluster: "a", Filter: "ClusterAffinity", Message: "not selected"}, {Cluster: "b", Message: "being removed"}, {Cluster: "c", Filter: "ClusterAffinity", Message: "not selected"}}}, false,
			[]string{"notApplicable left out a, c: ClusterAffinity: not selected", "notApplicable left out b: being removed"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, line := range linesOf(test.diagnosis, test.isWide) {
				got = append(got, fmt.Sprintf("%s %s %s", line.result, line.title, line.text))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRemedies(t *testing.T) {
	link := func(result diagnose.Result, remedy string) diagnose.Link {
		return diagnose.Link{Result: result, Remedy: remedy}
	}
	diagnosis := diagnose.Diagnosis{Links: []diagnose.Link{
		link(diagnose.Pending, "wait"), link(diagnose.Failed, "repair"), link(diagnose.Failed, "repair"),
		link(diagnose.OK, "improve"), link(diagnose.Unknown, "look"), link(diagnose.OK, ""),
	}}
	want := []string{"repair", "look", "wait", "(1 more with --output json)"}
	if diff := cmp.Diff(want, remediesOf(diagnosis)); diff != "" {
		t.Errorf("remedies (-want +got):\n%s", diff)
	}
}

func TestColors(t *testing.T) {
	lines := []traceLine{{diagnose.OK, "policy", "a"}, {diagnose.Failed, "work", "b"}, {diagnose.Pending, "status", "c"}, {diagnose.NotApplicable, "left out", "d"}}
	tests := map[string]struct {
		style console.Style
		want  string
	}{
		"plain text": {console.Style{}, "ok       policy    a\nfailed   work      b\npending  status    c\n-        left out  d\nNext: repair\n      wait\n"},
		"colors": {console.NewTerminalStyle(true),
			"\033[32mok     \033[0m  policy    a\n\033[31mfailed \033[0m  work      b\n\033[33mpending\033[0m  status    c\n-        left out  d\nNext: repair\n      wait\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := printText(&out, test.style, lines, []string{"repair", "wait"}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, out.String()); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}
