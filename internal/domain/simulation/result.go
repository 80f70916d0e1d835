package simulation

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/diagnose"
	"karmada.io/karmada/internal/domain/placement"
)

// Effect summarizes the result for one object.
type Effect string

// Values of Effect.
const (
	// Unchanged means that the object keeps its clusters and replicas.
	Unchanged Effect = "unchanged"
	// Changed means that the object is placed as wanted, and clusters or replicas differ.
	Changed Effect = "changed"
	// NotScheduled means that the scheduler that is simulated does not place the object.
	NotScheduled Effect = "notScheduled"
	// Unplaced means that the object, or a part of its replicas, cannot be placed as wanted.
	Unplaced Effect = "unplaced"
	// LastCopyLost means that all clusters of the object go and no other cluster takes the object.
	LastCopyLost Effect = "lastCopyLost"
)

// Values of Outcome.Reason besides the reasons of package diagnose and of the condition Scheduled.
const (
	ReasonPolicyUndecided = "PolicyUndecided"
	ReasonTemplateInvalid = "TemplateInvalid"
	ReasonEvictionFailed  = "EvictionFailed"
	ReasonOtherScheduler  = "OtherScheduler"
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
	AffinityGroup string `json:"affinityGroup,omitempty"`
	Effect        Effect `json:"effect"`
	// Before and After are the clusters of the object, sorted by name.
	Before []diagnose.Target `json:"before"`
	After  []diagnose.Target `json:"after"`
	// MovedReplicas is the number of replicas that leave their cluster.
	MovedReplicas int64 `json:"movedReplicas"`
	// Reason and Message explain the effect. Reason is empty for an object that the scheduler places as
	// wanted.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// IsChanged reports whether clusters or replicas differ.
func (o *Outcome) IsChanged() bool {
	return !slices.EqualFunc(o.Before, o.After, func(a, b diagnose.Target) bool {
		return a.Cluster == b.Cluster && replicasIn(a) == replicasIn(b) && (a.Replicas == nil) == (b.Replicas == nil)
	})
}

// ClusterOutcome contains the numbers of objects and replicas in one cluster.
type ClusterOutcome struct {
	Name           string `json:"name"`
	ObjectsBefore  int    `json:"objectsBefore"`
	ObjectsAfter   int    `json:"objectsAfter"`
	ReplicasBefore int64  `json:"replicasBefore"`
	ReplicasAfter  int64  `json:"replicasAfter"`
}

// Count returns the number of objects with the effect.
func (r Result) Count(effect Effect) (count int) {
	for i := range r.Objects {
		if r.Objects[i].Effect == effect {
			count++
		}
	}
	return count
}

func (s *simulator) result() Result {
	result := Result{Objects: []Outcome{}, Clusters: []ClusterOutcome{}}
	numbers := map[string]*ClusterOutcome{}
	at := func(name string) *ClusterOutcome {
		if numbers[name] == nil {
			numbers[name] = &ClusterOutcome{Name: name}
		}
		return numbers[name]
	}
	for _, each := range s.sorted {
		if !each.isSelected {
			continue
		}
		outcome := s.outcome(each)
		result.Objects = append(result.Objects, outcome)
		for _, target := range outcome.Before {
			at(target.Cluster).ObjectsBefore++
			at(target.Cluster).ReplicasBefore += replicasIn(target)
		}
		for _, target := range outcome.After {
			at(target.Cluster).ObjectsAfter++
			at(target.Cluster).ReplicasAfter += replicasIn(target)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		if of := numbers[name]; of.ObjectsBefore != of.ObjectsAfter || of.ReplicasBefore != of.ReplicasAfter {
			result.Clusters = append(result.Clusters, *of)
		}
	}
	return result
}

func (s *simulator) outcome(of *subject) Outcome {
	outcome := Outcome{
		APIVersion: of.resource.APIVersion, Kind: of.resource.Kind, Namespace: of.resource.Namespace, Name: of.resource.Name,
		Policy: of.policy, AffinityGroup: of.affinityGroup, Before: targetsOf(of.before), After: targetsOf(of.bound),
	}
	outcome.MovedReplicas = movedReplicas(outcome.Before, outcome.After)
	outcome.Effect, outcome.Reason = s.effect(of, &outcome)
	outcome.Message = s.message(of, &outcome)
	return outcome
}

func (s *simulator) effect(of *subject, outcome *Outcome) (effect Effect, reason string) {
	switch {
	case s.losesLastCopy(of):
		return LastCopyLost, cmp.Or(of.failure.reason, of.waiting.reason, workv1alpha2.BindingReasonClusterRemoved)
	case of.failure != (finding{}):
		return Unplaced, of.failure.reason
	case of.waiting != (finding{}) && outcome.IsChanged() && of.waiting.reason != diagnose.ReasonAttached &&
		placement.DescribeShortfall(of.bound.BindingSpec()) != "":
		return Unplaced, workv1alpha2.BindingReasonClusterRemoved
	case of.waiting != (finding{}) && (of.waiting.reason != diagnose.ReasonAttached || !outcome.IsChanged()):
		return NotScheduled, of.waiting.reason
	case outcome.IsChanged():
		return Changed, of.waiting.reason
	default:
		return Unchanged, ""
	}
}

// losesLastCopy reports whether copies exist now, and none is left after the changes. Copies that
// remain until an eviction ends are not lost. Copies in terminating clusters are.
func (s *simulator) losesLastCopy(of *subject) bool {
	if of.before == nil || of.bound == nil {
		return false
	}
	remaining := binding.ExpectedClusters(of.bound.BindingSpec())
	for name := range remaining {
		if cluster := s.cluster(name); cluster != nil && cluster.DeletionTimestamp != nil {
			remaining.Delete(name)
		}
	}
	return binding.ExpectedClusters(of.before.BindingSpec()).Len() > 0 && remaining.Len() == 0
}

// message explains the outcome: the failure, or why clusters are left, or why nothing happens.
func (s *simulator) message(of *subject, outcome *Outcome) string {
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
	case outcome.Effect == Changed && of.before == nil:
		parts = append(parts, "new")
	case outcome.Effect == Changed:
		parts = append(parts, of.trigger)
	case s.isInChangedCluster(outcome) && of.trigger == "":
		parts = append(parts, "stays: a divided workload moves only if its placement, its replicas or its set of clusters changes")
	}
	return strings.Join(append(parts, of.remarks...), "; ")
}

// isInChangedCluster reports whether labels or taints of a cluster of the object change.
func (s *simulator) isInChangedCluster(outcome *Outcome) bool {
	changed := sets.New(s.Changes.Names()...)
	return slices.ContainsFunc(outcome.Before, func(target diagnose.Target) bool { return changed.Has(target.Cluster) })
}

// maxNamedClusters limits how many clusters with the same reason a message names.
const maxNamedClusters = 3

// describeLeaving returns the reasons why the object leaves clusters. Clusters with the same reason are named
// together.
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
		named := min(len(names), maxNamedClusters)
		texts[i] = diagnose.JoinLimited(names[:named], len(names)-named) + ": " + reason
	}
	return strings.Join(texts, "; ")
}

// targetsOf returns the target clusters of a binding, which may be nil.
func targetsOf(bound binding.Object) []diagnose.Target {
	if bound == nil {
		return []diagnose.Target{}
	}
	return diagnose.TargetsOf(bound)
}

// replicasIn returns the number of replicas in the target cluster, which is 0 for an object without replicas.
func replicasIn(target diagnose.Target) int64 {
	if target.Replicas == nil {
		return 0
	}
	return int64(*target.Replicas)
}

// movedReplicas returns the number of replicas that leave their cluster.
func movedReplicas(before, after []diagnose.Target) (moved int64) {
	kept := map[string]int64{}
	for _, target := range after {
		kept[target.Cluster] = replicasIn(target)
	}
	for _, target := range before {
		moved += max(0, replicasIn(target)-kept[target.Cluster])
	}
	return moved
}
