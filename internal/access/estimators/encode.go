package estimators

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/estimators/estimatorpb"
	"karmada.io/karmada/internal/domain/capacity"
)

// encodeReplicaRequirements uses the namespace of the workload if the requirements have none.
func encodeReplicaRequirements(demand capacity.Demand) (*estimatorpb.ReplicaRequirements, error) {
	requirements := demand.Requirements
	if requirements == nil {
		return nil, nil
	}
	claim, err := encodeNodeClaim(requirements.NodeClaim)
	if err != nil {
		return nil, err
	}
	amounts, err := encodeResources(requirements.ResourceRequest)
	if err != nil {
		return nil, err
	}
	return &estimatorpb.ReplicaRequirements{
		NodeClaim: claim, ResourceRequestBytes: amounts, PriorityClassName: requirements.PriorityClassName,
		Namespace: cmp.Or(requirements.Namespace, demand.Workload.Namespace),
	}, nil
}

func encodeAssumedWorkloads(assumed []capacity.AssumedWorkload) ([]*estimatorpb.AssumedWorkload, error) {
	var encoded []*estimatorpb.AssumedWorkload
	for _, workload := range assumed {
		components, err := encodeComponents(workload.Components)
		if err != nil {
			return nil, fmt.Errorf("assumed workload in namespace %s: %w", workload.Namespace, err)
		}
		encoded = append(encoded, &estimatorpb.AssumedWorkload{Namespace: workload.Namespace, Components: components})
	}
	return encoded, nil
}

func encodeComponents(components []workv1alpha2.Component) ([]*estimatorpb.Component, error) {
	var encoded []*estimatorpb.Component
	for i := range components {
		component := &components[i]
		requirements, err := encodeComponentRequirements(component.ReplicaRequirements)
		if err != nil {
			return nil, fmt.Errorf("component %s: %w", component.Name, err)
		}
		encoded = append(encoded, &estimatorpb.Component{Name: component.Name, Replicas: component.Replicas, ReplicaRequirements: requirements})
	}
	return encoded, nil
}

func encodeComponentRequirements(requirements *workv1alpha2.ComponentReplicaRequirements) (*estimatorpb.ComponentReplicaRequirements, error) {
	if requirements == nil {
		return nil, nil
	}
	claim, err := encodeNodeClaim(requirements.NodeClaim)
	if err != nil {
		return nil, err
	}
	amounts, err := encodeResources(requirements.ResourceRequest)
	if err != nil {
		return nil, err
	}
	return &estimatorpb.ComponentReplicaRequirements{
		NodeClaim: claim, ResourceRequestBytes: amounts, PriorityClassName: requirements.PriorityClassName,
	}, nil
}

func encodeNodeClaim(claim *workv1alpha2.NodeClaim) (*estimatorpb.NodeClaim, error) {
	if claim == nil {
		return nil, nil
	}
	encoded := &estimatorpb.NodeClaim{NodeSelector: claim.NodeSelector}
	if claim.HardNodeAffinity != nil {
		affinity, err := claim.HardNodeAffinity.Marshal()
		if err != nil {
			return nil, fmt.Errorf("encoding the node affinity: %w", err)
		}
		encoded.NodeAffinityBytes = affinity
	}
	for i := range claim.Tolerations {
		toleration, err := claim.Tolerations[i].Marshal()
		if err != nil {
			return nil, fmt.Errorf("encoding the toleration of %s: %w", claim.Tolerations[i].Key, err)
		}
		encoded.TolerationsBytes = append(encoded.TolerationsBytes, toleration)
	}
	return encoded, nil
}

func encodeResources(resources corev1.ResourceList) (map[string][]byte, error) {
	if len(resources) == 0 {
		return nil, nil
	}
	encoded := make(map[string][]byte, len(resources))
	for name, quantity := range resources {
		amount, err := quantity.Marshal()
		if err != nil {
			return nil, fmt.Errorf("encoding the request of %s: %w", name, err)
		}
		encoded[string(name)] = amount
	}
	return encoded, nil
}
