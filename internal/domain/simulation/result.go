package simulation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/placement"
)

// Verdict summarizes the result for one object.
type Verdict string

// Values of Verdict.
const (
	// Unchanged means that the object keeps its clusters and replicas.
	Unchanged Verdict = "unchanged"
	// Changed means that the object is placed as wanted, and clusters or replicas differ.
	Changed Verdict = "changed"
	// NotScheduled means that the scheduler that is simulated does not place the object.
	NotScheduled Verdict = "notScheduled"
	// Unplaced means that the object, or a part of its replicas, cannot be placed as wanted.
	Unplaced Verdict = "unplaced"
	// LastCopyLost means that all clusters of the object go and no other cluster takes the object.
	LastCopyLost Verdict = "lastCopyLost"
)

// Values of Outcome.Reason besides the reasons of the Scheduled condition.
const (
	ReasonNeverPropagated     = "NeverPropagated"
	ReasonNoPolicyMatches     = "NoPolicyMatches"
	ReasonPolicyUndecided     = "PolicyUndecided"
	ReasonClaimedByController = "CreatedByDistributor"
	ReasonLazyPolicyWaits     = "LazyPolicyWaits"
	ReasonTemplateInvalid     = "TemplateInvalid"
	ReasonNameCollision       = "NameCollision"
	ReasonEvictionFailed      = "EvictionFailed"
	ReasonBeingDeleted        = "BeingDeleted"
	ReasonSchedulingSuspended = "SchedulingSuspended"
	ReasonAttached            = "Attached"
	ReasonNotManaged          = "NotManaged"
	ReasonOtherScheduler      = "OtherScheduler"
	ReasonClusterRemoved      = workv1alpha2.BindingReasonClusterRemoved
)

// Result is the result of a simulation.
type Result struct {
	// Objects has one entry for each selected object, sorted by namespace and name of the binding,
	// namespaced objects first.
	Objects []Outcome `json:"objects"`
	// Clusters are the clusters whose objects or replicas differ, sorted by name.
	Clusters []ClusterOutcome `json:"clusters"`
}

// Outcome is the result for one object.
type Outcome struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	// Policy is the kind and name of the policy that claims the object after the changes.
	Policy string `json:"policy,omitempty"`
	// AffinityGroup is the cluster affinity group in use if the scheduler places the object.
	AffinityGroup string  `json:"affinityGroup,omitempty"`
	Verdict       Verdict `json:"verdict"`
	// Before and After are the clusters of the object, sorted by name.
	Before []Target `json:"before"`
	After  []Target `json:"after"`
	// MovedReplicas is the number of replicas that leave their cluster.
	MovedReplicas int64 `json:"movedReplicas"`
	// Reason and Message explain the verdict. Reason is empty for an object that the scheduler places as
	// wanted.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// IsChanged reports whether clusters or replicas differ.
func (o *Outcome) IsChanged() bool { return !slices.EqualFunc(o.Before, o.After, Target.equal) }

// Target is a cluster of an object. Replicas is nil if the object has no replicas.
type Target struct {
	Cluster  string `json:"cluster"`
	Replicas *int32 `json:"replicas,omitempty"`
}

func (t Target) equal(other Target) bool {
	return t.Cluster == other.Cluster && t.count() == other.count() && (t.Replicas == nil) == (other.Replicas == nil)
}

func (t Target) count() int64 {
	if t.Replicas == nil {
		return 0
	}
	return int64(*t.Replicas)
}

// ClusterOutcome are the numbers of objects and replicas in one cluster.
type ClusterOutcome struct {
	Name           string `json:"name"`
	ObjectsBefore  int    `json:"objectsBefore"`
	ObjectsAfter   int    `json:"objectsAfter"`
	ReplicasBefore int64  `json:"replicasBefore"`
	ReplicasAfter  int64  `json:"replicasAfter"`
}

// Count returns the number of objects with the verdict.
func (r Result) Count(verdict Verdict) (count int) {
	for i := range r.Objects {
		if r.Objects[i].Verdict == verdict {
			count++
		}
	}
	return count
}

func (r *run) result() Result {
	result := Result{Objects: []Outcome{}, Clusters: []ClusterOutcome{}}
	numbers := map[string]*ClusterOutcome{}
	at := func(name string) *ClusterOutcome {
		if numbers[name] == nil {
			numbers[name] = &ClusterOutcome{Name: name}
		}
		return numbers[name]
	}
	for _, each := range r.sorted {
		if !each.isSelected {
			continue
		}
		outcome := r.outcome(each)
		result.Objects = append(result.Objects, outcome)
		for _, target := range outcome.Before {
			at(target.Cluster).ObjectsBefore++
			at(target.Cluster).ReplicasBefore += target.count()
		}
		for _, target := range outcome.After {
			at(target.Cluster).ObjectsAfter++
			at(target.Cluster).ReplicasAfter += target.count()
		}
	}
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		if of := numbers[name]; of.ObjectsBefore != of.ObjectsAfter || of.ReplicasBefore != of.ReplicasAfter {
			result.Clusters = append(result.Clusters, *of)
		}
	}
	return result
}

func (r *run) outcome(of *subject) Outcome {
	outcome := Outcome{
		APIVersion: of.resource.APIVersion, Kind: of.resource.Kind, Namespace: of.resource.Namespace, Name: of.resource.Name,
		Policy: of.policy, AffinityGroup: of.affinityGroup, Before: targetsOf(of.before), After: targetsOf(of.bound),
	}
	outcome.MovedReplicas = movedReplicas(outcome.Before, outcome.After)
	outcome.Verdict, outcome.Reason = r.verdict(of, &outcome)
	outcome.Message = r.message(of, &outcome)
	return outcome
}

func (r *run) verdict(of *subject, outcome *Outcome) (verdict Verdict, reason string) {
	switch {
	case r.losesLastCopy(of):
		return LastCopyLost, cmp.Or(of.failure.reason, of.waiting.reason, ReasonClusterRemoved)
	case of.failure != (finding{}):
		return Unplaced, of.failure.reason
	case of.waiting != (finding{}) && outcome.IsChanged() && of.waiting.reason != ReasonAttached && placement.DescribeShortfall(of.bound.BindingSpec()) != "":
		return Unplaced, ReasonClusterRemoved
	case of.waiting != (finding{}) && (of.waiting.reason != ReasonAttached || !outcome.IsChanged()):
		return NotScheduled, of.waiting.reason
	case outcome.IsChanged():
		return Changed, of.waiting.reason
	default:
		return Unchanged, ""
	}
}

// losesLastCopy reports whether copies exist now, and none is left after the changes. Copies that
// remain until an eviction ends are not lost. Copies in terminating clusters are.
func (r *run) losesLastCopy(of *subject) bool {
	if of.before == nil || of.bound == nil {
		return false
	}
	remaining := binding.ExpectedClusters(of.bound.BindingSpec())
	for name := range remaining {
		if cluster := r.cluster(name); cluster != nil && cluster.DeletionTimestamp != nil {
			remaining.Delete(name)
		}
	}
	return binding.ExpectedClusters(of.before.BindingSpec()).Len() > 0 && remaining.Len() == 0
}

// message explains the outcome: the failure, or why clusters are left, or why nothing happens.
func (r *run) message(of *subject, outcome *Outcome) string {
	var parts []string
	if of.failure != (finding{}) {
		parts = append(parts, strings.TrimSuffix(of.failure.message, "."))
	}
	if of.waiting != (finding{}) {
		parts = append(parts, of.waiting.message)
	}
	if left := describeLeaving(of, outcome); left != "" {
		parts = append(parts, left)
	}
	switch {
	case len(parts) > 0:
	case outcome.Verdict == Changed && of.before == nil:
		parts = append(parts, "new")
	case outcome.Verdict == Changed:
		parts = append(parts, of.trigger)
	case r.isInChangedCluster(outcome) && of.trigger == "":
		parts = append(parts, "stays: a divided workload moves only if its placement, its replicas or its set of clusters changes")
	}
	return strings.Join(append(parts, of.remarks...), "; ")
}

// isInChangedCluster reports whether labels or taints of a cluster of the object change.
func (r *run) isInChangedCluster(outcome *Outcome) bool {
	changed := sets.New(r.Changes.Names()...)
	return slices.ContainsFunc(outcome.Before, func(target Target) bool { return changed.Has(target.Cluster) })
}

// describeLeaving returns the reasons for which the object leaves clusters. Clusters with the same
// reason are named together.
func describeLeaving(of *subject, outcome *Outcome) string {
	remaining := sets.New[string]()
	for _, target := range outcome.After {
		remaining.Insert(target.Cluster)
	}
	clusters, reasons := map[string][]string{}, []string{}
	for _, target := range outcome.Before {
		reason := of.leaving[target.Cluster]
		isInFailure := strings.Contains(of.failure.message, target.Cluster+": "+reason)
		if remaining.Has(target.Cluster) || reason == "" || isInFailure {
			continue
		}
		if clusters[reason] == nil {
			reasons = append(reasons, reason)
		}
		clusters[reason] = append(clusters[reason], target.Cluster)
	}
	texts := make([]string, len(reasons))
	for i, reason := range reasons {
		names := clusters[reason]
		if more := len(names) - maxNamed; more > 0 {
			names = append(names[:maxNamed:maxNamed], fmt.Sprintf("%d more", more))
		}
		texts[i] = strings.Join(names, ", ") + ": " + reason
	}
	return strings.Join(texts, "; ")
}

// targetsOf returns the clusters of a binding, which may be nil, sorted by name.
func targetsOf(bound binding.Object) []Target {
	targets := []Target{}
	if bound == nil {
		return targets
	}
	spec := bound.BindingSpec()
	for _, each := range binding.TargetClusters(spec) {
		target := Target{Cluster: each.Name}
		if placement.HasReplicas(spec) {
			target.Replicas = new(each.Replicas)
		}
		targets = append(targets, target)
	}
	slices.SortFunc(targets, func(a, b Target) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return targets
}

// movedReplicas returns the number of replicas that leave their cluster.
func movedReplicas(before, after []Target) (moved int64) {
	kept := map[string]int64{}
	for _, target := range after {
		kept[target.Cluster] = target.count()
	}
	for _, target := range before {
		moved += max(0, target.count()-kept[target.Cluster])
	}
	return moved
}
