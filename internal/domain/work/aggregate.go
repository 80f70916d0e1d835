package work

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/conditions"
)

// AggregateOptions are facts about a binding's clusters that its Works do not contain. The zero value
// means that none of these facts is observed.
type AggregateOptions struct {
	// NotReadySince returns the time at which the cluster became not ready. It returns the zero time if
	// the cluster is ready or its readiness is unknown.
	NotReadySince func(cluster string) time.Time
	// CredentialsProblem returns why the cluster rejects the control plane's requests. It returns an
	// empty string if the cluster accepts them.
	CredentialsProblem func(cluster string) string
	// RenderErrors maps each cluster for which no Work could be rendered from the current template to
	// the reason.
	RenderErrors map[string]string
	// PurgedClusters are the clusters whose Works must be deleted before any other cluster gets the
	// template.
	PurgedClusters sets.Set[string]
	// WantsNoCopy reports that the workload has no clusters because it was scaled to 0, so no copy is
	// missing.
	WantsNoCopy bool
	// MaxStatusBytes is the limit for each cluster's reflected status, in bytes. The value 0 selects
	// the constant MaxStatusBytes.
	MaxStatusBytes int
}

func (a AggregateOptions) notReadySince(cluster string) time.Time {
	if a.NotReadySince == nil {
		return time.Time{}
	}
	return a.NotReadySince(cluster)
}

func (a AggregateOptions) credentialsProblem(cluster string) string {
	if a.CredentialsProblem == nil {
		return ""
	}
	return a.CredentialsProblem(cluster)
}

// Aggregation is a template's state, aggregated from its binding's Works and from AggregateOptions.
type Aggregation struct {
	// Items are the statuses, one for each cluster, sorted by cluster name.
	Items []workv1alpha2.AggregatedStatusItem
	// outdated is true for the clusters to which an earlier generation of their Work is applied, but
	// not the current one.
	outdated map[string]bool
	// notReadySince maps each cluster that is not ready to the time at which it became not ready.
	notReadySince map[string]time.Time
	// credentialsProblem is AggregateOptions.CredentialsProblem.
	credentialsProblem func(cluster string) string
	// suspended are the clusters to which dispatching is suspended. suspensionObserved are those of
	// them whose Work has a condition that shows the suspension for the Work's current generation.
	suspended, suspensionObserved map[string]bool
	// suspensionCauses maps a cluster to the message that its Work, or its Work's current generation,
	// is not applied. It contains only clusters for which the suspension of dispatching is the only
	// observed cause.
	suspensionCauses map[string]string
	// purging are the clusters whose Works must be deleted before other clusters get changes.
	purging map[string]bool
	// wantsNoCopy is AggregateOptions.WantsNoCopy.
	wantsNoCopy bool
}

// Aggregate aggregates a binding's Works. It ignores Works in deletion and Works outside any execution
// namespace.
//
// Aggregate uses a member's status only after the Work is applied, because before that the status may
// belong to another object in the member. Health is Unknown if the Work does not contain the template,
// or if the member has not reported a status yet. For a cluster that is not ready, Aggregate keeps the
// last status and adds the time of that status to the message.
func Aggregate(works []*workv1alpha1.Work, template workv1alpha2.ObjectReference, circumstances AggregateOptions) Aggregation {
	account := Aggregation{
		Items:    make([]workv1alpha2.AggregatedStatusItem, 0, len(works)+len(circumstances.RenderErrors)),
		outdated: map[string]bool{}, notReadySince: map[string]time.Time{}, suspended: map[string]bool{}, suspensionObserved: map[string]bool{},
		purging:          map[string]bool{},
		suspensionCauses: map[string]string{}, credentialsProblem: circumstances.credentialsProblem, wantsNoCopy: circumstances.WantsNoCopy,
	}
	for _, work := range works {
		cluster, ok := ClusterOf(work.Namespace)
		switch {
		case !ok:
			continue
		case circumstances.PurgedClusters.Has(cluster):
			account.addPurging(cluster, circumstances)
		}
		if work.DeletionTimestamp == nil {
			account.addWork(cluster, work, template, circumstances)
		}
	}
	account.addRenderErrors(circumstances.RenderErrors)
	account.limitSize(template)
	slices.SortStableFunc(account.Items, func(a, b workv1alpha2.AggregatedStatusItem) int {
		return cmp.Compare(a.ClusterName, b.ClusterName)
	})
	return account
}

func (a *Aggregation) addWork(cluster string, work *workv1alpha1.Work, template workv1alpha2.ObjectReference,
	circumstances AggregateOptions) {
	item, cut := aggregatedItem(cluster, work, template, circumstances.MaxStatusBytes)
	a.suspended[cluster], a.suspensionObserved[cluster] = IsSuspended(work), IsSuspensionObserved(work)
	a.outdated[cluster] = HasUnappliedGeneration(work)
	if missing := a.missingState(&item); a.suspended[cluster] && missing != "" && item.AppliedMessage == "" {
		a.suspensionCauses[cluster] = missing + ", " + suspendedMessage
	}
	since := circumstances.notReadySince(cluster)
	if !since.IsZero() {
		a.notReadySince[cluster] = since
	}
	switch {
	case item.AppliedMessage != "":
	case !since.IsZero() && (item.Applied || a.suspensionCauses[cluster] == ""):
		item.AppliedMessage = notReadyMessage(item, since)
	default:
		item.AppliedMessage = cmp.Or(a.suspensionCauses[cluster], statusTruncatedMessage(work, template), cut)
	}
	a.Items = append(a.Items, item)
}

// statusTruncatedMessage returns the Work's message that only a part of the template's status was
// reflected, or "" if the status is complete.
func statusTruncatedMessage(work *workv1alpha1.Work, template workv1alpha2.ObjectReference) string {
	cut := conditions.Get(work.Status.Conditions, workv1alpha1.WorkStatusTruncated)
	if cut == nil || cut.Status != metav1.ConditionTrue || manifestStatusOf(work, template) == nil {
		return ""
	}
	return cut.Message
}

// missingState describes what the cluster does not have: its Work, or its Work's current generation. It
// returns an empty string if the cluster has the current generation.
func (a *Aggregation) missingState(item *workv1alpha2.AggregatedStatusItem) string {
	switch {
	case !item.Applied:
		return notAppliedMessage
	case a.outdated[item.ClusterName]:
		return outdatedMessage
	default:
		return ""
	}
}

// addPurging records that other clusters wait until the given cluster's Work is deleted, and whether
// the given cluster is not ready.
func (a *Aggregation) addPurging(cluster string, circumstances AggregateOptions) {
	a.purging[cluster] = true
	if since := circumstances.notReadySince(cluster); !since.IsZero() {
		a.notReadySince[cluster] = since
	}
}

// notReadyMessage returns the message for a cluster that is not ready. The message must stay the same
// until the cluster is ready again. Therefore it contains the time at which the cluster became not
// ready instead of the current time, and omits the reason, which may change often.
func notReadyMessage(item workv1alpha2.AggregatedStatusItem, since time.Time) string {
	at := since.UTC().Format(time.RFC3339)
	if item.Applied {
		return fmt.Sprintf("status as of %s: cluster %s is not ready since then", at, item.ClusterName)
	}
	return fmt.Sprintf("cluster %s is not ready since %s", item.ClusterName, at)
}

// addRenderErrors sets the message of each cluster for which no Work could be rendered. It keeps the
// status that the member reports for an earlier template.
func (a *Aggregation) addRenderErrors(unrendered map[string]string) {
	remaining := maps.Clone(unrendered)
	for i := range a.Items {
		item := &a.Items[i]
		if message, ok := remaining[item.ClusterName]; ok {
			item.Applied, item.AppliedMessage = false, message
			delete(a.suspensionCauses, item.ClusterName)
			delete(remaining, item.ClusterName)
		}
	}
	for cluster, message := range remaining {
		a.Items = append(a.Items, workv1alpha2.AggregatedStatusItem{
			ClusterName: cluster, AppliedMessage: message, Health: workv1alpha2.ResourceUnknown,
		})
	}
}

// HasUnappliedGeneration reports whether an earlier generation of the Work is applied, but the current
// generation is not. A condition without an observed generation counts as current.
func HasUnappliedGeneration(work *workv1alpha1.Work) bool {
	applied := conditions.Get(work.Status.Conditions, workv1alpha1.WorkApplied)
	return applied != nil && applied.Status == metav1.ConditionTrue &&
		applied.ObservedGeneration != 0 && applied.ObservedGeneration < work.Generation
}

// IsSuspensionObserved reports whether the Work's delivery is suspended and the controller that
// delivers the Work has observed the suspension. From then on, a member that has an earlier generation
// keeps it.
func IsSuspensionObserved(work *workv1alpha1.Work) bool {
	dispatching := conditions.Get(work.Status.Conditions, workv1alpha1.WorkDispatching)
	return IsSuspended(work) && dispatching != nil && dispatching.Status == metav1.ConditionFalse &&
		(dispatching.ObservedGeneration == 0 || dispatching.ObservedGeneration >= work.Generation)
}

// limitSize truncates statuses and messages to equal shares if their total size exceeds the size limit
// of a binding. Without equal shares, one cluster's agent could prevent the other clusters' statuses
// from being stored.
func (a *Aggregation) limitSize(template workv1alpha2.ObjectReference) {
	total := 0
	for i := range a.Items {
		total += len(rawStatus(a.Items[i].Status)) + len(a.Items[i].AppliedMessage)
	}
	if total <= MaxAggregationBytes {
		return
	}
	share := MaxAggregationBytes / len(a.Items)
	messages := max(share/4, 8)
	for i := range a.Items {
		item := &a.Items[i]
		status, cut := TruncateStatus(item.Status, share-messages)
		if item.Status = status; cut != nil {
			item.AppliedMessage = cmp.Or(item.AppliedMessage, cut.Describe(item.ClusterName, workv1alpha1.ResourceIdentifier{
				Kind: template.Kind, Namespace: template.Namespace, Name: template.Name,
			}))
		}
		item.AppliedMessage = conditions.Truncate(item.AppliedMessage, messages)
	}
}

// aggregatedItem returns the template's status from the given Work, and a message if a part of the
// status was omitted. The size is checked here because in pull mode, the agent writes the cluster's
// Works itself and is not trusted to respect the size limit.
func aggregatedItem(cluster string, work *workv1alpha1.Work, template workv1alpha2.ObjectReference,
	limit int) (item workv1alpha2.AggregatedStatusItem, cut string) {
	item = workv1alpha2.AggregatedStatusItem{ClusterName: cluster, Health: workv1alpha2.ResourceUnknown}
	applied := conditions.Get(work.Status.Conditions, workv1alpha1.WorkApplied)
	if applied == nil {
		return item, ""
	}
	if applied.Status != metav1.ConditionTrue {
		item.AppliedMessage = applied.Message
		return item, ""
	}
	item.Applied = true
	reported := manifestStatusOf(work, template)
	if reported == nil {
		return item, ""
	}
	status, omitted := TruncateStatus(reported.Status, limit)
	if omitted != nil {
		cut = omitted.Describe(cluster, reported.Identifier)
	}
	item.Status = status.DeepCopy()
	item.Health = cmp.Or(workv1alpha2.ResourceHealth(reported.Health), workv1alpha2.ResourceUnknown)
	return item, cut
}

// manifestStatusOf returns the template's status that the member reported, or nil if there is none. It
// finds the status by the member object's identifier instead of decoding manifests, because it runs for
// every Work of a binding whenever one of the Works changes.
func manifestStatusOf(work *workv1alpha1.Work, template workv1alpha2.ObjectReference) *workv1alpha1.ManifestStatus {
	kind := schema.FromAPIVersionAndKind(template.APIVersion, template.Kind)
	for i := range work.Status.ManifestStatuses {
		status := &work.Status.ManifestStatuses[i]
		id := status.Identifier
		if id.Group == kind.Group && id.Version == kind.Version && id.Kind == kind.Kind &&
			id.Namespace == template.Namespace && id.Name == template.Name &&
			id.Ordinal < len(work.Spec.Workload.Manifests) {
			return status
		}
	}
	return nil
}

// EqualStatusItems reports whether both lists are equal. It ignores the order of fields in the
// statuses' JSON.
func EqualStatusItems(a, b []workv1alpha2.AggregatedStatusItem) bool {
	return slices.EqualFunc(a, b, func(left, right workv1alpha2.AggregatedStatusItem) bool {
		return left.ClusterName == right.ClusterName && left.Applied == right.Applied &&
			left.AppliedMessage == right.AppliedMessage && left.Health == right.Health &&
			equalJSON(rawStatus(left.Status), rawStatus(right.Status))
	})
}

func rawStatus(status *runtime.RawExtension) []byte {
	if status == nil {
		return nil
	}
	return status.Raw
}
