// Package tree prints a template with the objects that Karmada creates for it: its bindings, Works and
// member objects, each with its state.
//
// The state of a member object is that of its Work, so no member is queried. Equal states give equal
// output.
package tree

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/cli/chain"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/console"
	"karmada.io/karmada/internal/domain/binding"
)

type options struct {
	chain.Flags
	format console.Format
}

// New returns the command that shows the objects of a template.
func New(program *command.Program) *cobra.Command {
	o := &options{Flags: chain.NewFlags(program)}
	cmd := &cobra.Command{
		Use:   "tree (KIND/NAME | KIND NAME)",
		Short: "Show the bindings, Works and member objects of an object",
		Long: `Show one object with the objects that Karmada creates for it: its binding, the Work of
each cluster, and the objects in the member, each with its state. The bindings of
dependencies are below the binding of the object.

The state of an object in a member is the state that its Work reports.`,
		Example: program.Examples(`
			# The objects of a Deployment
			{{program}} tree deployment/web -n shop

			# The same for a program
			{{program}} tree deploy web -n shop -o yaml`),
		Args: chain.CheckArguments,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.AddFlags(cmd)
	o.format.AddFlag(cmd)
	return cmd
}

func (o *options) run(ctx context.Context, args []string) error {
	reader, err := o.NewReader(args)
	if err != nil {
		return err
	}
	root, err := readTree(ctx, reader)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if root == nil {
		return err
	}
	return errors.Join(o.print(root), err)
}

// readTree returns the tree of the template. The error names the objects that could not be read. The
// tree is nil if there is neither a template nor a binding.
func readTree(ctx context.Context, reader *chain.Reader) (*node, error) {
	template, bound := reader.ReadTemplate(ctx), reader.ReadBinding(ctx)
	errs := []error{wrap("reading the template", template.Err), wrap("reading the binding", bound.Err)}
	if template.Value == nil && bound.Value == nil {
		if err := errors.Join(errs...); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%s %s does not exist in the control plane, and has no binding", reader.Template.Kind().Kind, reader.Template.Key)
	}
	root := newTemplateNode(reader.Template.Kind(), reader.Template.Key, template)
	if bound.Value == nil {
		return root, errors.Join(errs...)
	}
	below, err := readBindingNode(ctx, reader, bound.Value)
	errs = append(errs, err)
	attached := reader.ReadAttached(ctx, bound.Value)
	errs = append(errs, attached.Err)
	for _, dependency := range attached.Value {
		child, err := readBindingNode(ctx, reader, dependency)
		child.State = "attached, " + child.State
		below.Children = append(below.Children, child)
		errs = append(errs, err)
	}
	root.Children = []*node{below}
	return root, errors.Join(errs...)
}

// readBindingNode returns a binding with its Works.
func readBindingNode(ctx context.Context, reader *chain.Reader, bound binding.Object) (*node, error) {
	works := reader.ReadWorks(ctx, bound)
	below := newBindingNode(bound)
	below.Children = workNodes(bound, works.Value)
	return below, works.Err
}

func workNodes(bound binding.Object, works []*workv1alpha1.Work) []*node {
	var nodes []*node
	for _, each := range works {
		nodes = append(nodes, newWorkNode(bound, each))
	}
	sortNodes(nodes)
	return nodes
}

func wrap(action string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", action, err)
}
