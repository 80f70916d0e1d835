package architecture

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// namedTest matches a test that a page names as code.
	namedTest = regexp.MustCompile("`(Test[A-Z]\\w*)`")
	// declaredTest matches the declaration of a test.
	declaredTest = regexp.MustCompile(`(?m)^func (Test[A-Z]\w*)\(`)
)

// TestDocsNameExistingTests checks that each test that a page names as its proof exists.
func TestDocsNameExistingTests(t *testing.T) {
	var pages, tests []string
	for _, s := range readSources(t) {
		switch {
		case strings.HasSuffix(s.path, ".md"):
			pages = append(pages, string(s.content))
		case strings.HasSuffix(s.path, "_test.go"):
			tests = append(tests, string(s.content))
		}
	}
	if named := namesIn(namedTest, pages); len(named) == 0 {
		t.Error("no page names a test")
	}
	for _, name := range missingTests(pages, tests) {
		t.Errorf("a page names %s, which does not exist: name the test that now proves the statement", name)
	}
}

// missingTests returns the tests that pages name and that no file declares.
func missingTests(pages, files []string) []string {
	declared := namesIn(declaredTest, files)
	return slices.DeleteFunc(namesIn(namedTest, pages), func(name string) bool {
		_, found := slices.BinarySearch(declared, name)
		return found
	})
}

// namesIn returns the sorted names that the pattern finds in the texts.
func namesIn(pattern *regexp.Regexp, texts []string) []string {
	var names []string
	for _, text := range texts {
		for _, match := range pattern.FindAllStringSubmatch(text, -1) {
			names = append(names, match[1])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func TestMissingTests(t *testing.T) {
	got := missingTests([]string{"`TestKept` proves it, and `TestGone` too.\n"}, []string{"package a\n\nfunc TestKept(t *testing.T) {}\n"})
	if !slices.Equal(got, []string{"TestGone"}) {
		t.Errorf("got %v", got)
	}
}
