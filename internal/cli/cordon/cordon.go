// Package cordon answers: may anything new be scheduled to a cluster? Its
// commands set and remove taints.
package cordon

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/retry"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/patch"
	"karmada.io/karmada/internal/cli/command"
)

// NewCordon is the command that keeps new objects away from a cluster.
func NewCordon(program *command.Program) *cobra.Command {
	cmd := newCommand(program, "cordoned", cordon)
	cmd.Use = "cordon CLUSTER"
	cmd.Short = "Let nothing new be scheduled to a cluster"
	cmd.Long = "Let nothing new be scheduled to a cluster. What runs there stays."
	cmd.Example = program.Examples(`
		# Let nothing new be scheduled to "east"
		{{program}} cordon east`)
	return cmd
}

// NewUncordon is the command that undoes cordon.
func NewUncordon(program *command.Program) *cobra.Command {
	cmd := newCommand(program, "uncordoned", uncordon)
	cmd.Use = "uncordon CLUSTER"
	cmd.Short = "Let objects be scheduled to a cluster again"
	cmd.Long = "Let objects be scheduled to a cluster again."
	cmd.Example = program.Examples(`
		# Let objects be scheduled to "east" again
		{{program}} uncordon east`)
	return cmd
}

func newCommand(program *command.Program, done string, change func([]corev1.Taint) []corev1.Taint) *cobra.Command {
	var (
		karmadaContext string
		dryRun         bool
	)
	cmd := &cobra.Command{
		Args:              command.OneName("cluster"),
		ValidArgsFunction: program.CompleteCluster(&karmadaContext),
		RunE: func(cmd *cobra.Command, args []string) error {
			config, err := program.Karmada(karmadaContext).Config()
			if err != nil {
				return err
			}
			clusters, err := command.OpenClusters(config)
			if err != nil {
				return err
			}
			changed, err := retaint(cmd.Context(), clusters, args[0], dryRun, change)
			if err != nil {
				return err
			}
			fmt.Fprintln(program.Out, outcome(args[0], done, changed, dryRun))
			return nil
		},
	}
	program.AddKarmadaContext(cmd, &karmadaContext)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "change nothing")
	return cmd
}

// retaint changes the taints of a Cluster and tells whether there was anything to
// change.
func retaint(ctx context.Context, clusters command.Clusters, name string, dryRun bool, change func([]corev1.Taint) []corev1.Taint) (changed bool, err error) {
	// Controllers set taints too, so a conflict is nothing unusual.
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
			return clusters.Explain(fmt.Sprintf("changing the taints of Cluster %q", name), err)
		}
		return nil
	})
	return changed, err
}

func cordon(taints []corev1.Taint) []corev1.Taint {
	if slices.ContainsFunc(taints, isCordon) {
		return taints
	}
	return append(slices.Clip(taints), corev1.Taint{Key: clusterv1alpha1.TaintClusterUnschedulable, Effect: corev1.TaintEffectNoSchedule})
}

func uncordon(taints []corev1.Taint) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(taints), isCordon)
}

func isCordon(taint corev1.Taint) bool {
	return taint.Key == clusterv1alpha1.TaintClusterUnschedulable && taint.Effect == corev1.TaintEffectNoSchedule
}

func outcome(name, done string, changed, dryRun bool) string {
	if !changed {
		return fmt.Sprintf("%s cluster already %s", name, done)
	}
	if dryRun {
		return fmt.Sprintf("%s cluster %s (dry run)", name, done)
	}
	return fmt.Sprintf("%s cluster %s", name, done)
}
