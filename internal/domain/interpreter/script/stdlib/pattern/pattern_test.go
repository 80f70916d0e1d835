package pattern

import (
	"strings"
	"testing"
)

// counter counts steps. It panics with itself after limit steps.
type counter struct{ steps, largest, limit int }

func (c *counter) Step(n int) {
	c.steps += n
	c.largest = max(c.largest, n)
	if c.limit > 0 && c.steps > c.limit {
		panic(c)
	}
}

func TestFind(t *testing.T) {
	tests := map[string]struct {
		pattern, subject string
		start, end       int
		found            bool
	}{
		"plain text":                                {"lo", "hello", 3, 5, true},
		"plain text that is not there":              {"x", "hello", 0, 0, false},
		"the empty pattern matches at once":         {"", "hello", 0, 0, true},
		"* is greedy":                               {"l*", "llama", 0, 2, true},
		"* matches nothing":                         {"x*", "hello", 0, 0, true},
		"+ needs one":                               {"l+", "hello", 2, 4, true},
		"- is lazy":                                 {"<.->", "<a><b>", 0, 3, true},
		"? is optional":                             {"https?:", "http:", 0, 5, true},
		"^ is an anchor":                            {"^l", "hello", 0, 0, false},
		"^ in the middle is a character":            {"a^", "ba^", 1, 3, true},
		"$ is an anchor at the end":                 {"l$", "all", 2, 3, true},
		"$ in the middle is a character":            {"a$b", "a$b", 0, 3, true},
		"an anchored pattern matches everything":    {"^.*$", "a\nb", 0, 3, true},
		"a class":                                   {"%d+", "abc123", 3, 6, true},
		"a complement":                              {"%D+", "123abc", 3, 6, true},
		"a set":                                     {"[b-d]+", "abcde", 1, 4, true},
		"a complement of a set":                     {"[^b-d]+", "bcade", 2, 3, true},
		"a set with classes":                        {"[%a_]+", "12ab_c", 2, 6, true},
		"a set with ]":                              {"[]x]+", "a]x", 1, 3, true},
		"a set with - at its end":                   {"[a-]+", "x-a", 1, 3, true},
		"an escaped special character":              {"%.", "a.b", 1, 2, true},
		"bytes above 127":                           {"[\x80-\xff]+", "aé", 1, 3, true},
		"a zero byte":                               {"%z", "a\x00", 1, 2, true},
		"%b":                                        {"%b()", "f(a(b)c)d", 1, 8, true},
		"%b with equal characters":                  {"%b||", "a|b|c", 1, 4, true},
		"%b without an end":                         {"%b()", "f((a)", 2, 5, true},
		"%f at the start of a word":                 {"%f[%a]%a+", "12 ab", 3, 5, true},
		"%f at the end":                             {"%f[%z]", "ab", 2, 2, true},
		"a reference":                               {"(%a)%1", "abccd", 2, 4, true},
		"a reference to an empty capture":           {"(x*)%1y", "y", 0, 1, true},
		"a reference to a position matches nothing": {"()%1", "abc", 0, 0, false},
		"a suffix after a capture is a character":   {"(a)*", "a*", 0, 2, true},
		"a suffix at the start is a character":      {"*", "a*", 1, 2, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := Compile(test.pattern)
			if err != nil {
				t.Fatal(err)
			}
			start, end, found := NewMatcher(p, test.subject, &counter{}).Find(0)
			if start != test.start || end != test.end || found != test.found {
				t.Errorf("%q in %q: got %d, %d, %t", test.pattern, test.subject, start, end, found)
			}
		})
	}
}

func TestMalformedPatternsAreErrors(t *testing.T) {
	tests := map[string]struct {
		pattern string
		want    error
	}{
		"% at the end":                      {"a%", errEndsWithEscape},
		"a set that is open":                {"[a", errMissingBracket},
		"a set with ] only":                 {"[]", errMissingBracket},
		"a set that ends with %":            {"[a%", errMissingBracket},
		"a capture that is open":            {"(a", errUnfinished},
		"a capture that is not open":        {"a)", errInvalidCapture},
		"a reference to no capture":         {"%1", errCaptureIndex},
		"a reference to an open capture":    {"(a%1)", errCaptureIndex},
		"a reference to capture 0":          {"(a)%0", errCaptureIndex},
		"%f without a set":                  {"%fa", errFrontier},
		"%b without characters":             {"%b", errBalance},
		"%b with one character":             {"%b(", errBalance},
		"33 captures":                       {strings.Repeat("()", 33), errTooManyCaptures},
		"repetitions that are too deep":     {strings.Repeat("a*", 201), errTooComplex},
		"a mistake that no subject reaches": {"^x[", errMissingBracket},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := Compile(test.pattern); err != test.want { //nolint:errorlint // the errors are not wrapped
				t.Errorf("%q: got %v, want %v", test.pattern, err, test.want)
			}
		})
	}
}

func TestCaptures(t *testing.T) {
	p, err := Compile("((%a+)()=(%d*))")
	if err != nil {
		t.Fatal(err)
	}
	m := NewMatcher(p, " key=12", &counter{})
	if _, _, found := m.Find(0); !found || p.Captures() != 4 {
		t.Fatalf("no match with 4 captures: %t, %d", found, p.Captures())
	}
	for i, want := range []struct {
		text     string
		position int
	}{{"key=12", 0}, {"key", 0}, {"", 5}, {"12", 0}} {
		if text, position := m.Capture(i); text != want.text || position != want.position {
			t.Errorf("capture %d: got %q, %d, want %q, %d", i, text, position, want.text, want.position)
		}
	}
}

func TestSearchesReportTheirStepsInSmallParts(t *testing.T) {
	subject := strings.Repeat("a", 2000)
	for name, pattern := range map[string]string{
		"lazy repetitions":   strings.Repeat("a-", 20) + "b",
		"greedy repetitions": strings.Repeat("a*", 20) + "b",
		"optional bytes":     strings.Repeat("a?", 200) + strings.Repeat("a", 2000) + "b",
		"captures":           strings.Repeat("(a*)", 20) + "b",
		"references":         "(a*)%1%1%1(a*)%2b",
		"one repetition":     "a*a*a*b",
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Compile(pattern)
			if err != nil {
				t.Fatal(err)
			}
			steps := &counter{limit: 1_000_000}
			defer func() {
				if recover() != steps {
					t.Errorf("the search ended after %d steps", steps.steps)
				}
				if limit := stepsPerReport + len(subject)/16 + 1; steps.largest > limit {
					t.Errorf("one report has %d steps, want at most %d", steps.largest, limit)
				}
			}()
			NewMatcher(p, subject, steps).Find(0)
		})
	}
}

// FuzzCompile requires that a compiled pattern finds matches within the subject.
func FuzzCompile(f *testing.F) {
	f.Add("(%a*)%b()[^]]-%1$", "ab(c)ab")
	f.Fuzz(func(t *testing.T, text, subject string) {
		p, err := Compile(text)
		if err != nil {
			return
		}
		steps := &counter{limit: 100_000}
		defer func() {
			if r := recover(); r != nil && r != steps {
				panic(r)
			}
		}()
		m := NewMatcher(p, subject, steps)
		start, end, found := m.Find(0)
		if !found {
			return
		}
		if start < 0 || end < start || end > len(subject) {
			t.Errorf("%q in %q: from %d to %d", text, subject, start, end)
		}
		for i := range p.Captures() {
			if part, position := m.Capture(i); position > len(subject)+1 || !strings.Contains(subject, part) {
				t.Errorf("%q in %q: capture %d is %q, %d", text, subject, i, part, position)
			}
		}
	})
}

func BenchmarkFind(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		p, err := Compile("^(%d+)%.(%d+)%.(%d+)$")
		if err != nil {
			b.Fatal(err)
		}
		if _, _, found := NewMatcher(p, "1.26.3", &counter{}).Find(0); !found {
			b.Fatal("no match")
		}
	}
}
