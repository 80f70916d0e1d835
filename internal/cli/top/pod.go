package top

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
	"karmada.io/karmada/internal/cli/place"
)

// measuringTakes is how old a pod can be of which nothing was measured yet.
const measuringTakes = 2 * time.Minute

type podOptions struct {
	options
	allNamespaces bool
	fieldSelector string
	containers    bool
	sum           bool
}

// podUse is what the containers of one pod use.
type podUse struct {
	cluster string
	metrics metricsv1beta1.PodMetrics
}

func newPod(program *command.Program) *cobra.Command {
	o := &podOptions{options: options{Access: place.Access{Program: program}}}
	cmd := &cobra.Command{
		Use:     "pod [NAME | -l label]",
		Aliases: []string{"pods", "po"},
		Short:   "Show what pods of members use",
		Long:    "Show how much CPU and memory pods of members use. Pods are measured some minutes after they began.",
		Example: program.Examples(`
			# Pods of a namespace in all members, with the sum
			{{program}} top pod -n shop --sum

			# Containers of the pods of an application in two members
			{{program}} top pod -l app=web --containers --clusters east,west`),
		Args:              func(_ *cobra.Command, args []string) error { return o.check(args, o.fieldSelector) },
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
		ValidArgsFunction: o.complete("pods"),
	}
	o.addFlags(cmd)
	o.AddNamespace(cmd, o.Factory(&o.completed, 0))
	flags := cmd.Flags()
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "pods of every namespace")
	flags.StringVar(&o.fieldSelector, "field-selector", "", "field query, such as metadata.name!=web-0")
	flags.BoolVar(&o.containers, "containers", false, "show each container")
	flags.BoolVar(&o.sum, "sum", false, "show the sum in a last line")
	return cmd
}

func (o *podOptions) run(ctx context.Context, args []string) error {
	pods, err := collect(ctx, &o.options, func(ctx context.Context, m meter) ([]podUse, error) { return o.read(ctx, m, args) })
	if len(pods) == 0 {
		if err == nil {
			err = o.tellNothing()
		}
		return err
	}
	if printErr := printTable(o.Program.Out, o.noHeaders, o.podTable(pods)); printErr != nil {
		return printErr
	}
	return err
}

func (o *podOptions) tellNothing() error {
	namespace, _, err := o.Factory(&place.Place{}, 0).ToRawKubeConfigLoader().Namespace()
	switch {
	case err != nil:
		return err
	case o.allNamespaces:
		o.Program.Tell("No resources found")
	default:
		o.Program.Tell("No resources found in %s namespace.", namespace)
	}
	return nil
}

// read returns the pods of one member.
func (o *podOptions) read(ctx context.Context, m meter, args []string) (found []podUse, err error) {
	namespace := m.namespace
	if o.allNamespaces {
		namespace = metav1.NamespaceAll
	}
	query := metav1.ListOptions{LabelSelector: o.selector, FieldSelector: o.fieldSelector}
	if len(args) == 1 {
		query.FieldSelector = "metadata.name=" + args[0]
	}
	metrics, err := m.measured(ctx, namespace, query, args)
	if err != nil {
		return nil, err
	}
	if len(metrics) == 0 {
		return nil, m.whyNothing(ctx, namespace, query, args)
	}
	for i := range metrics {
		found = append(found, podUse{cluster: m.place.Name(), metrics: metrics[i]})
	}
	return found, nil
}

func (m meter) measured(ctx context.Context, namespace string, query metav1.ListOptions, args []string) ([]metricsv1beta1.PodMetrics, error) {
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

// whyNothing tells a member without such pods, which is fine unless one was asked
// for by name, from one that has them and did not measure them.
func (m meter) whyNothing(ctx context.Context, namespace string, query metav1.ListOptions, args []string) error {
	pods, err := m.member.CoreV1().Pods(namespace).List(ctx, query)
	if err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	if len(pods.Items) == 0 && len(args) == 1 {
		return apierrors.NewNotFound(corev1.Resource("pods"), args[0])
	}
	return unmeasured(pods.Items, time.Now())
}

// unmeasured is the error of pods of which nothing was measured, nil if there are
// none.
func unmeasured(pods []corev1.Pod, now time.Time) error {
	if len(pods) == 0 {
		return nil
	}
	for i := range pods {
		if age := now.Sub(pods[i].CreationTimestamp.Time); age > measuringTakes {
			return fmt.Errorf("metrics not available for pod %s/%s, age: %s", pods[i].Namespace, pods[i].Name, age.Round(time.Second))
		}
	}
	return errNotYet
}
