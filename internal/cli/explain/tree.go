package explain

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/console"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/diagnose"
	"karmada.io/karmada/internal/domain/placement"
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
each cluster, and the objects in the member, each with its state. The bindings of
dependencies are below the binding of the object.

The state of an object in a member is the state that its Work reports.`,
		Example: program.Examples(`
			# The objects of a Deployment
			{{program}} tree deployment/web -n shop

			# The same for a program
			{{program}} tree deploy web -n shop -o yaml`),
		Args: CheckArguments,
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
func readTree(ctx context.Context, reader *Reader) (*treeNode, error) {
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
	root.Children = []*treeNode{below}
	return root, errors.Join(errs...)
}

// readBindingNode returns a binding with its Works.
func readBindingNode(ctx context.Context, reader *Reader, bound binding.Object) (*treeNode, error) {
	works := reader.ReadWorks(ctx, bound)
	below := newBindingNode(bound)
	below.Children = workNodes(bound, works.Value)
	return below, works.Err
}

func workNodes(bound binding.Object, works []*workv1alpha1.Work) []*treeNode {
	var nodes []*treeNode
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

// treeNode is an object with the objects below it.
type treeNode struct {
	// Cluster is the member that has the object. It is empty for objects of the control plane.
	Cluster   string      `json:"cluster,omitempty"`
	Kind      string      `json:"kind"`
	Namespace string      `json:"namespace,omitempty"`
	Name      string      `json:"name"`
	State     string      `json:"state,omitempty"`
	Children  []*treeNode `json:"children,omitempty"`
}

// describe returns the kind, namespace and name, with the cluster in front for a member object.
func (n *treeNode) describe() string {
	text := n.Kind + " " + strings.TrimPrefix(n.Namespace+"/"+n.Name, "/")
	if n.Cluster != "" {
		text = n.Cluster + ": " + text
	}
	return text
}

func sortNodes(nodes []*treeNode) {
	slices.SortFunc(nodes, func(a, b *treeNode) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

func newTemplateNode(kind schema.GroupVersionKind, key types.NamespacedName, template diagnose.Fact[*unstructured.Unstructured]) *treeNode {
	root := &treeNode{Kind: kind.Kind, Namespace: key.Namespace, Name: key.Name, State: "exists"}
	switch {
	case template.Err != nil:
		root.State = "unknown"
	case template.Value == nil:
		root.State = "does not exist"
	case template.Value.GetDeletionTimestamp() != nil:
		root.State = "is being deleted"
	}
	return root
}

func newBindingNode(bound binding.Object) *treeNode {
	kind := workv1alpha2.ResourceKindClusterResourceBinding
	if binding.IsNamespaced(bound) {
		kind = workv1alpha2.ResourceKindResourceBinding
	}
	types := []string{workv1alpha2.Scheduled, workv1alpha2.FullyApplied}
	if bound.BindingSpec().Placement == nil {
		types = types[1:] // the scheduler does not handle a binding without a placement
	}
	state := describeConditions(bound, bound.BindingStatus().Conditions, types...)
	if placement.IsSchedulingSuspended(bound.BindingSpec()) {
		state = diagnose.ReasonSchedulingSuspended + ", " + state
	}
	return &treeNode{Kind: kind, Namespace: bound.GetNamespace(), Name: bound.GetName(), State: state}
}

func newWorkNode(bound binding.Object, of *workv1alpha1.Work) *treeNode {
	below := &treeNode{
		Kind: workv1alpha1.ResourceKindWork, Namespace: of.Namespace, Name: of.Name,
		State: describeConditions(of, of.Status.Conditions, workv1alpha1.WorkApplied),
	}
	cluster, _ := work.ClusterOf(of.Namespace)
	if work.IsSuspended(of) || binding.IsDispatchSuspended(bound, cluster) {
		below.State = diagnose.ReasonDispatchSuspended + ", " + below.State
	}
	for ordinal := range of.Spec.Workload.Manifests {
		below.Children = append(below.Children, newMemberNode(cluster, of, ordinal))
	}
	return below
}

// newMemberNode returns the object of one manifest of a Work.
func newMemberNode(cluster string, of *workv1alpha1.Work, ordinal int) *treeNode {
	manifest, err := work.DecodeManifest(of.Spec.Workload.Manifests[ordinal])
	if err != nil {
		return &treeNode{Cluster: cluster, Kind: "manifest", Name: fmt.Sprint(ordinal), State: err.Error()}
	}
	object := &treeNode{Cluster: cluster, Kind: manifest.GetKind(), Namespace: manifest.GetNamespace(), Name: manifest.GetName(), State: "not reported"}
	for i := range of.Status.ManifestStatuses {
		if status := &of.Status.ManifestStatuses[i]; status.Identifier.Ordinal == ordinal {
			object.State = cmp.Or(string(status.Health), "no health") + readyText(status.Status)
		}
	}
	return object
}

// describeConditions returns the conditions of an object with their status, such as "Applied", or
// "not Applied (AppliedFailed)".
func describeConditions(of metav1.Object, conditions []metav1.Condition, types ...string) string {
	var texts []string
	if of.GetDeletionTimestamp() != nil {
		texts = append(texts, "is being deleted")
	}
	for _, kind := range types {
		i := slices.IndexFunc(conditions, func(c metav1.Condition) bool { return c.Type == kind })
		switch {
		case i < 0:
			texts = append(texts, kind+" not reported")
		case conditions[i].Status == metav1.ConditionTrue:
			texts = append(texts, kind)
		default:
			texts = append(texts, fmt.Sprintf("not %s (%s)", kind, conditions[i].Reason))
		}
	}
	return strings.Join(texts, ", ")
}

// readyText returns the ready replicas in a reflected status, such as ", 2/4 ready". It returns an
// empty text for a status without replicas.
func readyText(status *runtime.RawExtension) string {
	var read struct {
		Replicas      *int32 `json:"replicas"`
		ReadyReplicas int32  `json:"readyReplicas"`
	}
	if status == nil || json.Unmarshal(status.Raw, &read) != nil || read.Replicas == nil {
		return ""
	}
	return fmt.Sprintf(", %d/%d ready", read.ReadyReplicas, *read.Replicas)
}

// print prints the tree in the selected format.
func (o *treeOptions) print(root *treeNode) error {
	output := console.Output{Header: []string{"OBJECT", "STATE"}, ColumnGap: 3, Object: root}
	addRows(&output, root, "", "")
	return o.format.Print(o.Program.Out, output)
}

// addRows adds a node and the nodes below it. first is the text in front of the node, and rest the
// text in front of the nodes below it.
func addRows(output *console.Output, of *treeNode, first, rest string) {
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
func (n *treeNode) outputName() string {
	name := strings.ToLower(n.Kind) + "/" + n.Name
	if n.Cluster != "" {
		name = n.Cluster + ": " + name
	}
	return name
}
