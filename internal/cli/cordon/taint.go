package cordon

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/util/retry"

	"karmada.io/karmada/internal/access/patch"
	"karmada.io/karmada/internal/cli/command"
)

// NewTaint is the command that sets and removes any taint.
func NewTaint(program *command.Program) *cobra.Command {
	var (
		karmadaContext    string
		dryRun, overwrite bool
	)
	cmd := &cobra.Command{
		Use:   "taint CLUSTER NAME KEY_1=VAL_1:TAINT_EFFECT_1 ... KEY_N=VAL_N:TAINT_EFFECT_N",
		Short: "Set or remove taints of clusters",
		Long: `Set or remove taints of clusters.

KEY=VALUE:EFFECT or KEY:EFFECT sets a taint; KEY:EFFECT- removes one and KEY- all of
that key. NoSchedule lets nothing new in; NoExecute drives out what is there.`,
		Example: program.Examples(`
			# Let only what tolerates it be scheduled to "east"
			{{program}} taint clusters east dedicated=gpu:NoSchedule

			# Change the value of a taint
			{{program}} taint clusters east dedicated=tpu:NoSchedule --overwrite

			# Remove a taint from two clusters
			{{program}} taint clusters east west dedicated:NoSchedule-`),
		Args: func(_ *cobra.Command, args []string) error {
			_, _, err := parse(args)
			return err
		},
		ValidArgsFunction: program.CompleteTaint(&karmadaContext),
		RunE: func(cmd *cobra.Command, args []string) error {
			names, wanted, err := parse(args)
			if err != nil {
				return err
			}
			config, err := program.Karmada(karmadaContext).Config()
			if err != nil {
				return err
			}
			clusters, err := command.OpenClusters(config)
			if err != nil {
				return err
			}
			for _, name := range names {
				done, err := taint(cmd.Context(), clusters, name, wanted, overwrite, dryRun)
				if err != nil {
					return err
				}
				fmt.Fprintf(program.Out, "cluster/%s %s\n", name, done)
			}
			return nil
		},
	}
	program.AddKarmadaContext(cmd, &karmadaContext)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "change nothing")
	cmd.Flags().BoolVar(&overwrite, "overwrite", false, "let existing taints get another value")
	return cmd
}

// wishes are the taints to be set and to be removed. One to be removed without an
// effect means all of its key.
type wishes struct{ set, remove []corev1.Taint }

// parse reads the arguments: the type, names of clusters, then taints.
func parse(args []string) (names []string, wanted wishes, err error) {
	if len(args) == 0 || !slices.Contains([]string{"cluster", "clusters"}, args[0]) {
		return nil, wishes{}, command.Wrong("only clusters can be tainted: begin with clusters and their names")
	}
	for _, arg := range args[1:] {
		// No name of a cluster looks like a taint.
		isTaint := strings.ContainsAny(arg, "=:") || strings.HasSuffix(arg, "-")
		switch {
		case !isTaint && len(wanted.set)+len(wanted.remove) > 0:
			return nil, wishes{}, command.Wrong("name all clusters before the taints: %q comes after", arg)
		case !isTaint:
			names = append(names, arg)
		default:
			if err := wanted.add(arg); err != nil {
				return nil, wishes{}, command.Wrong("taint %q: %w", arg, err)
			}
		}
	}
	switch {
	case len(names) == 0:
		return nil, wishes{}, command.Wrong("the name of the cluster is missing")
	case len(wanted.set)+len(wanted.remove) == 0:
		return nil, wishes{}, command.Wrong("the taint is missing")
	}
	return names, wanted, wanted.contradiction()
}

// add reads one taint: key[=value]:Effect or key[=value][:Effect]-.
func (w *wishes) add(text string) error {
	text, removed := strings.CutSuffix(text, "-")
	keyValue, effect, hasEffect := strings.Cut(text, ":")
	key, value, _ := strings.Cut(keyValue, "=")
	if wrong := validation.IsQualifiedName(key); len(wrong) > 0 {
		return fmt.Errorf("key %q: %s", key, strings.Join(wrong, "; "))
	}
	if wrong := validation.IsValidLabelValue(value); len(wrong) > 0 {
		return fmt.Errorf("value %q: %s", value, strings.Join(wrong, "; "))
	}
	known := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
	read := corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
	if (hasEffect || !removed) && !slices.Contains(known, read.Effect) {
		return fmt.Errorf("the effect must be NoSchedule, PreferNoSchedule or NoExecute, not %q", effect)
	}
	if removed {
		w.remove = append(w.remove, read)
		return nil
	}
	if slices.ContainsFunc(w.set, func(other corev1.Taint) bool { return other.MatchTaint(&read) }) {
		return fmt.Errorf("%s:%s is given twice", key, effect)
	}
	w.set = append(w.set, read)
	return nil
}

// contradiction is the error of setting and removing the same taint.
func (w *wishes) contradiction() error {
	for _, removed := range w.remove {
		for _, set := range w.set {
			if covers(removed, set) {
				return command.Wrong("taint %s:%s cannot be both set and removed", set.Key, set.Effect)
			}
		}
	}
	return nil
}

// covers tells whether removing a taint means this one.
func covers(removed, taint corev1.Taint) bool {
	return removed.Key == taint.Key && (removed.Effect == "" || removed.Effect == taint.Effect)
}

// apply returns the taints as wanted, and what that does to the cluster.
func (w *wishes) apply(taints []corev1.Taint, overwrite bool) (changed []corev1.Taint, done string, err error) {
	changed = slices.Clone(taints)
	for _, removed := range w.remove {
		before := len(changed)
		changed = slices.DeleteFunc(changed, func(taint corev1.Taint) bool { return covers(removed, taint) })
		if len(changed) == before {
			return nil, "", fmt.Errorf("taint %q not found", strings.TrimSuffix(removed.Key+":"+string(removed.Effect), ":"))
		}
	}
	overwritten := false
	for _, set := range w.set {
		at := slices.IndexFunc(changed, func(taint corev1.Taint) bool { return taint.MatchTaint(&set) })
		switch {
		case at < 0:
			changed = append(changed, set)
		case !overwrite:
			return nil, "", fmt.Errorf("taint %q is there already: use --overwrite to change its value", set.Key+":"+string(set.Effect))
		default:
			changed[at].Value = set.Value
			overwritten = true
		}
	}
	switch {
	case overwritten, len(w.set) > 0 && len(w.remove) > 0:
		return changed, "modified", nil
	case len(w.remove) > 0:
		return changed, "untainted", nil
	default:
		return changed, "tainted", nil
	}
}

// taint changes the taints of one Cluster and tells what was done.
func taint(ctx context.Context, clusters command.Clusters, name string, wanted wishes, overwrite, dryRun bool) (done string, err error) {
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		cluster, err := clusters.Get(ctx, name)
		if err != nil {
			return err
		}
		before := cluster.DeepCopy()
		if cluster.Spec.Taints, done, err = wanted.apply(cluster.Spec.Taints, overwrite); err != nil {
			return fmt.Errorf("cluster %q: %w", name, err)
		}
		if dryRun {
			done += " (dry run)"
			return nil
		}
		if _, err := patch.Object(ctx, clusters.Karmada, before, cluster); err != nil {
			return clusters.Explain(fmt.Sprintf("changing the taints of Cluster %q", name), err)
		}
		return nil
	})
	return done, err
}
