package reference

import (
	"fmt"
	"strings"
)

// notice is the first line of each page.
const notice = "<!-- Generated from the code of the programs. DO NOT EDIT. -->\n"

// markdown is the text of a page.
type markdown struct{ strings.Builder }

// newMarkdown returns a page with a title and an introduction.
func newMarkdown(title, introduction string) *markdown {
	text := &markdown{}
	fmt.Fprintf(text, "%s\n# %s\n\n%s\n", notice, title, introduction)
	return text
}

// addSection adds a section with an introduction, which may be empty.
func (m *markdown) addSection(title, introduction string) {
	fmt.Fprintf(m, "\n## %s\n", title)
	m.addParagraph(introduction)
}

// addParagraph adds a paragraph, unless the text is empty.
func (m *markdown) addParagraph(text string) {
	if text != "" {
		fmt.Fprintf(m, "\n%s\n", text)
	}
}

// addTable adds a table. It omits columns that are empty in all rows.
func (m *markdown) addTable(header []string, rows [][]string) {
	var used []int
	for column := range header {
		for _, row := range rows {
			if row[column] != "" {
				used = append(used, column)
				break
			}
		}
	}
	addRow := func(cells []string) {
		for _, column := range used {
			m.WriteString("| " + cells[column] + " ")
		}
		m.WriteString("|\n")
	}
	m.WriteString("\n")
	addRow(header)
	m.WriteString(strings.Repeat("|---", len(used)) + "|\n")
	for _, row := range rows {
		addRow(row)
	}
}

var cellEscapes = strings.NewReplacer("|", `\|`, "<", "&lt;", ">", "&gt;", "*", `\*`, "\n", "<br>")

// cell returns a text that is escaped for a cell of a table.
func cell(text string) string { return cellEscapes.Replace(strings.TrimSpace(text)) }

// code returns a text that is formatted as code for a cell of a table. An empty text stays empty.
func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + strings.NewReplacer("|", `\|`, "\n", " ").Replace(text) + "`"
}

// sentence returns a text that begins with a capital letter and ends with a full stop.
func sentence(text string) string {
	text = strings.TrimSuffix(strings.TrimSpace(text), ".")
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}
