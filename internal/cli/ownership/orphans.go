package ownership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/console"
)

type orphanOptions struct {
	command.ClientFlags
	timeout command.RequestTimeout
	format  console.Format

	adopt, release, remove bool
	yes, dryRun            bool
	// limit is the maximum number of orphans that are shown or changed in each cluster.
	limit int
}

// NewOrphans returns the command that lists and cleans up orphans.
func NewOrphans(program *command.Program) *cobra.Command {
	o := &orphanOptions{ClientFlags: command.ClientFlags{Program: program}}
	cmd := &cobra.Command{
		Use:   "orphans [CLUSTER...]",
		Short: "List objects in members that belong to no Work",
		Long: `List objects in members that have the labels of Karmada and belong to no Work, in the
named clusters or in all clusters.

WANTED-BY names a Work that contains the same object but did not create it. --adopt gives
such objects to that Work. --release removes the labels of Karmada from objects that no
Work contains: the objects stay, and the users of the member own them. --delete deletes
objects that no Work contains, but no Namespaces and CustomResourceDefinitions: other
objects would be deleted with them. Each action needs --yes, or --dry-run for a preview.

An object that a binding expects in the cluster is not an orphan even if its Work is missing.
--release and --delete reject a cluster whose execution namespace in the control plane is
missing, is being deleted or is younger than 10 minutes: its Works may be missing.

A cluster or a kind that cannot be read is named on standard error, and the exit code is 1.
Its objects are unknown: they are neither listed nor changed.`,
		Example: program.Examples(`
			# List the orphans of all members
			{{program}} orphans

			# Preview a deletion in one member, then delete
			{{program}} orphans east --delete --dry-run
			{{program}} orphans east --delete --yes

			# Give objects to the Works that contain them
			{{program}} orphans east --adopt --yes`),
		Args:              func(*cobra.Command, []string) error { return o.validate() },
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
		ValidArgsFunction: o.complete,
	}
	o.ClientFlags.AddFlags(cmd)
	o.timeout.AddFlag(cmd)
	o.format.AddFlag(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&o.adopt, "adopt", false, "give orphans to the Works that contain the same objects")
	flags.BoolVar(&o.release, "release", false, "remove the labels of Karmada from orphans that no Work contains; the objects stay")
	flags.BoolVar(&o.remove, "delete", false, "delete orphans that no Work contains")
	flags.BoolVarP(&o.yes, "yes", "y", false, "run the action without confirmation")
	flags.BoolVar(&o.dryRun, "dry-run", false, "print the result without changing objects")
	flags.IntVar(&o.limit, "limit", 500, "maximum number of orphans of a cluster to show or change")
	return cmd
}

// validate returns a usage error if flags are wrong. It sends no request.
func (o *orphanOptions) validate() error {
	chosen := 0
	for _, action := range []bool{o.adopt, o.release, o.remove} {
		if action {
			chosen++
		}
	}
	switch {
	case chosen > 1:
		return command.NewUsageError("--adopt, --release and --delete exclude each other")
	case chosen == 0 && (o.yes || o.dryRun):
		return command.NewUsageError("--yes and --dry-run need --adopt, --release or --delete")
	case o.limit < 1:
		return command.NewUsageError("--limit %d: must be at least 1", o.limit)
	}
	return nil
}

func (o *orphanOptions) run(ctx context.Context, wanted []string) error {
	if err := o.VerifyKubeconfig(); err != nil {
		return err
	}
	targets, err := o.ListMembers(ctx, wanted)
	if err != nil {
		return err
	}
	if len(targets) == 0 {
		o.Program.Messagef("No member clusters found: \"%s join\" adds one.", o.Program.Name)
		return nil
	}
	action := o.selectedAction()
	results, errs := command.QueryAll(ctx, targets, o.timeout, o.findOrphans)
	if err := o.dropAwaited(ctx, results); err != nil {
		return errors.Join(command.JoinErrors(targets, errs), err)
	}
	for i := range results {
		results[i].sortAndLimit(o.limit)
		errs[i] = errors.Join(errs[i], results[i].rejectUnsettled(action))
	}
	if action != nil && o.yes && !o.dryRun {
		o.runActionInAll(ctx, targets, results, errs, action)
	}
	if err := o.print(results, time.Now()); err != nil {
		return err
	}
	return errors.Join(command.JoinErrors(targets, errs), o.confirmationError(results, action))
}

// confirmationError returns an error that says that no object was changed because --yes is
// missing.
func (o *orphanOptions) confirmationError(results []clusterOrphans, action *orphanAction) error {
	if action == nil || o.yes || o.dryRun {
		return nil
	}
	count := 0
	for _, a := range results {
		for i := range a.orphans {
			if one := &a.orphans[i]; action.appliesTo(one) && one.result == "" {
				count++
			}
		}
	}
	if count == 0 {
		return nil
	}
	return fmt.Errorf("nothing was changed: add --yes to %s the %d objects, or --dry-run to list them", action.verb, count)
}

// complete completes arguments with the names of clusters.
func (o *orphanOptions) complete(cmd *cobra.Command, given []string, prefix string) ([]string, cobra.ShellCompDirective) {
	clusters, err := o.ClusterClient()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, err := clusters.Names(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return slices.DeleteFunc(names, func(name string) bool {
		return !strings.HasPrefix(name, prefix) || slices.Contains(given, name)
	}), cobra.ShellCompDirectiveNoFileComp
}

// outputItem is an orphan in JSON and YAML output.
type outputItem struct {
	Cluster    string    `json:"cluster"`
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Namespace  string    `json:"namespace,omitempty"`
	Name       string    `json:"name"`
	UID        string    `json:"uid"`
	Created    time.Time `json:"created"`
	LastWork   string    `json:"lastWork"`
	WantedBy   string    `json:"wantedBy,omitempty"`
	Result     string    `json:"result,omitempty"`
}

// describe returns the kind, namespace and name of the orphan.
func (one *orphan) describe() string {
	name := one.object.GetName()
	if namespace := one.object.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	return one.object.GetKind() + " " + name
}

func (one *orphan) lastWork() string {
	annotations := one.object.GetAnnotations()
	return annotations[workv1alpha1.WorkNamespaceAnnotation] + "/" + annotations[workv1alpha1.WorkNameAnnotation]
}

// print prints the orphans of all clusters. If an action is selected, it prints only the orphans
// to which the action applies.
func (o *orphanOptions) print(results []clusterOrphans, now time.Time) error {
	action := o.selectedAction()
	table := console.Output{
		Header: []string{"CLUSTER", "KIND", "NAMESPACE", "NAME", "AGE", "LAST-WORK", "WANTED-BY"}, ColumnGap: 3,
	}
	if action != nil {
		table.Header = append(table.Header, "RESULT")
	}
	objects, skipped := []outputItem{}, 0
	for _, a := range results {
		if a.awaitedCount > 0 {
			o.Program.Messagef("cluster(%s): %d objects have no Work yet, but a binding expects them in the cluster: they are not orphans",
				a.cluster, a.awaitedCount)
		}
		if a.omittedCount > 0 {
			o.Program.Messagef("cluster(%s): %d more orphans are not shown; --limit sets the maximum", a.cluster, a.omittedCount)
		}
		for i := range a.orphans {
			one := &a.orphans[i]
			if o.remove && !one.isWanted && one.containsOtherObjects() {
				o.Program.Messagef("cluster(%s): %s is not deleted, because other objects would be deleted with it; --release removes the labels of Karmada from it", a.cluster, one.describe())
				skipped++
			}
			if action != nil && !action.appliesTo(one) {
				continue
			}
			objects = append(objects, one.newOutputItem(a.cluster, action))
			table.Rows = append(table.Rows, objects[len(objects)-1].row(now, action != nil))
			table.Names = append(table.Names, fmt.Sprintf("%s/%s", one.resource.GroupResource(), one.object.GetName()))
		}
	}
	table.Object = map[string]any{"items": objects}
	if len(objects) == 0 && skipped > 0 && o.format.IsTable() {
		return nil
	}
	if len(objects) == 0 && o.format.IsTable() {
		o.Program.Messagef("No orphans found")
		return nil
	}
	return o.format.Print(o.Program.Out, table)
}

func (one *orphan) newOutputItem(cluster string, action *orphanAction) outputItem {
	result := one.result
	if action != nil && result == "" {
		result = "would be " + action.doneText
	}
	return outputItem{
		Cluster: cluster, APIVersion: one.object.GetAPIVersion(), Kind: one.object.GetKind(),
		Namespace: one.object.GetNamespace(), Name: one.object.GetName(), UID: string(one.object.GetUID()),
		Created: one.object.GetCreationTimestamp().Time, LastWork: one.lastWork(), WantedBy: one.claim.WorkName, Result: result,
	}
}

func (o outputItem) row(now time.Time, hasResult bool) []string {
	cells := []string{o.Cluster, o.Kind, console.OrNone(o.Namespace), o.Name, duration.HumanDuration(now.Sub(o.Created)), o.LastWork,
		console.OrNone(o.WantedBy)}
	if hasResult {
		cells = append(cells, o.Result)
	}
	return cells
}
