package ownership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/console"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/guard"
	"karmada.io/karmada/internal/domain/work"
)

// heldOptions are the flags that list, confirm and reject share.
type heldOptions struct {
	program        *command.Program
	karmadaContext string
	selection      heldFilter
}

// NewHeld returns the command that groups the commands for held deletions.
func NewHeld(program *command.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "held",
		Short: "List, confirm and reject held deletions",
		Long: `List, confirm and reject deletions in members that the control plane holds.

The control plane holds a deletion if nothing explains it, if a change of a Cluster excludes
many workloads, or if more templates are deleted than the deletion budget allows. The objects
of a held deletion stay unchanged in the member. The name of a held deletion is the name of
the cluster and the name of the Work: CLUSTER/WORK.`,
		Example: program.Examples(`
			# List all held deletions
			{{program}} held list

			# Execute the held deletions of the templates of a namespace
			{{program}} held confirm --namespace shop

			# Keep the objects of all held deletions in a cluster
			{{program}} held reject --cluster east`),
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newHeldList(program), newHeldDecide(program, confirmHeld), newHeldDecide(program, rejectHeld))
	return cmd
}

func (o *heldOptions) addFlags(cmd *cobra.Command, selected string) {
	o.program.AddKarmadaContext(cmd, &o.karmadaContext)
	flags := cmd.Flags()
	flags.StringVarP(&o.selection.namespace, "namespace", "n", "", selected+" only held deletions of templates in this namespace")
	flags.StringVarP(&o.selection.cluster, "cluster", "C", "", selected+" only held deletions in this cluster")
	flags.StringVar(&o.selection.reason, "reason", "", selected+" only held deletions with this reason, such as DeletionBudgetExceeded")
	o.program.CompleteClusters(cmd, "cluster", &o.karmadaContext)
	_ = cmd.RegisterFlagCompletionFunc("reason", cobra.FixedCompletions(confirmableReasons(), cobra.ShellCompDirectiveNoFileComp))
}

func newHeldList(program *command.Program) *cobra.Command {
	o, format := &heldOptions{program: program}, console.Format("")
	cmd := &cobra.Command{
		Use:   "list [CLUSTER/WORK...]",
		Short: "List held deletions",
		Long:  "List the held deletions of all clusters, or the named ones.",
		Example: program.Examples(`
			# List the held deletions of the templates of a namespace
			{{program}} held list --namespace shop`),
		RunE: func(cmd *cobra.Command, names []string) error {
			_, found, err := o.find(cmd.Context(), names)
			if err != nil {
				return err
			}
			if len(found) == 0 && format.IsTable() {
				o.program.Messagef("No held deletions found")
				return nil
			}
			return format.Print(o.program.Out, newHeldOutput(found, time.Now()))
		},
	}
	o.addFlags(cmd, "list")
	format.AddFlag(cmd)
	return cmd
}

// heldDecision describes the command for one decision about held deletions: confirm or reject.
type heldDecision struct {
	name, doneText, short, long string
	decision                    string
	// appliesTo reports whether the decision has an effect on a deletion that is held for a reason.
	appliesTo func(reason string) bool
}

var (
	confirmHeld = heldDecision{
		name: "confirm", doneText: "confirmed", decision: workv1alpha1.ConfirmHeldDeletion, short: "Execute held deletions",
		long:      "Confirm held deletions: the control plane deletes their objects in the members.",
		appliesTo: func(reason string) bool { return slices.Contains(confirmableReasons(), reason) },
	}
	rejectHeld = heldDecision{
		name: "reject", doneText: "rejected", decision: workv1alpha1.RejectHeldDeletion, short: "Keep the objects of held deletions",
		long: `Reject held deletions: their Works are deleted, and their objects stay in the members. A template
that is created again takes the objects over. Without a template, "orphans" lists them.`,
		appliesTo: func(string) bool { return true },
	}
)

func newHeldDecide(program *command.Program, v heldDecision) *cobra.Command {
	o := &heldOptions{program: program}
	all, dryRun := false, false
	cmd := &cobra.Command{
		Use:   v.name + " [CLUSTER/WORK...]",
		Short: v.short,
		Long:  v.long,
		Example: program.Examples(fmt.Sprintf(`
			# One held deletion
			{{program}} held %[1]s east/web-6f9c7d

			# All held deletions of the templates of a namespace
			{{program}} held %[1]s --namespace shop`, v.name)),
		Args: func(_ *cobra.Command, names []string) error { return o.validateSelection(names, all) },
		RunE: func(cmd *cobra.Command, names []string) error { return o.decide(cmd.Context(), v, names, dryRun) },
	}
	o.addFlags(cmd, v.name)
	cmd.Flags().BoolVar(&all, "all", false, v.name+" all held deletions")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print the result without changing objects")
	return cmd
}

// validateSelection returns a usage error unless the user selected held deletions by name, by flags or with --all.
func (o *heldOptions) validateSelection(names []string, all bool) error {
	if chosen := len(names) > 0 || o.selection != (heldFilter{}); chosen == all {
		return command.NewUsageError("name held deletions as CLUSTER/WORK, or use --namespace, --cluster, --reason, or --all alone")
	}
	return validateHeldNames(names)
}

// decide stores the decision in each selected Work.
func (o *heldOptions) decide(ctx context.Context, v heldDecision, names []string, dryRun bool) error {
	works, found, err := o.find(ctx, names)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		o.program.Messagef("No held deletions found")
		return nil
	}
	done := 0
	var failures []error
	for i := range found {
		switch one := &found[i]; {
		case !v.appliesTo(one.Reason):
			failures = append(failures, fmt.Errorf("%s: a deletion with the reason %s cannot be confirmed: %s", one.name(), one.Reason, one.Message))
			continue
		case !dryRun:
			if err := works.write(ctx, one, v.decision); err != nil {
				failures = append(failures, err)
				continue
			}
		}
		done++
	}
	suffix := ""
	if dryRun {
		suffix = " (dry run)"
	}
	fmt.Fprintf(o.program.Out, "%d held deletions %s%s\n", done, v.doneText, suffix)
	return joinLimited(failures)
}

// heldFilter selects held deletions. Empty fields select all.
type heldFilter struct{ namespace, cluster, reason string }

// heldDeletion is a held deletion. Its fields are the JSON and YAML output.
type heldDeletion struct {
	Cluster   string    `json:"cluster"`
	Work      string    `json:"work"`
	UID       types.UID `json:"uid"`
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	Reason    string    `json:"reason"`
	Message   string    `json:"message"`
	Began     time.Time `json:"began"`
}

func (d *heldDeletion) name() string { return d.Cluster + "/" + d.Work }

// confirmableReasons returns the reasons of held deletions that a user can confirm.
func confirmableReasons() []string {
	return []string{
		workv1alpha1.WorkNotReplacedReason, workv1alpha1.WorkClusterChangedReason, workv1alpha1.WorkDeletionBudgetExceededReason,
		workv1alpha1.WorkNamespaceInUseReason,
		workv1alpha1.WorkBindingMissingReason, workv1alpha1.WorkTemplateUnknownReason, workv1alpha1.WorkTemplateKindNotServedReason,
		workv1alpha1.WorkKindNotServedReason,
	}
}

// validateHeldNames returns a usage error for a name that is not CLUSTER/WORK.
func validateHeldNames(names []string) error {
	for _, name := range names {
		if cluster, karmadaWork, ok := strings.Cut(name, "/"); !ok || cluster == "" || karmadaWork == "" || strings.Contains(karmadaWork, "/") {
			return command.NewUsageError("%q: the name of a held deletion is CLUSTER/WORK; \"held list\" prints the names", name)
		}
	}
	return nil
}

// heldWorkClient reads and writes the Works of a control plane.
type heldWorkClient struct{ karmada client.Client }

func (o *heldOptions) newHeldWorks() (heldWorkClient, error) {
	config, err := o.program.KarmadaKubeconfig(o.karmadaContext).Config()
	if err != nil {
		return heldWorkClient{}, err
	}
	karmada, err := command.NewKindClient(config, workv1alpha1.GroupVersion.WithKind("Work"), meta.RESTScopeNamespace,
		workv1alpha1.AddToScheme)
	return heldWorkClient{karmada}, err
}

// find returns the selected held deletions, sorted by name. It returns an error if a named deletion
// is not held.
func (o *heldOptions) find(ctx context.Context, names []string) (heldWorkClient, []heldDeletion, error) {
	if err := validateHeldNames(names); err != nil {
		return heldWorkClient{}, nil, err
	}
	works, err := o.newHeldWorks()
	if err != nil {
		return works, nil, err
	}
	found, err := works.list(ctx, o.selection)
	if err != nil {
		return works, nil, err
	}
	isHeld := map[string]bool{}
	found = slices.DeleteFunc(found, func(one heldDeletion) bool {
		isHeld[one.name()] = true
		return len(names) > 0 && !slices.Contains(names, one.name())
	})
	for _, name := range names {
		if !isHeld[name] {
			return works, nil, fmt.Errorf("%s is not held, or the flags do not select it: \"%s held list\" lists held deletions", name,
				o.program.Name)
		}
	}
	slices.SortFunc(found, func(a, b heldDeletion) int { return strings.Compare(a.name(), b.name()) })
	return works, found, nil
}

// list returns the held deletions that a selection selects.
func (h heldWorkClient) list(ctx context.Context, s heldFilter) ([]heldDeletion, error) {
	var options []client.ListOption
	if s.cluster != "" {
		options = append(options, client.InNamespace(work.ExecutionNamespace(s.cluster)))
	}
	var found []heldDeletion
	err := command.ForEachPage(ctx, h.karmada, func(page *workv1alpha1.WorkList) {
		for i := range page.Items {
			if one, ok := newHeldDeletion(&page.Items[i]); ok && one.isSelected(s) {
				found = append(found, one)
			}
		}
	}, options...)
	if err != nil {
		return nil, fmt.Errorf("listing Works: %w", err)
	}
	return found, nil
}

// newHeldDeletion returns the held deletion of a Work, or false if its deletion is not held.
func newHeldDeletion(karmadaWork *workv1alpha1.Work) (heldDeletion, bool) {
	held := conditions.Get(karmadaWork.Status.Conditions, workv1alpha1.WorkDeletionHeld)
	cluster, ok := work.ClusterOf(karmadaWork.Namespace)
	if !ok || karmadaWork.DeletionTimestamp == nil || held == nil || held.Status != metav1.ConditionTrue {
		return heldDeletion{}, false
	}
	if confirmed, rejected := guard.ReadUserDecision(karmadaWork); confirmed || rejected {
		return heldDeletion{}, false
	}
	one := heldDeletion{
		Cluster: cluster, Work: karmadaWork.Name, UID: karmadaWork.UID, Reason: held.Reason, Message: held.Message,
		Began: karmadaWork.DeletionTimestamp.Time,
	}
	if len(karmadaWork.Spec.Workload.Manifests) > 0 {
		if manifest, err := work.DecodeManifest(karmadaWork.Spec.Workload.Manifests[0]); err == nil {
			one.Kind, one.Namespace, one.Name = manifest.GetKind(), manifest.GetNamespace(), manifest.GetName()
		}
	}
	return one, true
}

// isSelected reports whether a selection selects the deletion. The Namespace of a selected namespace
// is selected too.
func (d *heldDeletion) isSelected(s heldFilter) bool {
	inNamespace := d.Namespace == s.namespace || d.Kind == "Namespace" && d.Name == s.namespace
	return (s.namespace == "" || inNamespace) && (s.reason == "" || d.Reason == s.reason)
}

// write stores the user's decision about a held deletion. It ignores a Work that was deleted in the meantime.
func (h heldWorkClient) write(ctx context.Context, one *heldDeletion, decision string) error {
	stored := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: work.ExecutionNamespace(one.Cluster), Name: one.Work}}
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"annotations":{%q:%q}}}`,
		one.UID, workv1alpha1.HeldDeletionAnnotation, guard.UserDecision(decision, one.UID))
	err := h.karmada.Patch(ctx, stored, client.RawPatch(types.MergePatchType, []byte(patch)))
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("%s: writing the decision: %w", one.name(), err)
	}
	return nil
}

func newHeldOutput(found []heldDeletion, now time.Time) console.Output {
	table := console.Output{
		Header: []string{"NAME", "KIND", "NAMESPACE", "OBJECT", "REASON", "AGE"}, ColumnGap: 3, Object: map[string]any{"items": found},
	}
	for i := range found {
		one := &found[i]
		table.Rows = append(table.Rows, []string{one.name(), one.Kind, one.Namespace, one.Name, one.Reason,
			duration.HumanDuration(now.Sub(one.Began))})
		table.Names = append(table.Names, fmt.Sprintf("%s/%s", workv1alpha1.Resource("works"), one.Work))
	}
	return table
}

// maxPrintedErrors is the maximum number of errors that a command prints.
const maxPrintedErrors = 10

// joinLimited joins at most maxPrintedErrors failures, and counts the others.
func joinLimited(failures []error) error {
	if left := len(failures) - maxPrintedErrors; left > 0 {
		failures = append(failures[:maxPrintedErrors:maxPrintedErrors], fmt.Errorf("and %d more errors", left))
	}
	return errors.Join(failures...)
}
