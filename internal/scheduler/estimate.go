package scheduler

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/estimators"
	"karmada.io/karmada/internal/domain/capacity"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/placement"
)

// estimation estimates the clusters' capacity during a pass, and collects the failures of estimators.
type estimation struct {
	table  []estimators.Row
	demand capacity.Demand
	// assumed returns the assumed workloads by cluster name, and the revision of the assumptions.
	assumed func([]*clusterv1alpha1.Cluster) (map[string][]capacity.AssumedWorkload, uint64)
	// assumedAt is the revision of the assumptions at the first estimate, or nil before it.
	assumedAt *uint64
	// failures holds the errors of estimators by cluster name.
	failures map[string]string
	// limited holds the clusters for which an accurate estimator returned less than the resource
	// summary in the Cluster's status.
	limited sets.Set[string]
}

func (s *scheduler) newEstimation(p pass) *estimation {
	return &estimation{
		table: s.estimators, demand: placement.DemandOf(p.stored.BindingSpec(), s.options.Features),
		failures: map[string]string{}, limited: sets.New[string](),
		assumed: func(clusters []*clusterv1alpha1.Cluster) (map[string][]capacity.AssumedWorkload, uint64) {
			return s.assumptions.assumedWorkloads(clusters, p.request, p.started)
		},
	}
}

// estimate asks all estimators, and returns the lowest estimate for each cluster in the same order.
func (e *estimation) estimate(ctx context.Context, clusters []*clusterv1alpha1.Cluster) []int32 {
	demand := e.demand
	assumed, revision := e.assumed(clusters)
	if demand.Assumed = assumed; e.assumedAt == nil {
		e.assumedAt = &revision
	}
	limits := estimators.Ask(ctx, e.table, demand, clusters)
	logLimits(ctx, clusters, limits)
	for i, cluster := range clusters {
		if len(limits[i].Failures) > 0 {
			e.failures[cluster.Name] = describeFailures(limits[i].Failures)
		}
		if by := limits[i].Estimator; by != "" && by != e.table[0].Name {
			e.limited.Insert(cluster.Name)
		}
	}
	return capacity.Counts(limits)
}

// describeLimits returns a sentence that names the limited clusters, or an empty string if there are
// none. Without the sentence, a failure would seem to contradict the Clusters' statuses.
func (e *estimation) describeLimits() string {
	if len(e.limited) == 0 {
		return ""
	}
	return "The estimators of " + placement.JoinFirstNames(sets.List(e.limited)) + " find less room than the status of these clusters shows."
}

func describeFailures(failures []capacity.Failure) string {
	texts := make([]string, len(failures))
	for i, failure := range failures {
		texts[i] = fmt.Sprintf("%s: %s", failure.Estimator, failure.Err)
	}
	return strings.Join(texts, ", ")
}

// estimatorNotePrefix starts the note about failed estimators at the end of a message.
const estimatorNotePrefix = "Failed estimators are ignored, and the resource summary is used: "

// withEstimatorNote appends a note about failed estimators to the message. failures holds their errors
// by cluster name. The result does not exceed the length limit of a condition's message.
func withEstimatorNote(message string, failures map[string]string) string {
	if len(failures) == 0 {
		return message
	}
	return conditions.EnumerateCauses(withSentence(message, estimatorNotePrefix), failures)
}

// isSameExceptNote reports whether both messages are equal, ignoring their notes about failed
// estimators.
func isSameExceptNote(a, b string) bool {
	withoutNote := func(message string) string {
		before, _, _ := strings.Cut(message, estimatorNotePrefix)
		return strings.TrimRight(before, ". ")
	}
	return withoutNote(a) == withoutNote(b)
}

// logLimits logs one line if estimators failed for some clusters. At verbosity 4, it also logs each
// cluster's limit and the estimator that returned it.
func logLimits(ctx context.Context, clusters []*clusterv1alpha1.Cluster, limits []capacity.Limit) {
	logger, failed, example := klog.FromContext(ctx), 0, -1
	isDetailed := logger.V(4).Enabled()
	for i := range limits {
		if len(limits[i].Failures) > 0 {
			failed++
			example = max(example, i)
		}
		if isDetailed {
			logger.V(4).Info("Estimated the capacity of a cluster", "member", clusters[i].Name, "limit", limits[i].String())
		}
	}
	if failed > 0 {
		logger.V(1).Info("Ignoring estimators that returned an error",
			"members", failed, "member", clusters[example].Name, "limit", limits[example].String())
	}
}
