package cordon

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/retry"

	"karmada.io/karmada/internal/access/patch"
	"karmada.io/karmada/internal/cli/command"
)

// tainting is one run of the command.
type tainting struct {
	clusters command.Clusters
	wanted   wishes
	// names, all and selector are three ways to say which Clusters.
	names    []string
	all      bool
	selector string

	overwrite, dryRun bool
}

// NewTaint is the command that sets and removes any taint.
func NewTaint(program *command.Program) *cobra.Command {
	var (
		karmadaContext string
		t              tainting
	)
	cmd := &cobra.Command{
		Use:   "taint CLUSTER NAME KEY_1=VAL_1:TAINT_EFFECT_1 ... KEY_N=VAL_N:TAINT_EFFECT_N",
		Short: "Set or remove taints of clusters",
		Long: `Set or remove taints of clusters.

KEY=VALUE:EFFECT or KEY:EFFECT sets a taint; KEY:EFFECT- removes one and KEY- all of
that key. NoSchedule lets nothing new in; NoExecute drives out what is there. When one
of several clusters cannot be changed as wanted, none is.`,
		Example: program.Examples(`
			# Let only what tolerates it be scheduled to "east"
			{{program}} taint clusters east dedicated=gpu:NoSchedule

			# Change the value of a taint
			{{program}} taint clusters east dedicated=tpu:NoSchedule --overwrite

			# Remove a taint from two clusters
			{{program}} taint clusters east west dedicated:NoSchedule-

			# Drive everything out of the clusters of a region
			{{program}} taint clusters --selector region=eu maintenance:NoExecute`),
		Args: func(_ *cobra.Command, args []string) (err error) {
			if t.names, t.wanted, err = parse(args); err != nil {
				return err
			}
			return t.check()
		},
		ValidArgsFunction: program.CompleteTaint(&karmadaContext),
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := program.Karmada(karmadaContext).Config()
			if err != nil {
				return err
			}
			if t.clusters, err = command.OpenClusters(config); err != nil {
				return err
			}
			return t.run(cmd.Context(), func(name, done string) { fmt.Fprintf(program.Out, "cluster/%s %s\n", name, done) })
		},
	}
	program.AddKarmadaContext(cmd, &karmadaContext)
	cmd.Flags().BoolVar(&t.all, "all", false, "taint every cluster")
	cmd.Flags().StringVarP(&t.selector, "selector", "l", "", "label query that chooses the clusters, such as region=eu,tier!=gold")
	cmd.Flags().BoolVar(&t.dryRun, "dry-run", false, "change nothing")
	cmd.Flags().BoolVar(&t.overwrite, "overwrite", false, "let existing taints get another value")
	return cmd
}

// check finds out whether the clusters are said in one way.
func (t *tainting) check() error {
	ways := 0
	for _, said := range []bool{len(t.names) > 0, t.all, t.selector != ""} {
		if said {
			ways++
		}
	}
	switch {
	case ways == 0:
		return command.Wrong("the name of the cluster is missing: give one, or choose with --selector or --all")
	case ways > 1:
		return command.Wrong("names, --selector and --all exclude each other")
	}
	if _, err := labels.Parse(t.selector); err != nil {
		return command.Wrong("--selector: %w", err)
	}
	return nil
}

// run changes all Clusters, or none if it is known before that one would fail.
func (t *tainting) run(ctx context.Context, tell func(name, done string)) error {
	names, err := t.chosen(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := t.change(ctx, name, true); err != nil {
			return err
		}
	}
	for _, name := range names {
		done, err := t.change(ctx, name, t.dryRun)
		if err != nil {
			return err
		}
		tell(name, done)
	}
	return nil
}

// chosen are the names of the Clusters.
func (t *tainting) chosen(ctx context.Context) ([]string, error) {
	if len(t.names) > 0 {
		return t.names, nil
	}
	selector, err := labels.Parse(t.selector)
	if err != nil {
		return nil, err
	}
	names, err := t.clusters.Selected(ctx, selector)
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("no Cluster to taint: the control plane has none")
		if t.selector != "" {
			err = fmt.Errorf("no Cluster to taint: none matches --selector %s", t.selector)
		}
	}
	return names, err
}

// change changes the taints of one Cluster and tells what was done.
func (t *tainting) change(ctx context.Context, name string, dryRun bool) (done string, err error) {
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		cluster, err := t.clusters.Get(ctx, name)
		if err != nil {
			return err
		}
		before := cluster.DeepCopy()
		if cluster.Spec.Taints, done, err = t.wanted.apply(name, cluster.Spec.Taints, t.overwrite); err != nil {
			return err
		}
		if dryRun {
			done += " (dry run)"
			return nil
		}
		if _, err := patch.Object(ctx, t.clusters.Karmada, before, cluster); err != nil {
			return t.clusters.Explain(fmt.Sprintf("changing the taints of Cluster %q", name), err)
		}
		return nil
	})
	return done, err
}
