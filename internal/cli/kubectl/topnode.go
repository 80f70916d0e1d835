package kubectl

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"karmada.io/karmada/internal/cli/command"
)

type topNodeOptions struct {
	topOptions
	usesCapacity bool
}

// nodeUsage is the usage of one node. The usage is nil if there are no metrics of the node.
type nodeUsage struct {
	name, cluster    string
	usage, available corev1.ResourceList
}

func newTopNode(program *command.Program) *cobra.Command {
	o := &topNodeOptions{topOptions: topOptions{ClientFlags: command.ClientFlags{Program: program}}}
	cmd := &cobra.Command{
		Use:     "node [NAME | -l label]",
		Aliases: []string{"nodes", "no"},
		Short:   "Show resource usage of nodes in members",
		Long:    "Show the CPU and memory usage of nodes in members, and the percentage of their allocatable resources.",
		Example: program.Examples(`
			# Nodes of all members, sorted by CPU usage
			{{program}} top node --sort-by cpu

			# One node, as a percentage of its capacity
			{{program}} top node node-1 --clusters east --show-capacity`),
		Args:              func(_ *cobra.Command, args []string) error { return o.validate(args, "") },
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
		ValidArgsFunction: o.complete("nodes"),
	}
	o.addFlags(cmd)
	cmd.Flags().BoolVar(&o.usesCapacity, "show-capacity", false, "show percentages of the capacity instead of the allocatable resources")
	return cmd
}

func (n *topNodeOptions) run(ctx context.Context, args []string) error {
	nodes, err := queryMembers(ctx, &n.topOptions,
		func(ctx context.Context, m metricsReader) ([]nodeUsage, error) { return n.readNodes(ctx, m, args) })
	if len(nodes) == 0 && err == nil {
		n.Program.Messagef("No resources found")
	}
	if printErr := printTable(n.Program.Out, n.noHeaders, newNodeTable(nodes, n.sortBy)); printErr != nil {
		return printErr
	}
	return err
}

// readNodes returns the usage of the nodes of one member.
func (n *topNodeOptions) readNodes(ctx context.Context, m metricsReader, args []string) ([]nodeUsage, error) {
	nodes, metrics, err := n.listNodes(ctx, m, args)
	if err != nil {
		return nil, err
	}
	if len(nodes) > 0 && len(metrics) == 0 && len(args) == 0 {
		return nil, errNoMetricsYet
	}
	usages := map[string]corev1.ResourceList{}
	for i := range metrics {
		usages[metrics[i].Name] = metrics[i].Usage
	}
	var found []nodeUsage
	for i := range nodes {
		use := nodeUsage{name: nodes[i].Name, cluster: m.target.Name(), usage: usages[nodes[i].Name], available: nodes[i].Status.Allocatable}
		if n.usesCapacity {
			use.available = nodes[i].Status.Capacity
		}
		found = append(found, use)
	}
	return found, nil
}

func (n *topNodeOptions) listNodes(ctx context.Context, m metricsReader,
	args []string) ([]corev1.Node, []metricsv1beta1.NodeMetrics, error) {
	if len(args) == 1 {
		node, err := m.member.CoreV1().Nodes().Get(ctx, args[0], metav1.GetOptions{})
		if err != nil {
			return nil, nil, fmt.Errorf("reading node %q: %w", args[0], err)
		}
		metrics, err := m.metrics.NodeMetricses().Get(ctx, args[0], metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return []corev1.Node{*node}, nil, nil
		}
		if err != nil {
			return nil, nil, fmt.Errorf("reading metrics of node %q: %w", args[0], err)
		}
		return []corev1.Node{*node}, []metricsv1beta1.NodeMetrics{*metrics}, nil
	}
	query := metav1.ListOptions{LabelSelector: n.selector}
	nodes, err := m.member.CoreV1().Nodes().List(ctx, query)
	if err != nil {
		return nil, nil, fmt.Errorf("listing nodes: %w", err)
	}
	metrics, err := m.metrics.NodeMetricses().List(ctx, query)
	if err != nil {
		return nil, nil, fmt.Errorf("listing metrics of nodes: %w", err)
	}
	return nodes.Items, metrics.Items, nil
}
