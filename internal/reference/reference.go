// Package reference writes the pages of docs/reference.
//
// Each page is derived from the tables that the programs use, from the comments of the constants of
// api, or from the comments of the shipped customizations. A page has no other source, so it cannot differ from the code.
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
// The command of karmada links kube-apiserver, and the generator must not link it. A test of
// internal/standalone/up writes and compares the page of karmada.
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
	text := newMarkdown("Reference", "These pages are generated from the tables of the programs, and `make verify` compares them.")
	rows := [][]string{
		{"[Feature gates](gates.md)", "stages and defaults"},
		{"[Metrics](metrics.md)", "types, labels and programs"},
		{"[Conditions](conditions.md)", "types, reasons and situations"},
		{"[Events](events.md)", "reasons, types, objects and situations"},
		{"[Interpreted kinds](interpreted-kinds.md)", "kinds of other projects, with the rules of each operation"},
	}
	for _, program := range components.Programs() {
		rows = append(rows, []string{"[" + program.Name + "](flags/" + program.Name + ".md)", "flags"})
	}
	for _, program := range []string{cli.Karmadactl, "karmada"} {
		rows = append(rows, []string{"[" + program + "](flags/" + program + ".md)", "commands and flags"})
	}
	text.addTable([]string{"page", "content"}, rows)
	return text
}

// newPage returns a page of the reference. name is the path of the page relative to Folder.
func newPage(name string, text *markdown) Page {
	return Page{Path: path.Join(Folder, name), Content: text.String()}
}
