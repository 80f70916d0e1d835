package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/console"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/diagnose"
	"karmada.io/karmada/internal/domain/work"
)

type treeOptions struct {
	Flags
	format console.Format
}

// NewTree returns the command that shows the objects of a template.
func NewTree(program *command.Program) *cobra.Command {
	o := &treeOptions{Flags: NewFlags(program)}
	cmd := &cobra.Command{
		Use:   "tree (KIND/NAME | KIND NAME)",
		Short: "Show the bindings, Works and member objects of an object",
		Long: `Show one object with the objects that Karmada creates for it: its binding, the Work of
each cluster, and the objects in the members. The bindings of dependencies are below the
binding of the object.

The state of each object is the reason that "trace" shows for it. No member is queried:
the state of an object in a member is the state that its Work reports.`,
		Example: program.Examples(`
			# The objects of a Deployment
			{{program}} tree deployment/web -n shop

			# The same for a program
			{{program}} tree deploy web -n shop -o yaml`),
		Args: validateArguments,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.AddFlags(cmd)
	o.format.AddFlag(cmd)
	return cmd
}

func (o *treeOptions) run(ctx context.Context, args []string) error {
	reader, err := o.NewReader(args)
	if err != nil {
		return err
	}
	facts := reader.Read(ctx, time.Now())
	errs := []error{wrapError("reading the template", facts.Template.Err), wrapError("reading the binding", facts.Binding.Err),
		facts.Works.Err}
	if facts.Template.Value == nil && facts.Binding.Value == nil && errors.Join(errs...) == nil {
		return fmt.Errorf("%s %s does not exist in the control plane, and has no binding", facts.Kind.Kind, facts.Key)
	}
	root := newTemplateNode(&facts)
	if bound := facts.Binding.Value; bound != nil {
		attached := reader.ReadAttached(ctx, bound)
		errs = append(errs, attached.Err)
		for _, each := range attached.Value {
			dependency := diagnose.Facts{Now: facts.Now, Clusters: facts.Clusters, Works: reader.ReadWorks(ctx, each)}
			dependency.Binding.Value = each
			resource := each.BindingSpec().Resource
			dependency.Kind = schema.FromAPIVersionAndKind(resource.APIVersion, resource.Kind)
			dependency.Key = types.NamespacedName{Namespace: resource.Namespace, Name: resource.Name}
			root.Children[0].Children = append(root.Children[0].Children, newBindingNode(&dependency, diagnose.Trace(dependency)))
			errs = append(errs, dependency.Works.Err)
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if facts.Template.Value != nil || facts.Binding.Value != nil {
		errs = append(errs, o.print(root))
	}
	return errors.Join(errs...)
}

// wrapError adds the failed operation to err, which may be nil.
func wrapError(operation string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", operation, err)
}

// treeNode is an object with the objects below it.
type treeNode struct {
	// Cluster is the member that has the object. It is empty for objects of the control plane.
	Cluster   string `json:"cluster,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// State is the reason of the link that describes the object, or its message for an object in a member.
	State    string      `json:"state,omitempty"`
	Children []*treeNode `json:"children,omitempty"`
}

// newTemplateNode returns the node of the template, with the node of its binding if there is one.
func newTemplateNode(facts *diagnose.Facts) *treeNode {
	diagnosis := diagnose.Trace(*facts)
	root := &treeNode{
		Kind: facts.Kind.Kind, Namespace: facts.Key.Namespace, Name: facts.Key.Name, State: diagnosis.Summary("", diagnose.StageTemplate).Reason,
	}
	if facts.Binding.Value != nil {
		root.Children = []*treeNode{newBindingNode(facts, diagnosis)}
	}
	return root
}

// newBindingNode returns the node of a binding, with the nodes of its Works and their member objects.
func newBindingNode(facts *diagnose.Facts, diagnosis diagnose.Diagnosis) *treeNode {
	bound := facts.Binding.Value
	node := &treeNode{
		Kind: workv1alpha2.ResourceKindClusterResourceBinding, Namespace: bound.GetNamespace(), Name: bound.GetName(),
		State: diagnosis.Summary("", diagnose.StageBinding, diagnose.StageSchedule).Reason,
	}
	if binding.IsNamespaced(bound) {
		node.Kind = workv1alpha2.ResourceKindResourceBinding
	}
	for _, each := range facts.Works.Value {
		cluster, _ := work.ClusterOf(each.Namespace)
		below := &treeNode{
			Kind: workv1alpha1.ResourceKindWork, Namespace: each.Namespace, Name: each.Name,
			State: diagnosis.Summary(cluster, diagnose.StageWork).Reason,
		}
		for ordinal := range each.Spec.Workload.Manifests {
			object := &treeNode{Cluster: cluster, Kind: "manifest", Name: fmt.Sprint(ordinal)}
			manifest, err := work.DecodeManifest(each.Spec.Workload.Manifests[ordinal])
			if err != nil {
				object.State = err.Error()
			} else {
				status := diagnosis.Summary(cluster, diagnose.StageStatus)
				object.Kind, object.Namespace, object.Name = manifest.GetKind(), manifest.GetNamespace(), manifest.GetName()
				object.State = cmp.Or(status.Message, status.Reason)
			}
			below.Children = append(below.Children, object)
		}
		node.Children = append(node.Children, below)
	}
	slices.SortFunc(node.Children, func(a, b *treeNode) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return node
}

// print prints the tree in the selected format.
func (o *treeOptions) print(root *treeNode) error {
	output := console.Output{Header: []string{"OBJECT", "STATE"}, ColumnGap: 3, Object: root}
	root.addRows(&output, "", "")
	return o.format.Print(o.Program.Out, output)
}

// addRows adds the rows of the node and of the nodes below it. first is the text in front of the node, and
// rest the text in front of the nodes below it.
func (n *treeNode) addRows(output *console.Output, first, rest string) {
	cluster := ""
	if n.Cluster != "" {
		cluster = n.Cluster + ": "
	}
	output.Rows = append(output.Rows, []string{first + cluster + n.Kind + " " + strings.TrimPrefix(n.Namespace+"/"+n.Name, "/"), n.State})
	output.Names = append(output.Names, cluster+strings.ToLower(n.Kind)+"/"+n.Name)
	for i, child := range n.Children {
		if i == len(n.Children)-1 {
			child.addRows(output, rest+"└─ ", rest+"   ")
			continue
		}
		child.addRows(output, rest+"├─ ", rest+"│  ")
	}
}
