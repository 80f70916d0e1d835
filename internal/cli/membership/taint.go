package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/loop/patch"
)

// taintCommand holds the arguments and flags of one taint command.
type taintCommand struct {
	clusters command.ClusterClient
	changes  taintChanges
	// names, all and selector are alternative ways to select Clusters.
	names    []string
	all      bool
	selector string

	overwrite, dryRun bool
}

// NewTaint returns the command that sets and removes taints.
func NewTaint(program *command.Program) *cobra.Command {
	var (
		karmadaContext string
		t              taintCommand
	)
	cmd := &cobra.Command{
		Use:   "taint CLUSTER NAME KEY_1=VAL_1:TAINT_EFFECT_1 ... KEY_N=VAL_N:TAINT_EFFECT_N",
		Short: "Set or remove taints of clusters",
		Long: `Set or remove taints of clusters.

KEY=VALUE:EFFECT or KEY:EFFECT sets a taint; KEY:EFFECT- removes a taint and KEY- all with
that key. NoSchedule prevents new scheduling; NoExecute also evicts existing objects, if
evictions are enabled in the control plane; otherwise a warning says how to enable them.
If one of several clusters cannot be changed, none is changed.`,
		Example: program.Examples(`
			# Schedule only objects with a matching toleration to "east"
			{{program}} taint clusters east dedicated=gpu:NoSchedule

			# Change the value of a taint
			{{program}} taint clusters east dedicated=tpu:NoSchedule --overwrite

			# Remove a taint from two clusters
			{{program}} taint clusters east west dedicated:NoSchedule-

			# Evict all objects from the clusters of a region
			{{program}} taint clusters --selector region=eu maintenance:NoExecute`),
		Args: func(_ *cobra.Command, args []string) (err error) {
			if t.names, t.changes, err = parseTaintArguments(args); err != nil {
				return err
			}
			return t.validate()
		},
		ValidArgsFunction: program.CompleteTaint(&karmadaContext),
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := program.KarmadaKubeconfig(karmadaContext).Config()
			if err != nil {
				return err
			}
			if t.clusters, err = command.NewClusterClient(config); err != nil {
				return err
			}
			names, err := t.run(cmd.Context(), func(name, done string) { fmt.Fprintf(program.Out, "cluster/%s %s\n", name, done) })
			if err != nil {
				return err
			}
			// The flags of the control plane are the same for all clusters, so one report is enough.
			if warning := t.evictionWarning(cmd.Context(), names[0]); warning != "" {
				program.Messagef("%s %s", program.Style.Warn("Warning:"), warning)
			}
			return nil
		},
	}
	program.AddKarmadaContext(cmd, &karmadaContext)
	cmd.Flags().BoolVar(&t.all, "all", false, "change the taints of all clusters")
	cmd.Flags().StringVarP(&t.selector, "selector", "l", "", "label query for clusters, such as region=eu,tier!=gold")
	cmd.Flags().BoolVar(&t.dryRun, "dry-run", false, "print the result without changing objects")
	cmd.Flags().BoolVar(&t.overwrite, "overwrite", false, "change the values of existing taints")
	return cmd
}

// validate returns a usage error if the user did not select the Clusters in exactly one way.
func (t *taintCommand) validate() error {
	ways := 0
	for _, isUsed := range []bool{len(t.names) > 0, t.all, t.selector != ""} {
		if isUsed {
			ways++
		}
	}
	switch {
	case ways == 0:
		return command.NewUsageError("the name of the cluster is missing: set one, or use --selector or --all")
	case ways > 1:
		return command.NewUsageError("names, --selector and --all exclude each other")
	}
	if _, err := labels.Parse(t.selector); err != nil {
		return command.NewUsageError("--selector: %w", err)
	}
	return nil
}

// run changes the taints of all selected Clusters, and returns their names, at least one. It first computes the taints of
// all Clusters, so that it changes none if one Cluster cannot be changed.
func (t *taintCommand) run(ctx context.Context, report func(name, done string)) ([]string, error) {
	names, err := t.clusterNames(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if _, err := t.changeTaints(ctx, name, true); err != nil {
			return nil, err
		}
	}
	for _, name := range names {
		done, err := t.changeTaints(ctx, name, t.dryRun)
		if err != nil {
			return nil, err
		}
		report(name, done)
	}
	return names, nil
}

// clusterNames returns the names of the selected Clusters. It returns an error if none is selected.
func (t *taintCommand) clusterNames(ctx context.Context) ([]string, error) {
	if len(t.names) > 0 {
		return t.names, nil
	}
	selector, err := labels.Parse(t.selector)
	if err != nil {
		return nil, err
	}
	names, err := t.clusters.SelectNames(ctx, selector)
	if err == nil && len(names) == 0 {
		err = errors.New("no Cluster to taint: the control plane has none")
		if t.selector != "" {
			err = fmt.Errorf("no Cluster to taint: none matches --selector %s", t.selector)
		}
	}
	return names, err
}

// changeTaints changes the taints of the named Cluster, and returns a word for the result, such as "tainted".
func (t *taintCommand) changeTaints(ctx context.Context, name string, dryRun bool) (done string, err error) {
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		cluster, err := t.clusters.Get(ctx, name)
		if err != nil {
			return err
		}
		before := cluster.DeepCopy()
		if cluster.Spec.Taints, done, err = t.changes.apply(name, cluster.Spec.Taints, t.overwrite); err != nil {
			return err
		}
		if dryRun {
			done += " (dry run)"
			return nil
		}
		if _, err := patch.Object(ctx, t.clusters.Karmada, before, cluster); err != nil {
			return t.clusters.WrapError(fmt.Sprintf("changing the taints of Cluster %q", name), err)
		}
		return nil
	})
	return done, err
}

const (
	// reportTimeout limits how long the command waits for the condition TaintsEvict.
	reportTimeout  = 5 * time.Second
	reportInterval = 200 * time.Millisecond
)

// evictionWarning returns a warning if the command set a NoExecute taint, but the control plane does not evict workloads
// because of such taints or does not report whether it does. Otherwise it returns an empty string.
func (t *taintCommand) evictionWarning(ctx context.Context, name string) string {
	if t.dryRun || !slices.ContainsFunc(t.changes.set, func(taint corev1.Taint) bool { return taint.Effect == corev1.TaintEffectNoExecute }) {
		return ""
	}
	var reported *metav1.Condition
	// A timeout is not a failure, because the taint is set.
	_ = wait.PollUntilContextTimeout(ctx, reportInterval, reportTimeout, true, func(ctx context.Context) (bool, error) {
		cluster, err := t.clusters.Get(ctx, name)
		if err != nil {
			return false, err
		}
		reported = conditions.Get(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionTaintsEvict)
		return reported != nil, nil
	})
	return describeEvictionReport(name, reported)
}

// describeEvictionReport returns the warning for the reported condition TaintsEvict, which is nil if nothing is reported.
func describeEvictionReport(name string, reported *metav1.Condition) string {
	switch {
	case reported == nil:
		return "the control plane has not reported whether NoExecute taints evict workloads: see the condition " +
			clusterv1alpha1.ClusterConditionTaintsEvict + " in kubectl describe cluster " + name + ", and check that karmada-controller-manager runs"
	case reported.Status == metav1.ConditionFalse:
		return reported.Message
	default:
		return ""
	}
}
