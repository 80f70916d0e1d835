package estimator

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/capacity"
	"karmada.io/karmada/internal/domain/nodecapacity"
)

// estimate is the input of the plugins for one request.
type estimate struct {
	demand  capacity.Demand
	assumed []capacity.AssumedWorkload
	room    *nodecapacity.Room
}

// newEstimate returns an estimate with a copy of the free amounts of all nodes.
func (s *service) newEstimate(demand capacity.Demand, assumed []capacity.AssumedWorkload) *estimate {
	if !s.assumed {
		assumed = nil
	}
	return &estimate{demand: demand, assumed: assumed, room: s.cache.room(nodecapacity.RequestedResources(&demand, assumed))}
}

// plugin computes one limit of an estimate. It returns nodecapacity.Unlimited if it finds no limit.
type plugin struct {
	name    string
	compute func(context.Context, *trace, *estimate) (int32, error)
}

// plugins returns the table of plugins. The names are labels of metrics.
func (s *service) plugins() []plugin {
	all := []plugin{{"NodeResourceEstimator", estimateNodes}}
	if s.quotas {
		all = append(all, plugin{"ResourceQuotaEstimator", s.estimateQuotas})
	}
	return all
}

// estimate returns the smallest limit of all plugins.
func (s *service) estimate(ctx context.Context, t *trace, e *estimate) (count int32, err error) {
	point, started := "EstimateReplicas", time.Now()
	if e.demand.CountsSets() {
		point = "EstimateComponentSets"
	}
	defer func() { s.metrics.points.WithLabelValues(point).Observe(time.Since(started).Seconds()) }()
	count = nodecapacity.Unlimited
	for _, each := range s.plugins() {
		pluginStarted := time.Now()
		limit, err := each.compute(ctx, t, e)
		s.metrics.plugins.WithLabelValues(each.name, point).Observe(time.Since(pluginStarted).Seconds())
		if err != nil {
			return 0, fmt.Errorf("%s: %w", each.name, err)
		}
		if count = min(count, limit); count == 0 {
			break
		}
	}
	return count, nil
}

// estimateNodes counts what fits onto the nodes, after the assumed workloads are placed.
func estimateNodes(ctx context.Context, t *trace, e *estimate) (int32, error) {
	for i := range e.assumed {
		if ctx.Err() != nil {
			return 0, fmt.Errorf("placing assumed workloads: %w", context.Cause(ctx))
		}
		e.room.Place(&e.assumed[i])
	}
	if e.demand.CountsSets() {
		sets := e.room.Sets(e.demand.Components)
		t.endStep("MaxAvailableComponentSets", nil)
		return sets, nil
	}
	var claim *workv1alpha2.NodeClaim
	var request corev1.ResourceList
	if e.demand.Requirements != nil {
		claim, request = e.demand.Requirements.NodeClaim, e.demand.Requirements.ResourceRequest
	}
	nodes := e.room.Matching(claim)
	t.endStep("ListNodesByNodeClaim", nil)
	replicas := e.room.Replicas(nodes, request)
	t.endStep("MaxAvailableReplicas", nil)
	return replicas, nil
}

// estimateQuotas counts what the quotas of the namespace permit.
func (s *service) estimateQuotas(_ context.Context, _ *trace, e *estimate) (int32, error) {
	namespace := e.demand.Workload.Namespace
	quotas := s.cache.quotasOf(namespace)
	if e.demand.CountsSets() {
		return nodecapacity.QuotaSets(quotas, namespace, e.demand.Components, e.assumed), nil
	}
	return nodecapacity.QuotaReplicas(quotas, e.demand.Requirements, e.assumed), nil
}
