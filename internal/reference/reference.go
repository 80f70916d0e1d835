// Package reference generates the pages of docs/reference.
//
// The sources of a page are the tables of the programs, the comments of the constants in api, and the
// comments of the shipped customizations. Because a page has no other source, it always describes the
// current code.
package reference

import (
	"fmt"
	"path"

	"karmada.io/karmada/internal/cli"
	"karmada.io/karmada/internal/programs/components"
)

// Folder is the folder of the pages, relative to the root directory of the repository.
const Folder = "docs/reference"

// Page is a page of the reference.
type Page struct {
	// Path is the path of the page, relative to the root directory of the repository.
	Path    string
	Content string
}

// Pages returns all pages except the page of karmada. root is the root directory of the repository.
// The page of karmada is not included, because the commands of karmada link kube-apiserver: a test in
// internal/standalone/up writes and verifies this page.
func Pages(root string) ([]Page, error) {
	source, err := readSource(root)
	if err != nil {
		return nil, err
	}
	metrics, err := metricsPage()
	if err != nil {
		return nil, fmt.Errorf("page of metrics: %w", err)
	}
	events, err := eventsPage(source)
	if err != nil {
		return nil, fmt.Errorf("page of events: %w", err)
	}
	kinds, err := kindsPage()
	if err != nil {
		return nil, fmt.Errorf("page of interpreted kinds: %w", err)
	}
	pages := []Page{
		newPage("README.md", indexPage()), newPage("gates.md", gatesPage(source)), newPage("metrics.md", metrics),
		newPage("conditions.md", conditionsPage(source)), newPage("events.md", events), newPage("interpreted-kinds.md", kinds),
	}
	return append(pages, flagPages()...), nil
}

// indexPage returns the page that lists the other pages.
func indexPage() *markdown {
	text := newMarkdown("Reference", "These pages are generated from the tables of the programs. `make verify` fails if a page is outdated.")
	rows := [][]string{
		{"[Feature gates](gates.md)", "The stage, the default and the meaning of each feature gate."},
		{"[Metrics](metrics.md)", "The type, the labels and the programs of each metric."},
		{"[Conditions](conditions.md)", "The types of conditions of each kind, with their reasons."},
		{"[Events](events.md)", "The reasons, types and objects of events, and the components that report them."},
		{"[Interpreted kinds](interpreted-kinds.md)", "The kinds of other projects that Karmada interprets, with the rules of each operation."},
	}
	for _, program := range components.Programs() {
		rows = append(rows, []string{"[" + program.Name + "](flags/" + program.Name + ".md)", "The flags of the program."})
	}
	for _, program := range []string{cli.Karmadactl, "karmada"} {
		rows = append(rows, []string{"[" + program + "](flags/" + program + ".md)", "The commands of the program and their flags."})
	}
	text.addTable([]string{"page", "content"}, rows)
	return text
}

// newPage returns a page of the reference. name is the path of the page relative to Folder.
func newPage(name string, text *markdown) Page {
	return Page{Path: path.Join(Folder, name), Content: text.String()}
}
