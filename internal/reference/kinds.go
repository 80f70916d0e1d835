package reference

import (
	"path"

	"karmada.io/karmada/internal/domain/interpreter/builtin"
)

// kindsFolder is the folder of the shipped customizations, relative to the folder of the pages.
const kindsFolder = "../../internal/domain/interpreter/builtin/kinds"

// kindsPage returns the page of interpreted kinds. Its source is the comments in the shipped
// customizations.
func kindsPage() (*markdown, error) {
	kinds, err := builtin.Kinds()
	if err != nil {
		return nil, err
	}
	text := newMarkdown("Interpreted kinds", "Karmada interprets these kinds of other projects without any configuration. "+
		"If an operation is not listed for a kind, the default applies: Karmada collects the whole status, and has no other rule. "+
		"A ResourceInterpreterCustomization or a ResourceInterpreterWebhookConfiguration takes precedence for each operation that it implements. "+
		"You can use the scripts as examples for your own customizations. Your scripts can require the same modules. Upstream has only the module `kube`.")
	for _, kind := range kinds {
		target := kind.Target()
		text.addSection(target.GroupVersion().String()+" "+target.Kind,
			sentence(kind.Description)+" [Scripts]("+path.Join(kindsFolder, kind.File)+").")
		var rows [][]string
		for _, operation := range kind.Operations {
			rows = append(rows, []string{code(string(operation.Name)), cell(sentence(operation.Text))})
		}
		text.addTable([]string{"operation", "rule"}, rows)
	}
	return text, nil
}
