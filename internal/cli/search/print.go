package search

import (
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"

	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
)

const (
	// none is the value of an empty cell.
	none = "<none>"
	// noNamespace replaces the namespace in names. It is no valid name of a namespace.
	noNamespace = "-"
	// minMatchedWidth is the minimum width of the column MATCHED in characters.
	minMatchedWidth = 20
)

// tableHeader returns the columns of the table.
func tableHeader(wide bool) []string {
	header := []string{"CLUSTER", "KIND", "NAMESPACE", "NAME", "AGE"}
	if wide {
		header = append(header, "API-VERSION", "STALE")
	}
	return append(header, "MATCHED")
}

// newRow returns the cells of an object.
func newRow(result *searchv1alpha1.SearchResult, now time.Time, wide bool) []string {
	cells := []string{result.Cluster, result.Kind, orNone(result.Namespace), result.Name, orNone(formatAge(result, now))}
	if wide {
		stale := ""
		if result.StaleSince != nil {
			stale = duration.HumanDuration(now.Sub(result.StaleSince.Time))
		}
		cells = append(cells, result.APIVersion, orNone(stale))
	}
	cells = append(cells, orNone(describeMatches(result.Matches)))
	for i := range cells {
		cells[i] = printable(cells[i])
	}
	return cells
}

func formatAge(result *searchv1alpha1.SearchResult, now time.Time) string {
	if result.CreationTimestamp == nil || result.CreationTimestamp.IsZero() {
		return ""
	}
	return duration.HumanDuration(now.Sub(result.CreationTimestamp.Time))
}

func orNone(text string) string {
	if text == "" {
		return none
	}
	return text
}

// describeMatches lists the fields that match, in one line.
func describeMatches(matches []searchv1alpha1.SearchMatch) string {
	texts := make([]string, 0, len(matches))
	for _, match := range matches {
		texts = append(texts, match.Field+"="+match.Value)
	}
	return strings.Join(texts, ", ")
}

// printable replaces control characters, with which an object could change the terminal or the
// columns.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
}

// uniqueName returns the name of an object among all clusters: CLUSTER/NAMESPACE/KIND.GROUP/NAME.
func uniqueName(result *searchv1alpha1.SearchResult) string {
	namespace := result.Namespace
	if namespace == "" {
		namespace = noNamespace
	}
	kind := schema.FromAPIVersionAndKind(result.APIVersion, result.Kind).GroupKind()
	return strings.Join([]string{result.Cluster, namespace, kind.String(), result.Name}, "/")
}

// terminalWidth returns the width of the terminal in characters, or 0 if the output is no terminal.
func (o *options) terminalWidth() int {
	file, isFile := o.Program.Out.(*os.File)
	if !isFile {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// truncateLast shortens the last cell of each row so that a line fits into the width. A width of 0
// means that there is no limit.
func truncateLast(rows [][]string, width, gap int) {
	if width == 0 {
		return
	}
	remaining := width
	last := len(rows[0]) - 1
	for column := range last {
		widest := 0
		for _, cells := range rows {
			widest = max(widest, utf8.RuneCountInString(cells[column]))
		}
		remaining -= widest + gap
	}
	for _, cells := range rows {
		cells[last] = truncate(cells[last], max(remaining, minMatchedWidth))
	}
}

// truncate returns a text of at most limit characters.
func truncate(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit-1]) + "…"
}
