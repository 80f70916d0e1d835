package kubectl

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"karmada.io/karmada/internal/cli/command"
)

// metricsDelay is the age up to which it is normal that a pod has no metrics.
const metricsDelay = 2 * time.Minute

type topPodOptions struct {
	topOptions
	allNamespaces   bool
	fieldSelector   string
	showsContainers bool
	showsSum        bool
}

// podUsage is the usage of the containers of one pod.
type podUsage struct {
	cluster string
	metrics metricsv1beta1.PodMetrics
}

func newTopPod(program *command.Program) *cobra.Command {
	o := &topPodOptions{topOptions: topOptions{ClientFlags: command.ClientFlags{Program: program}}}
	cmd := &cobra.Command{
		Use:     "pod [NAME | -l label]",
		Aliases: []string{"pods", "po"},
		Short:   "Show resource usage of pods in members",
		Long:    "Show the CPU and memory usage of pods in members. Metrics of a pod are available some minutes after its start.",
		Example: program.Examples(`
			# Pods of a namespace in all members, with the sum
			{{program}} top pod -n shop --sum

			# Containers of the pods of an application in two members
			{{program}} top pod -l app=web --containers --clusters east,west`),
		Args:              func(_ *cobra.Command, args []string) error { return o.validate(args, o.fieldSelector) },
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
		ValidArgsFunction: o.complete("pods"),
	}
	o.addFlags(cmd)
	o.AddNamespaceFlag(cmd, o.NewFactory(&o.completionTarget, 0))
	flags := cmd.Flags()
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "query all namespaces")
	flags.StringVar(&o.fieldSelector, "field-selector", "", "field query, such as metadata.name!=web-0")
	flags.BoolVar(&o.showsContainers, "containers", false, "show each container")
	flags.BoolVar(&o.showsSum, "sum", false, "show the sum in the last line")
	return cmd
}

func (p *topPodOptions) run(ctx context.Context, args []string) error {
	pods, err := queryMembers(ctx, &p.topOptions,
		func(ctx context.Context, m metricsReader) ([]podUsage, error) { return p.readPods(ctx, m, args) })
	if len(pods) == 0 {
		if err == nil {
			err = p.printNoResources()
		}
		return err
	}
	if printErr := printTable(p.Program.Out, p.noHeaders, p.newPodTable(pods)); printErr != nil {
		return printErr
	}
	return err
}

func (p *topPodOptions) printNoResources() error {
	namespace, _, err := p.NewFactory(&command.Target{}, 0).ToRawKubeConfigLoader().Namespace()
	switch {
	case err != nil:
		return err
	case p.allNamespaces:
		p.Program.Messagef("No resources found")
	default:
		p.Program.Messagef("No resources found in %s namespace.", namespace)
	}
	return nil
}

// readPods returns the usage of the pods of one member.
func (p *topPodOptions) readPods(ctx context.Context, m metricsReader, args []string) (found []podUsage, err error) {
	namespace := m.namespace
	if p.allNamespaces {
		namespace = metav1.NamespaceAll
	}
	query := metav1.ListOptions{LabelSelector: p.selector, FieldSelector: p.fieldSelector}
	if len(args) == 1 {
		query.FieldSelector = "metadata.name=" + args[0]
	}
	metrics, err := m.readPodMetrics(ctx, namespace, query, args)
	if err != nil {
		return nil, err
	}
	if len(metrics) == 0 {
		return nil, m.explainNoMetrics(ctx, namespace, query, args)
	}
	for i := range metrics {
		found = append(found, podUsage{cluster: m.target.Name(), metrics: metrics[i]})
	}
	return found, nil
}

func (m metricsReader) readPodMetrics(ctx context.Context, namespace string, query metav1.ListOptions,
	args []string) ([]metricsv1beta1.PodMetrics, error) {
	if len(args) == 1 && namespace != metav1.NamespaceAll {
		one, err := m.metrics.PodMetricses(namespace).Get(ctx, args[0], metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading metrics of pod %q: %w", args[0], err)
		}
		return []metricsv1beta1.PodMetrics{*one}, nil
	}
	list, err := m.metrics.PodMetricses(namespace).List(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("listing metrics of pods: %w", err)
	}
	return list.Items, nil
}

// explainNoMetrics returns the reason why there are no metrics. It returns nil if there are no
// pods, NotFound if the named pod does not exist, and otherwise an error about missing metrics.
func (m metricsReader) explainNoMetrics(ctx context.Context, namespace string, query metav1.ListOptions, args []string) error {
	pods, err := m.member.CoreV1().Pods(namespace).List(ctx, query)
	if err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	if len(pods.Items) == 0 && len(args) == 1 {
		return apierrors.NewNotFound(corev1.Resource("pods"), args[0])
	}
	return noMetricsError(pods.Items, time.Now())
}

// noMetricsError returns the error for pods without metrics, or nil if there are no pods.
func noMetricsError(pods []corev1.Pod, now time.Time) error {
	if len(pods) == 0 {
		return nil
	}
	for i := range pods {
		if age := now.Sub(pods[i].CreationTimestamp.Time); age > metricsDelay {
			return fmt.Errorf("metrics not available for pod %s/%s, age: %s", pods[i].Namespace, pods[i].Name, age.Round(time.Second))
		}
	}
	return errNoMetricsYet
}
