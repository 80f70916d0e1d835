package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/cli/membership"
	"karmada.io/karmada/internal/domain/simulation"
	"karmada.io/karmada/internal/domain/spelling"
)

// The forms of the flags, for messages.
const (
	taintForm = "CLUSTER=KEY[=VALUE]:EFFECT, or CLUSTER=KEY[:EFFECT]- to remove a taint"
	labelForm = "CLUSTER=KEY=VALUE, or CLUSTER=KEY- to remove a label"
)

// changeFlags are the flags for hypothetical changes of clusters.
type changeFlags struct {
	without, taints, labels []string
	parsed                  simulation.ClusterChanges
}

func (c *changeFlags) addFlags(program *command.Program, cmd *cobra.Command, karmadaContext *string) {
	flags := cmd.Flags()
	flags.StringSliceVar(&c.without, "without-cluster", nil, "cluster to remove; can be repeated")
	flags.StringArrayVar(&c.taints, "taint", nil, "taint to set or remove: "+taintForm+"; can be repeated")
	flags.StringArrayVar(&c.labels, "label", nil, "label to set or remove: "+labelForm+"; can be repeated")
	program.CompleteClusters(cmd, "without-cluster", karmadaContext)
	program.CompleteClusterPrefix(cmd, "taint", "=", karmadaContext)
	program.CompleteClusterPrefix(cmd, "label", "=", karmadaContext)
}

// parse parses the flags. It returns a usage error for a value with another form.
func (c *changeFlags) parse() error {
	c.parsed = simulation.ClusterChanges{Without: c.without}
	for _, text := range c.taints {
		cluster, rest, isForm := strings.Cut(text, "=")
		if !isForm || cluster == "" {
			return command.NewUsageError("--taint %q: write %s", text, taintForm)
		}
		taint, isRemoved, err := membership.ParseTaint(rest)
		if err != nil {
			return command.NewUsageError("--taint %q: %w; write %s", text, err, taintForm)
		}
		c.parsed.Taints = append(c.parsed.Taints, simulation.TaintChange{Cluster: cluster, Taint: taint, Remove: isRemoved})
	}
	for _, text := range c.labels {
		change, err := parseLabel(text)
		if err != nil {
			return command.NewUsageError("--label %q: %w", text, err)
		}
		c.parsed.Labels = append(c.parsed.Labels, change)
	}
	return nil
}

func parseLabel(text string) (simulation.LabelChange, error) {
	cluster, rest, _ := strings.Cut(text, "=")
	key, value, hasValue := strings.Cut(rest, "=")
	change := simulation.LabelChange{Cluster: cluster, Key: key, Value: value}
	if !hasValue {
		change.Key, change.Remove = strings.CutSuffix(key, "-")
	}
	if cluster == "" || !hasValue && !change.Remove {
		return change, fmt.Errorf("write %s", labelForm)
	}
	if wrong := validation.IsQualifiedName(change.Key); len(wrong) > 0 {
		return change, fmt.Errorf("key %q: %s; write %s", change.Key, strings.Join(wrong, "; "), labelForm)
	}
	if wrong := validation.IsValidLabelValue(value); len(wrong) > 0 {
		return change, fmt.Errorf("value %q: %s; write %s", value, strings.Join(wrong, "; "), labelForm)
	}
	return change, nil
}

// verifyClusters returns a usage error if a flag names a cluster that does not exist.
func (c *changeFlags) verifyClusters(clusters []*clusterv1alpha1.Cluster) error {
	existing := make([]string, len(clusters))
	for i := range clusters {
		existing[i] = clusters[i].Name
	}
	slices.Sort(existing)
	for _, name := range c.parsed.Names() {
		if slices.Contains(existing, name) {
			continue
		}
		meant := ""
		if nearest := spelling.Nearest(name, existing); nearest != "" {
			meant = fmt.Sprintf("did you mean %s? ", nearest)
		}
		if len(existing) == 0 {
			return command.NewUsageError("there is no cluster %q: the control plane has no members yet", name)
		}
		return command.NewUsageError("there is no cluster %q: %sThe control plane has %s", name, meant, strings.Join(existing, ", "))
	}
	return nil
}
