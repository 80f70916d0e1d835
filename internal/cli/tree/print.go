package tree

import (
	"strings"

	"karmada.io/karmada/internal/console"
)

// print prints the tree in the selected format.
func (o *options) print(root *node) error {
	output := console.Output{Header: []string{"OBJECT", "STATE"}, ColumnGap: 3, Object: root}
	addRows(&output, root, "", "")
	return o.format.Print(o.Program.Out, output)
}

// addRows adds a node and the nodes below it. first is the text in front of the node, and rest the
// text in front of the nodes below it.
func addRows(output *console.Output, of *node, first, rest string) {
	output.Rows = append(output.Rows, []string{first + of.describe(), of.State})
	output.Names = append(output.Names, of.outputName())
	for i, child := range of.Children {
		if i == len(of.Children)-1 {
			addRows(output, child, rest+"└─ ", rest+"   ")
			continue
		}
		addRows(output, child, rest+"├─ ", rest+"│  ")
	}
}

// outputName returns the kind in lower case with the name, and the cluster for a member object.
func (n *node) outputName() string {
	name := strings.ToLower(n.Kind) + "/" + n.Name
	if n.Cluster != "" {
		name = n.Cluster + ": " + name
	}
	return name
}
