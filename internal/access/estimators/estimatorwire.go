package estimators

import (
	"fmt"
	"time"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/estimators/estimatorpb"
	"karmada.io/karmada/internal/domain/capacity"
)

// EncodeReplicas returns the request for the number of replicas of the demand that fit into the
// cluster. The components of the demand are not used.
func EncodeReplicas(cluster string, demand capacity.Demand,
	assumed []capacity.AssumedWorkload) (*estimatorpb.MaxAvailableReplicasRequest, error) {
	requirements, err := encodeReplicaRequirements(demand)
	if err != nil {
		return nil, err
	}
	workloads, err := encodeAssumedWorkloads(assumed)
	if err != nil {
		return nil, err
	}
	return &estimatorpb.MaxAvailableReplicasRequest{Cluster: cluster, ReplicaRequirements: requirements, AssumedWorkloads: workloads}, nil
}

// DecodeReplicas is the inverse of EncodeReplicas. The workload of the demand has only a namespace.
//
// The Decode functions return what was encoded, except that empty lists and maps become nil, and
// quantities may have another notation of the same value. They return an error that names the field
// for a message that no client encodes, and they never panic. The time and memory to use a decoded
// quantity are bounded, because its text is short and its exponent is small.
func DecodeReplicas(request *estimatorpb.MaxAvailableReplicasRequest) (capacity.Demand, []capacity.AssumedWorkload, error) {
	demand := capacity.Demand{}
	requirements, err := decodeReplicaRequirements(request.GetReplicaRequirements())
	if err != nil {
		return demand, nil, fmt.Errorf("replicaRequirements.%w", err)
	}
	if requirements != nil {
		demand.Requirements, demand.Workload.Namespace = requirements, requirements.Namespace
	}
	assumed, err := decodeAssumedWorkloads(request.GetAssumedWorkloads())
	return demand, assumed, err
}

// EncodeSets returns the request for the number of sets of the components of the demand that fit
// into the cluster. The requirements of the demand are not used.
func EncodeSets(cluster string, demand capacity.Demand,
	assumed []capacity.AssumedWorkload) (*estimatorpb.MaxAvailableComponentSetsRequest, error) {
	components, err := encodeComponents(demand.Components)
	if err != nil {
		return nil, err
	}
	workloads, err := encodeAssumedWorkloads(assumed)
	if err != nil {
		return nil, err
	}
	return &estimatorpb.MaxAvailableComponentSetsRequest{
		Cluster: cluster, Namespace: demand.Workload.Namespace, Components: components, AssumedWorkloads: workloads,
	}, nil
}

// DecodeSets is the inverse of EncodeSets. The workload of the demand has only a namespace.
func DecodeSets(request *estimatorpb.MaxAvailableComponentSetsRequest) (capacity.Demand, []capacity.AssumedWorkload, error) {
	demand := capacity.Demand{}
	demand.Workload.Namespace = request.GetNamespace()
	components, err := decodeComponents(request.GetComponents())
	if err != nil {
		return demand, nil, err
	}
	demand.Components = components
	assumed, err := decodeAssumedWorkloads(request.GetAssumedWorkloads())
	return demand, assumed, err
}

// EncodeUnschedulable returns the request for the number of Pods of the workload that have been
// unschedulable for at least the threshold. The message holds only the identity of the workload.
func EncodeUnschedulable(cluster string, workload workv1alpha2.ObjectReference,
	threshold time.Duration) *estimatorpb.UnschedulableReplicasRequest {
	return &estimatorpb.UnschedulableReplicasRequest{
		Cluster: cluster,
		Resource: &estimatorpb.ObjectReference{
			ApiVersion: workload.APIVersion, Kind: workload.Kind, Namespace: workload.Namespace, Name: workload.Name,
		},
		UnschedulableThreshold: threshold.Nanoseconds(),
	}
}

// DecodeUnschedulable is the inverse of EncodeUnschedulable. A negative threshold becomes 0.
func DecodeUnschedulable(request *estimatorpb.UnschedulableReplicasRequest) (workv1alpha2.ObjectReference, time.Duration, error) {
	resource := request.GetResource()
	if resource == nil {
		return workv1alpha2.ObjectReference{}, 0, errResourceNil
	}
	workload := workv1alpha2.ObjectReference{
		APIVersion: resource.GetApiVersion(), Kind: resource.GetKind(), Namespace: resource.GetNamespace(), Name: resource.GetName(),
	}
	return workload, max(0, time.Duration(request.GetUnschedulableThreshold())), nil
}
