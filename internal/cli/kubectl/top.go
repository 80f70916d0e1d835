package kubectl

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubectl/pkg/util/completion"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"

	"karmada.io/karmada/internal/cli/command"
)

// The values of --sort-by.
const (
	sortByCPU    = "cpu"
	sortByMemory = "memory"
)

// NewTop returns the command that groups the commands for usage.
func NewTop(program *command.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show resource usage of nodes and pods in members, and of quotas",
		Long: `Show how much CPU and memory nodes and pods of members use, and how much of the quotas is used.

The values of nodes and pods come from the metrics servers of the members, and may be some minutes old.`,
		Example: program.Examples(`
			# Nodes of all members
			{{program}} top node

			# Pods of two members, sorted by memory usage
			{{program}} top pod -A --clusters east,west --sort-by memory`),
		SuggestFor: []string{"stats"},
		Args:       command.NoArguments,
		RunE:       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTopNode(program), newTopPod(program), newTopQuota(program))
	return cmd
}

// topOptions are the options that top node and top pod share.
type topOptions struct {
	command.ClientFlags
	timeout          command.RequestTimeout
	completionTarget command.Target

	clusters  []string
	selector  string
	sortBy    string
	noHeaders bool
	protobuf  bool
}

func (o *topOptions) addFlags(cmd *cobra.Command) {
	o.ClientFlags.AddFlags(cmd)
	o.timeout.AddFlag(cmd)
	flags := cmd.Flags()
	flags.StringSliceVarP(&o.clusters, "clusters", "C", nil, "members to query, comma separated; all members if empty")
	flags.StringVarP(&o.selector, "selector", "l", "", "label query, such as app=web,tier!=db")
	flags.StringVar(&o.sortBy, "sort-by", "", "cpu or memory: sort by usage, highest first; by name if empty")
	flags.BoolVar(&o.noHeaders, "no-headers", false, "do not print the header line")
	flags.BoolVar(&o.protobuf, "use-protocol-buffers", true, "request metrics as protocol buffers")
	o.Program.CompleteClusters(cmd, "clusters", &o.Context)
	_ = cmd.RegisterFlagCompletionFunc("sort-by",
		cobra.FixedCompletions([]string{sortByCPU, sortByMemory}, cobra.ShellCompDirectiveNoFileComp))
}

// validate returns a usage error if arguments or flags are wrong. It sends no request.
func (o *topOptions) validate(args []string, fieldSelector string) error {
	switch {
	case len(args) > 1:
		return command.NewUsageError("only one name can be given, not %d", len(args))
	case len(args) == 1 && (o.selector != "" || fieldSelector != ""):
		return command.NewUsageError("a name and a selector exclude each other")
	case o.sortBy != "" && o.sortBy != sortByCPU && o.sortBy != sortByMemory:
		return command.NewUsageError("unsupported value %q of --sort-by: use cpu or memory", o.sortBy)
	}
	if _, err := labels.Parse(o.selector); err != nil {
		return command.NewUsageError("--selector: %w", err)
	}
	if _, err := fields.ParseSelector(fieldSelector); err != nil {
		return command.NewUsageError("--field-selector: %w", err)
	}
	return nil
}

// complete completes arguments with names of objects in the first of the named members.
func (o *topOptions) complete(resource string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 || len(o.clusters) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		o.completionTarget = command.Target{Cluster: o.clusters[0]}
		return completion.CompGetResource(o.NewFactory(&o.completionTarget, 0), resource, prefix), cobra.ShellCompDirectiveNoFileComp
	}
}

// queryMembers queries the members that the flags select. It returns the results in the order of the members, and the errors of
// the failed members. It drops NotFound errors if another member has a result.
func queryMembers[T any](ctx context.Context, o *topOptions, query func(context.Context, metricsReader) ([]T, error)) (all []T, err error) {
	members, err := o.ListMembers(ctx, o.clusters)
	if err != nil {
		return nil, err
	}
	if len(members) == 0 {
		o.Program.Messagef("No member clusters found: \"%s join\" adds one.", o.Program.Name)
		return nil, nil
	}
	results, errs := command.QueryAll(ctx, members, o.timeout, func(ctx context.Context, target command.Target) ([]T, error) {
		m, err := o.newMetricsReader(ctx, target)
		if err != nil {
			return nil, err
		}
		return query(ctx, m)
	})
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("querying members: %w", err)
	}
	all = slices.Concat(results...)
	if len(all) > 0 {
		// Drop NotFound errors, because another member has the object.
		for i, err := range errs {
			errs[i] = utilerrors.FilterOut(err, apierrors.IsNotFound)
		}
	}
	return all, command.JoinErrors(members, errs)
}

// metricsReader reads the metrics of one member.
type metricsReader struct {
	target  command.Target
	member  kubernetes.Interface
	metrics metricsclient.MetricsV1beta1Interface
	// namespace is the namespace of Pods.
	namespace string
}

// errNoMetricsYet means that there are objects, but no metrics of these objects.
var errNoMetricsYet = errors.New("metrics not available yet: the metrics server collects them about once a minute, try again later")

// newMetricsReader connects to a member and checks that it has a metrics server.
func (o *topOptions) newMetricsReader(ctx context.Context, target command.Target) (m metricsReader, err error) {
	m.target = target
	factory := o.NewFactory(&target, o.timeout.HTTPTimeout())
	if err := command.VerifyReachable(ctx, factory, target); err != nil {
		return m, err
	}
	config, err := factory.ToRESTConfig()
	if err != nil {
		return m, err
	}
	if m.member, err = kubernetes.NewForConfig(config); err != nil {
		return m, fmt.Errorf("creating a client of %s: %w", target, err)
	}
	if m.metrics, err = metricsclient.NewForConfig(o.withEncoding(config)); err != nil {
		return m, fmt.Errorf("creating a metrics client of %s: %w", target, err)
	}
	if m.namespace, _, err = factory.ToRawKubeConfigLoader().Namespace(); err != nil {
		return m, err
	}
	return m, m.verifyMetricsServer(ctx)
}

// withEncoding returns a configuration with the encoding that the user chose.
func (o *topOptions) withEncoding(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	if o.protobuf {
		config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
		config.ContentType = runtime.ContentTypeProtobuf
	}
	return config
}

// verifyMetricsServer returns an error if the member does not serve the metrics API.
func (m *metricsReader) verifyMetricsServer(ctx context.Context) error {
	err := m.metrics.RESTClient().Get().AbsPath("/apis", metricsv1beta1.SchemeGroupVersion.String()).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("metrics API not available: the member does not serve %s; install a metrics server in it",
			metricsv1beta1.SchemeGroupVersion)
	}
	if err != nil {
		return fmt.Errorf("reaching the metrics server of %s: %w", m.target, err)
	}
	return nil
}
