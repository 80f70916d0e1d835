// Package rebalance contains the command that places workloads afresh: it creates a WorkloadRebalancer, waits until
// the scheduler has placed the workloads, and prints their clusters before and after.
package rebalance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/completion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "karmada.io/karmada/api/apps/v1alpha1"
	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/console"
)

const (
	// defaultTTL is how long a finished WorkloadRebalancer is kept, so that it can be inspected.
	defaultTTL = 10 * time.Minute
	// defaultTimeout suffices for thousands of workloads.
	defaultTimeout = 2 * time.Minute
)

type options struct {
	command.ClientFlags
	factory cmdutil.Factory

	clusterAdded string
	ttl, timeout time.Duration
	wait, dryRun bool
	format       console.Format

	karmada client.Client
}

// New returns the command that rebalances workloads.
func New(program *command.Program) *cobra.Command {
	o := &options{ClientFlags: command.ClientFlags{Program: program}}
	cmd := &cobra.Command{
		Use:   "rebalance (KIND/NAME... | --cluster-added CLUSTER)",
		Short: "Place workloads again, as if for the first time",
		Long: `Place workloads again as if for the first time: the scheduler ignores their current
clusters, divides their replicas anew, and starts with the first cluster affinity group.
Old copies run until the new ones are healthy.

--cluster-added selects all workloads that a fresh scheduling would place in the given
cluster, but that have nothing there: those of all namespaces, or of --namespace.

The command creates a WorkloadRebalancer, waits until the scheduler has placed the workloads,
and prints their clusters before and after. It does not wait until old copies are gone.

The exit code is 0 if all workloads are placed, and 1 if a workload cannot be placed or the
time is over.`,
		Example: program.Examples(`
			# Place a Deployment again
			{{program}} rebalance deployment/web -n shop

			# Use a new cluster
			{{program}} rebalance --cluster-added east

			# What would move to the new cluster?
			{{program}} rebalance --cluster-added east --dry-run`),
		Args: func(_ *cobra.Command, args []string) error { return o.validate(args) },
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.addFlags(cmd)
	return cmd
}

func (o *options) addFlags(cmd *cobra.Command) {
	o.AddFlags(cmd)
	o.factory = o.NewFactory(&command.Target{}, 0)
	o.AddNamespaceFlag(cmd, o.factory)
	cmd.ValidArgsFunction = completion.ResourceTypeAndNameCompletionFunc(o.factory)
	flags := cmd.Flags()
	flags.StringVar(&o.clusterAdded, "cluster-added", "", "rebalance all workloads that a fresh scheduling would place in this cluster, but that have nothing there")
	flags.DurationVar(&o.ttl, "ttl", defaultTTL, "how long the WorkloadRebalancer is kept after it is finished; a negative time keeps it for ever")
	flags.BoolVar(&o.wait, "wait", true, "wait until the scheduler has placed the workloads")
	flags.DurationVar(&o.timeout, "timeout", defaultTimeout, "time limit of the wait")
	flags.BoolVar(&o.dryRun, "dry-run", false, "print where the workloads would be placed without changing objects")
	o.Program.CompleteClusters(cmd, "cluster-added", &o.Context)
	o.format.AddFlag(cmd)
}

// validate returns a usage error if arguments or flags are wrong. It sends no request.
func (o *options) validate(args []string) error {
	switch {
	case len(args) == 0 && o.clusterAdded == "":
		return command.NewUsageError("the workloads are missing: name them as KIND/NAME, such as deployment/web, or set --cluster-added")
	case len(args) > 0 && o.clusterAdded != "":
		return command.NewUsageError("names of workloads and --cluster-added exclude each other")
	case o.timeout <= 0:
		return command.NewUsageError("--timeout must be positive, not %s", o.timeout)
	case o.ttl.Seconds() > maxTTLSeconds:
		return command.NewUsageError("--ttl must be at most %d seconds", maxTTLSeconds)
	}
	return nil
}

// maxTTLSeconds is the maximum of ttlSecondsAfterFinished.
const maxTTLSeconds = 1<<31 - 1

func (o *options) run(ctx context.Context, args []string) error {
	if err := o.connect(); err != nil {
		return err
	}
	rows, err := o.selectWorkloads(ctx, args)
	if err != nil {
		return err
	}
	switch {
	case len(rows) == 0:
		o.Program.Messagef("nothing to rebalance")
		return nil
	case o.dryRun:
		if err := o.preview(ctx, rows); err != nil {
			return err
		}
		return o.print("", rows)
	}
	if err := awaitNextSecond(ctx, rows); err != nil {
		return err
	}
	created := o.newRebalancer(rows)
	if err := o.karmada.Create(ctx, created); err != nil {
		return fmt.Errorf("creating a WorkloadRebalancer: %w", err)
	}
	o.Program.Messagef("workloadrebalancer/%s created for %s", created.Name, count(len(rows)))
	if o.wait {
		if err := o.await(ctx, created, rows); err != nil {
			return err
		}
	}
	return errors.Join(o.print(created.Name, rows), o.resultError(rows))
}

// connect creates the client, which needs no discovery for the kinds of Karmada.
func (o *options) connect() error {
	config, err := o.Program.KarmadaKubeconfig(o.Context).Config()
	if err != nil {
		return err
	}
	scheme, known := runtime.NewScheme(), meta.NewDefaultRESTMapper(nil)
	for _, add := range []func(*runtime.Scheme) error{appsv1alpha1.AddToScheme, clusterv1alpha1.AddToScheme, workv1alpha2.AddToScheme} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("registering API types: %w", err)
		}
	}
	known.Add(appsv1alpha1.GroupVersion.WithKind("WorkloadRebalancer"), meta.RESTScopeRoot)
	known.Add(clusterv1alpha1.GroupVersion.WithKind("Cluster"), meta.RESTScopeRoot)
	known.Add(workv1alpha2.GroupVersion.WithKind("ResourceBinding"), meta.RESTScopeNamespace)
	known.Add(workv1alpha2.GroupVersion.WithKind("ClusterResourceBinding"), meta.RESTScopeRoot)
	if o.karmada, err = client.New(config, client.Options{Scheme: scheme, Mapper: known}); err != nil {
		return fmt.Errorf("creating a client of the control plane (%s): %w", config.Host, err)
	}
	return nil
}

func (o *options) newRebalancer(rows []*row) *appsv1alpha1.WorkloadRebalancer {
	created := &appsv1alpha1.WorkloadRebalancer{ObjectMeta: metav1.ObjectMeta{GenerateName: generateName(o.clusterAdded, rows)}}
	for _, each := range rows {
		created.Spec.Workloads = append(created.Spec.Workloads, each.workload)
	}
	if o.ttl >= 0 {
		created.Spec.TTLSecondsAfterFinished = new(int32(o.ttl.Seconds())) //nolint:gosec // validate limits the value
	}
	return created
}

// generateName returns the prefix of the WorkloadRebalancer's name, which names what is rebalanced. The API server
// shortens it if needed.
func generateName(clusterAdded string, rows []*row) string {
	switch {
	case clusterAdded != "":
		return "rebalance-to-" + clusterAdded + "-"
	case len(rows) == 1 && len(validation.IsDNS1123Subdomain(rows[0].workload.Name)) == 0:
		return "rebalance-" + rows[0].workload.Name + "-"
	default:
		return "rebalance-"
	}
}

func count(workloads int) string {
	if workloads == 1 {
		return "1 workload"
	}
	return fmt.Sprintf("%d workloads", workloads)
}
