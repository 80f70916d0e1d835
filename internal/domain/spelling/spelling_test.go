package spelling

import (
	"testing"

	"pgregory.net/rapid"
)

func TestNearest(t *testing.T) {
	kinds := []string{"StatefulSet", "Deployment", "DaemonSet", "Pod", "PodTemplate"}
	tests := map[string]struct {
		name       string
		candidates []string
		want       string
	}{
		"a wrong letter":                              {"Deploymint", kinds, "Deployment"},
		"a plural":                                    {"deployments", kinds, "Deployment"},
		"two letters swapped":                         {"Deploymetn", kinds, "Deployment"},
		"another case":                                {"statefulset", kinds, "StatefulSet"},
		"a short name allows one edit":                {"Pos", kinds, "Pod"},
		"a name without a similar candidate":          {"Ingress", kinds, ""},
		"no candidates":                               {"Deployment", nil, ""},
		"the first in byte order wins when equal":     {"web0", []string{"web2", "web1"}, "web1"},
		"the order of the candidates does not matter": {"web0", []string{"web1", "web2"}, "web1"},
		"an exact match is nearest":                   {"Pod", kinds, "Pod"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Nearest(test.name, test.candidates); got != test.want {
				t.Errorf("Nearest(%q) = %q, want %q", test.name, got, test.want)
			}
		})
	}
}

func TestSimilarIsSymmetricAndReflexive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.StringMatching(`[a-z]{0,8}`).Draw(t, "a"), rapid.StringMatching(`[a-z]{0,8}`).Draw(t, "b")
		if !Similar(a, a) {
			t.Errorf("%q is not similar to itself", a)
		}
		if Similar(a, b) != Similar(b, a) || Distance(a, b) != Distance(b, a) {
			t.Errorf("the result for %q and %q depends on their order", a, b)
		}
	})
}

func TestDistanceIsSymmetricAndBoundedByTheLongerWord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.StringMatching(`[a-z-]{0,12}`).Draw(t, "a"), rapid.StringMatching(`[a-z-]{0,12}`).Draw(t, "b")
		there, back := Distance(a, b), Distance(b, a)
		if there != back {
			t.Errorf("%q to %q is %d, back it is %d", a, b, there, back)
		}
		if there > max(len(a), len(b)) {
			t.Errorf("%q to %q is %d, more than the length of either", a, b, there)
		}
		if (there == 0) != (a == b) {
			t.Errorf("%q to %q is %d", a, b, there)
		}
	})
}
