package held

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

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

// pageSize is the maximum number of Works that one list request returns.
const pageSize = 500

// selection selects held deletions. Empty fields select all.
type selection struct{ namespace, cluster, reason string }

// deletion is a held deletion. Its fields are the JSON and YAML output.
type deletion struct {
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

func (d *deletion) name() string { return d.Cluster + "/" + d.Work }

// decidableReasons returns the reasons of held deletions that a user can confirm.
func decidableReasons() []string {
	return []string{
		workv1alpha1.WorkNotReplacedReason, workv1alpha1.WorkClusterChangedReason, workv1alpha1.WorkDeletionBudgetExceededReason, workv1alpha1.WorkNamespaceInUseReason,
		workv1alpha1.WorkBindingMissingReason, workv1alpha1.WorkTemplateUnknownReason, workv1alpha1.WorkTemplateKindNotServedReason,
		workv1alpha1.WorkKindNotServedReason,
	}
}

// checkNames returns a usage error for a name that is not CLUSTER/WORK.
func checkNames(names []string) error {
	for _, name := range names {
		if cluster, karmadaWork, ok := strings.Cut(name, "/"); !ok || cluster == "" || karmadaWork == "" || strings.Contains(karmadaWork, "/") {
			return command.NewUsageError("%q: the name of a held deletion is CLUSTER/WORK; \"held list\" prints the names", name)
		}
	}
	return nil
}

// heldWorks reads and writes the Works of a control plane.
type heldWorks struct{ karmada client.Client }

func (o *options) newHeldWorks() (heldWorks, error) {
	config, err := o.program.KarmadaKubeconfig(o.karmadaContext).Config()
	if err != nil {
		return heldWorks{}, err
	}
	karmada, err := command.NewKindClient(config, workv1alpha1.GroupVersion.WithKind("Work"), meta.RESTScopeNamespace, workv1alpha1.AddToScheme)
	return heldWorks{karmada}, err
}

// find returns the selected held deletions, sorted by name. It returns an error if a named deletion
// is not held.
func (o *options) find(ctx context.Context, names []string) (heldWorks, []deletion, error) {
	if err := checkNames(names); err != nil {
		return heldWorks{}, nil, err
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
	found = slices.DeleteFunc(found, func(one deletion) bool {
		isHeld[one.name()] = true
		return len(names) > 0 && !slices.Contains(names, one.name())
	})
	for _, name := range names {
		if !isHeld[name] {
			return works, nil, fmt.Errorf("%s is not held, or the flags do not select it: \"%s held list\" lists held deletions", name, o.program.Name)
		}
	}
	slices.SortFunc(found, func(a, b deletion) int { return strings.Compare(a.name(), b.name()) })
	return works, found, nil
}

// list returns the held deletions that a selection selects.
func (h heldWorks) list(ctx context.Context, s selection) ([]deletion, error) {
	options := []client.ListOption{client.Limit(pageSize)}
	if s.cluster != "" {
		options = append(options, client.InNamespace(work.ExecutionNamespace(s.cluster)))
	}
	var found []deletion
	for page, next := (&workv1alpha1.WorkList{}), ""; ; {
		if err := h.karmada.List(ctx, page, append(options, client.Continue(next))...); err != nil {
			return nil, fmt.Errorf("listing Works: %w", err)
		}
		for i := range page.Items {
			if one, ok := newDeletion(&page.Items[i]); ok && one.isSelected(s) {
				found = append(found, one)
			}
		}
		if next = page.Continue; next == "" {
			return found, nil
		}
	}
}

// newDeletion returns the held deletion of a Work, or false if its deletion is not held.
func newDeletion(karmadaWork *workv1alpha1.Work) (deletion, bool) {
	held := conditions.Get(karmadaWork.Status.Conditions, workv1alpha1.WorkDeletionHeld)
	cluster, ok := work.ClusterOf(karmadaWork.Namespace)
	if !ok || karmadaWork.DeletionTimestamp == nil || held == nil || held.Status != metav1.ConditionTrue {
		return deletion{}, false
	}
	if confirmed, rejected := guard.ReadUserDecision(karmadaWork); confirmed || rejected {
		return deletion{}, false
	}
	one := deletion{
		Cluster: cluster, Work: karmadaWork.Name, UID: karmadaWork.UID, Reason: held.Reason, Message: held.Message, Began: karmadaWork.DeletionTimestamp.Time,
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
func (d *deletion) isSelected(s selection) bool {
	inNamespace := d.Namespace == s.namespace || d.Kind == "Namespace" && d.Name == s.namespace
	return (s.namespace == "" || inNamespace) && (s.reason == "" || d.Reason == s.reason)
}

// write stores the decision of the user about a held deletion. A Work that was deleted in the
// meantime needs no decision.
func (h heldWorks) write(ctx context.Context, one *deletion, decision string) error {
	stored := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: work.ExecutionNamespace(one.Cluster), Name: one.Work}}
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"annotations":{%q:%q}}}`,
		one.UID, workv1alpha1.HeldDeletionAnnotation, guard.UserDecision(decision, one.UID))
	err := h.karmada.Patch(ctx, stored, client.RawPatch(types.MergePatchType, []byte(patch)))
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("%s: writing the decision: %w", one.name(), err)
	}
	return nil
}

func newOutput(found []deletion, now time.Time) console.Output {
	table := console.Output{
		Header: []string{"NAME", "KIND", "NAMESPACE", "OBJECT", "REASON", "AGE"}, ColumnGap: 3, Object: map[string]any{"items": found},
	}
	for i := range found {
		one := &found[i]
		table.Rows = append(table.Rows, []string{one.name(), one.Kind, one.Namespace, one.Name, one.Reason, duration.HumanDuration(now.Sub(one.Began))})
		table.Names = append(table.Names, fmt.Sprintf("%s/%s", workv1alpha1.Resource("works"), one.Work))
	}
	return table
}

// maxErrors is the maximum number of errors that a command prints.
const maxErrors = 10

// joinBounded joins errors and counts those that it leaves out.
func joinBounded(failures []error) error {
	if left := len(failures) - maxErrors; left > 0 {
		failures = append(failures[:maxErrors:maxErrors], fmt.Errorf("and %d more errors", left))
	}
	return errors.Join(failures...)
}
