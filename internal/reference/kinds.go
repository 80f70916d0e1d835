package reference

import (
	"path"

	"karmada.io/karmada/internal/domain/interpreter/builtin"
)

// kindsFolder is the folder of the shipped customizations, relative to the folder of the pages.
const kindsFolder = "../../internal/domain/interpreter/builtin/kinds"

// kindsPage returns the page of the kinds of other projects. The page is made of the comments of the
// shipped customizations.
func kindsPage() (*markdown, error) {
	kinds, err := builtin.Kinds()
	if err != nil {
		return nil, err
	}
	text := newMarkdown("Interpreted kinds", "Karmada understands these kinds of other projects without configuration. "+
		"For an operation that is not listed, the default applies: the whole status is collected, and there is no other rule. "+
		"A ResourceInterpreterCustomization or a ResourceInterpreterWebhookConfiguration has precedence for each operation that it implements. "+
		"The scripts are examples for customizations of your own. Scripts of your own can require the same modules as these scripts. Upstream Karmada has only the module `kube`.")
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
