package estimator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/estimators"
	"karmada.io/karmada/internal/access/estimators/estimatorpb"
	"karmada.io/karmada/internal/domain/nodecapacity"
)

// service implements the gRPC contract. It is used concurrently.
type service struct {
	estimatorpb.UnimplementedEstimatorServer

	cluster   string
	cache     *cache
	selectors selectors
	metrics   *metrics
	now       func() time.Time
	// quotas and assumed are the options of the same name.
	quotas, assumed bool
	// slots has a value for each estimate that is computed at the moment.
	slots chan struct{}
}

// errOtherCluster is the error of a request for another cluster. Its text is the wire format.
var errOtherCluster = errors.New("cluster name does not match")

// handleRequest computes the response to a request with compute, and records its duration. It rejects
// requests for other clusters, and waits while too many estimates are being computed.
func (s *service) handleRequest(ctx context.Context, method, cluster string, compute func(*trace) (int32, error)) (count int32, err error) {
	t := s.metrics.startTrace(method)
	defer func() { t.finish(ctx, err) }()
	if cluster != s.cluster {
		return 0, fmt.Errorf("%w, got: %s, desire: %s", errOtherCluster, cluster, s.cluster)
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return 0, fmt.Errorf("waiting until other estimates are computed: %w", context.Cause(ctx))
	}
	return compute(t)
}

// MaxAvailableReplicas implements estimatorpb.EstimatorServer, as do the methods below.
func (s *service) MaxAvailableReplicas(ctx context.Context,
	request *estimatorpb.MaxAvailableReplicasRequest) (*estimatorpb.MaxAvailableReplicasResponse, error) {
	replicas, err := s.handleRequest(ctx, "MaxAvailableReplicas", request.GetCluster(), func(t *trace) (int32, error) {
		demand, assumed, err := estimators.DecodeReplicas(request)
		if err != nil {
			return 0, fmt.Errorf("decoding the request: %w", err)
		}
		return s.estimate(ctx, t, s.newEstimate(demand, assumed))
	})
	if err != nil {
		return nil, err
	}
	return &estimatorpb.MaxAvailableReplicasResponse{MaxReplicas: replicas}, nil
}

// MaxAvailableComponentSets returns how many sets of components fit into the cluster.
func (s *service) MaxAvailableComponentSets(ctx context.Context,
	request *estimatorpb.MaxAvailableComponentSetsRequest) (*estimatorpb.MaxAvailableComponentSetsResponse, error) {
	sets, err := s.handleRequest(ctx, "MaxAvailableComponentSets", request.GetCluster(), func(t *trace) (int32, error) {
		demand, assumed, err := estimators.DecodeSets(request)
		if err != nil {
			return 0, fmt.Errorf("decoding the request: %w", err)
		}
		if !demand.CountsSets() {
			return nodecapacity.Unlimited, nil // no plugin limits the number
		}
		return s.estimate(ctx, t, s.newEstimate(demand, assumed))
	})
	if err != nil {
		return nil, err
	}
	return &estimatorpb.MaxAvailableComponentSetsResponse{MaxSets: sets}, nil
}

// GetUnschedulableReplicas returns how many Pods of a workload cannot be scheduled.
func (s *service) GetUnschedulableReplicas(ctx context.Context,
	request *estimatorpb.UnschedulableReplicasRequest) (*estimatorpb.UnschedulableReplicasResponse, error) {
	count, err := s.handleRequest(ctx, "GetUnschedulableReplicas", request.GetCluster(), func(t *trace) (int32, error) {
		workload, threshold, err := estimators.DecodeUnschedulable(request)
		if err != nil {
			return 0, err
		}
		return s.countUnschedulable(ctx, t, workload, threshold)
	})
	if err != nil {
		return nil, err
	}
	return &estimatorpb.UnschedulableReplicasResponse{UnschedulableReplicas: count}, nil
}

// podOwners are the kinds of Kubernetes whose Pods have the workload, or a ReplicaSet of the
// workload, as their controller.
var podOwners = []schema.GroupKind{
	{Group: "apps", Kind: "Deployment"}, {Group: "apps", Kind: "StatefulSet"}, {Group: "apps", Kind: "ReplicaSet"},
	{Group: "apps", Kind: "DaemonSet"}, {Group: "batch", Kind: "Job"}, {Kind: "ReplicationController"},
}

// countUnschedulable counts the Pods that the workload controls, itself or through its newest
// ReplicaSet. If the workload controls no unschedulable Pod, the Pods that match its selector
// count, because the Pods of some kinds have another controller.
func (s *service) countUnschedulable(ctx context.Context, t *trace, workload workv1alpha2.ObjectReference,
	threshold time.Duration) (int32, error) {
	kind := schema.FromAPIVersionAndKind(workload.APIVersion, workload.Kind).GroupKind()
	owner := nodecapacity.Owner{Kind: kind, Name: workload.Name}
	newest := s.cache.newestReplicaSet(workloadKey{namespace: workload.Namespace, owner: owner})
	t.endStep("GetObjectFromCache", nil)
	pods, belongs := s.cache.unschedulablePods(workload.Namespace), nodecapacity.OwnedPods(owner, newest)
	if len(pods) > 0 && !slices.Contains(podOwners, kind) && !slices.ContainsFunc(pods, belongs) {
		selector, err := s.selectors(ctx, workload)
		if errors.Is(err, errNoSelector) {
			err = fmt.Errorf("kind(%s) of workload(%s/%s) is not supported: %w", workload.Kind, workload.Namespace, workload.Name, err)
		}
		if err != nil {
			t.endStep("GetWorkloadUnschedulablePods", err)
			return 0, err
		}
		belongs = nodecapacity.SelectedPods(selector)
	}
	count := nodecapacity.CountUnschedulable(pods, belongs, threshold, s.now())
	t.endStep("GetWorkloadUnschedulablePods", nil)
	return count, nil
}
