package membership

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/retry"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/loop/patch"
)

// NewCordon returns the command that marks a cluster as unschedulable.
func NewCordon(program *command.Program) *cobra.Command {
	cmd := newCordonCommand(program, "cordoned", addCordonTaint)
	cmd.Use = "cordon CLUSTER"
	cmd.Short = "Mark a cluster as unschedulable"
	cmd.Long = "Mark a cluster as unschedulable: no new objects are scheduled to it. Existing objects stay."
	cmd.Example = program.Examples(`
		# Mark "east" as unschedulable
		{{program}} cordon east`)
	return cmd
}

// NewUncordon returns the command that marks a cluster as schedulable.
func NewUncordon(program *command.Program) *cobra.Command {
	cmd := newCordonCommand(program, "uncordoned", removeCordonTaint)
	cmd.Use = "uncordon CLUSTER"
	cmd.Short = "Mark a cluster as schedulable"
	cmd.Long = "Mark a cluster as schedulable: objects are scheduled to it again."
	cmd.Example = program.Examples(`
		# Mark "east" as schedulable
		{{program}} uncordon east`)
	return cmd
}

func newCordonCommand(program *command.Program, done string, change func([]corev1.Taint) []corev1.Taint) *cobra.Command {
	var (
		karmadaContext string
		dryRun         bool
	)
	cmd := &cobra.Command{
		Args:              command.RequireOneName("cluster"),
		ValidArgsFunction: program.CompleteCluster(&karmadaContext),
		RunE: func(cmd *cobra.Command, args []string) error {
			config, err := program.KarmadaKubeconfig(karmadaContext).Config()
			if err != nil {
				return err
			}
			clusters, err := command.NewClusterClient(config)
			if err != nil {
				return err
			}
			changed, err := updateTaints(cmd.Context(), clusters, args[0], dryRun, change)
			if err != nil {
				return err
			}
			fmt.Fprintln(program.Out, formatOutcome(args[0], done, changed, dryRun))
			return nil
		},
	}
	program.AddKarmadaContext(cmd, &karmadaContext)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print the result without changing objects")
	return cmd
}

// updateTaints applies change to the taints of the named Cluster, and reports whether they differ. With dryRun, it stores
// nothing.
func updateTaints(ctx context.Context, clusters command.ClusterClient, name string, dryRun bool,
	change func([]corev1.Taint) []corev1.Taint) (changed bool, err error) {
	// Retry, because controllers set taints too, so conflicts are common.
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		cluster, err := clusters.Get(ctx, name)
		if err != nil {
			return err
		}
		before := cluster.DeepCopy()
		cluster.Spec.Taints = change(cluster.Spec.Taints)
		if changed = len(cluster.Spec.Taints) != len(before.Spec.Taints); !changed || dryRun {
			return nil
		}
		if _, err := patch.Object(ctx, clusters.Karmada, before, cluster); err != nil {
			return clusters.WrapError(fmt.Sprintf("changing the taints of Cluster %q", name), err)
		}
		return nil
	})
	return changed, err
}

func addCordonTaint(taints []corev1.Taint) []corev1.Taint {
	if slices.ContainsFunc(taints, isCordonTaint) {
		return taints
	}
	return append(slices.Clip(taints), corev1.Taint{Key: clusterv1alpha1.TaintClusterUnschedulable, Effect: corev1.TaintEffectNoSchedule})
}

func removeCordonTaint(taints []corev1.Taint) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(taints), isCordonTaint)
}

func isCordonTaint(taint corev1.Taint) bool {
	return taint.Key == clusterv1alpha1.TaintClusterUnschedulable && taint.Effect == corev1.TaintEffectNoSchedule
}

func formatOutcome(name, done string, changed, dryRun bool) string {
	if !changed {
		return fmt.Sprintf("%s cluster already %s", name, done)
	}
	if dryRun {
		return fmt.Sprintf("%s cluster %s (dry run)", name, done)
	}
	return fmt.Sprintf("%s cluster %s", name, done)
}
