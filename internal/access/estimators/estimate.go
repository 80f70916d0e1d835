package estimators

import (
	"context"
	"fmt"

	"karmada.io/karmada/internal/access/estimators/estimatorpb"
	"karmada.io/karmada/internal/domain/capacity"
)

// estimateFunc sends a request for one demand to the estimator of a cluster.
type estimateFunc func(ctx context.Context, estimator estimatorpb.EstimatorClient, cluster string,
	assumed []*estimatorpb.AssumedWorkload) (int32, error)

// newEstimate encodes the demand without its assumed workloads, and returns the function that sends
// it. The requests of all clusters share the encoded demand.
func newEstimate(demand capacity.Demand) (estimateFunc, error) {
	if demand.CountsSets() {
		return newSetsEstimate(demand)
	}
	shared, err := EncodeReplicas("", demand, nil)
	if err != nil {
		return nil, fmt.Errorf("encoding the requirements of a replica: %w", err)
	}
	return func(ctx context.Context, estimator estimatorpb.EstimatorClient, cluster string, assumed []*estimatorpb.AssumedWorkload) (int32,
		error) {
		response, err := estimator.MaxAvailableReplicas(ctx, &estimatorpb.MaxAvailableReplicasRequest{
			Cluster: cluster, ReplicaRequirements: shared.GetReplicaRequirements(), AssumedWorkloads: assumed,
		})
		return response.GetMaxReplicas(), err
	}, nil
}

func newSetsEstimate(demand capacity.Demand) (estimateFunc, error) {
	shared, err := EncodeSets("", demand, nil)
	if err != nil {
		return nil, fmt.Errorf("encoding the components: %w", err)
	}
	return func(ctx context.Context, estimator estimatorpb.EstimatorClient, cluster string, assumed []*estimatorpb.AssumedWorkload) (int32,
		error) {
		response, err := estimator.MaxAvailableComponentSets(ctx, &estimatorpb.MaxAvailableComponentSetsRequest{
			Cluster: cluster, Components: shared.GetComponents(), Namespace: shared.GetNamespace(), AssumedWorkloads: assumed,
		})
		return response.GetMaxSets(), err
	}, nil
}

// estimate sends a request to the estimator of a cluster, with the workloads that are assumed there.
func (p *Pool) estimate(ctx context.Context, send estimateFunc, cluster string, assumed []capacity.AssumedWorkload) capacity.Estimate {
	encoded, err := EncodeReplicas(cluster, capacity.Demand{}, assumed)
	if err != nil {
		return capacity.Estimate{Err: fmt.Errorf("encoding the assumed workloads: %w", err)}
	}
	return p.request(ctx, cluster, func(ctx context.Context, estimator estimatorpb.EstimatorClient) (int32, error) {
		return send(ctx, estimator, cluster, encoded.GetAssumedWorkloads())
	})
}
