package searchquery

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// drawTerm draws a term. Some of the terms match the fixtures.
func drawTerm(t *rapid.T) string {
	value := rapid.SampledFrom([]string{
		"web", "shop", "Running", "nginx", "nginx:1.19", "eu-*", "*inx", "a*b", "*", "\"x y\"", "\"on call\"", "node-3",
		"Pod", "Deployment", "credentials", "true", "3", "*7d4f*", "web-7d4f*x*", "Terminating", "not*", "*ready", "c2VjcmV0", "ÄRGER", "Ä*",
	})
	name := rapid.SampledFrom([]string{
		"kind", "ns", "name", "cluster", "group", "apiVersion", "label.app", "label.app.kubernetes.io/part-of", "annotation.example.com/note",
		"image", "phase", "node", "ready", "status", "owner", "restarts", "spec.replicas", "spec.containers.image", "data.password", "data.nginx.conf", ".type",
	})
	switch rapid.IntRange(0, 4).Draw(t, "form") {
	case 0:
		text := value.Draw(t, "text")
		return strings.NewReplacer(":", "-").Replace(text)
	case 1:
		return rapid.SampledFrom([]string{"label.app", "label.missing", "annotation.example.com/note", "age>1h", "age<1d", "restarts>=5", "spec.replicas<4"}).Draw(t, "term")
	}
	return name.Draw(t, "field") + rapid.SampledFrom([]string{":", "=", "!="}).Draw(t, "operator") + value.Draw(t, "value")
}

func drawQuery(t *rapid.T, depth int) string {
	if depth == 0 {
		return drawTerm(t)
	}
	left := drawQuery(t, depth-1)
	switch rapid.IntRange(0, 4).Draw(t, "node") {
	case 0:
		return "-(" + left + ")"
	case 1:
		return "(" + left + ") (" + drawQuery(t, depth-1) + ")"
	case 2:
		return left + " OR " + drawQuery(t, depth-1)
	}
	return left
}

func fixtures(t testing.TB) []*Document {
	return []*Document{document(t, podYAML), document(t, deploymentYAML), document(t, secretYAML), document(t, configYAML)}
}

func TestProperties(t *testing.T) {
	documents := fixtures(t)
	matches := func(text string) (result [4]bool) {
		q := mustParse(t, text)
		for i, d := range documents {
			_, result[i] = q.Match(d)
		}
		return result
	}
	rapid.Check(t, func(rt *rapid.T) {
		a, b := drawQuery(rt, 3), drawQuery(rt, 2)
		if got := matches("--(" + a + ")"); got != matches(a) {
			rt.Errorf("the double negation of %s matches %v, the query %v", a, got, matches(a))
		}
		if matches("("+a+") ("+b+")") != matches("("+b+") ("+a+")") {
			rt.Errorf("the order of %s AND %s matters", a, b)
		}
		if matches("-(("+a+") OR ("+b+"))") != matches("-("+a+") -("+b+")") {
			rt.Errorf("NOT (%s OR %s) is not both negations", a, b)
		}
		positive, negative := matches(a), matches("-("+a+")")
		for i := range documents {
			if positive[i] == negative[i] {
				rt.Errorf("%s and its negation give %t for document %d", a, positive[i], i)
			}
		}
		printed := mustParse(t, a).String()
		if again := mustParse(t, printed).String(); again != printed {
			rt.Errorf("%s is parsed and printed as %s", printed, again)
		}
		if matches(printed) != matches(a) {
			rt.Errorf("%s is printed as %s, which matches other objects", a, printed)
		}
	})
}

func TestMatchesFulfilTheNecessaryConditions(t *testing.T) {
	documents := fixtures(t)
	rapid.Check(t, func(rt *rapid.T) {
		q := mustParse(t, drawQuery(rt, 3))
		for _, d := range documents {
			if reasons, found := q.Match(d); found {
				checkNecessaryConditions(t, q, d)
				for _, reason := range reasons {
					if strings.Contains(reason.Value, "c2VjcmV0") || strings.Contains(reason.Value, "plaintoken") {
						rt.Errorf("%s returns the value of a Secret: %v", q, reason)
					}
				}
			}
		}
	})
}

func TestGlobAgreesWithItsDefinition(t *testing.T) {
	var matches func(pattern, text string) bool
	matches = func(pattern, text string) bool {
		if pattern == "" {
			return text == ""
		}
		if pattern[0] == '*' {
			return matches(pattern[1:], text) || text != "" && matches(pattern, text[1:])
		}
		return text != "" && pattern[0] == text[0] && matches(pattern[1:], text[1:])
	}
	rapid.Check(t, func(t *rapid.T) {
		pattern, text := rapid.StringMatching(`[ab*]{0,8}`).Draw(t, "pattern"), rapid.StringMatching(`[ab]{0,10}`).Draw(t, "text")
		if got, want := matchGlob(pattern, text), matches(pattern, text); got != want {
			t.Errorf("%q matches %q: %t, want %t", pattern, text, got, want)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`kind:Pod phase!=Running`, `image:nginx:1.19`, `label.app=web cluster:eu-*`, `-(a OR "b c") AND NOT age>1h30m`, `restarts>=3 spec.replicas<1e3`,
		`((`, `"\"\\`, `label.:`, "\xff", `.a.b:*x*`, `İ*`, `group="" ns:K*`,
	} {
		f.Add(seed)
	}
	documents := fixtures(f)
	f.Fuzz(func(t *testing.T, text string) {
		q, err := Parse(text)
		if err != nil {
			var syntax *SyntaxError
			if syntax, _ = err.(*SyntaxError); syntax == nil || syntax.Column < 1 || syntax.Column > utf8.RuneCountInString(text)+1 { //nolint:errorlint // Parse returns this type itself.
				t.Fatalf("Parse(%q): wrong error %#v", text, err)
			}
			return
		}
		for _, d := range documents {
			if _, found := q.Match(d); found {
				checkNecessaryConditions(t, q, d)
			}
		}
		printed := q.String()
		if len(printed) > MaxLength {
			return
		}
		again, err := Parse(printed)
		if err != nil {
			t.Fatalf("Parse(%q) printed as %q: %v", text, printed, err)
		}
		if again.String() != printed {
			t.Fatalf("%q is printed as %q, then as %q", text, printed, again)
		}
	})
}
