package estimators

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/estimators/estimatorpb"
	"karmada.io/karmada/internal/domain/capacity"
)

const (
	// maxQuantityLength is the largest length of the text of a quantity, in bytes. Kubernetes
	// writes at most about 40.
	maxQuantityLength = 64
	// maxExponent is the largest exponent of a quantity with an exponent, such as 1e3. The time to
	// use a quantity grows with its exponent.
	maxExponent = 30
)

var (
	// The text of errResourceNil is the wire format.
	errResourceNil      = errors.New("resource is nil")
	errNegativeReplicas = errors.New("must not be negative")
	errNegativeQuantity = errors.New("the quantity must not be negative")
	errQuantityTooLong  = fmt.Errorf("the quantity is longer than %d bytes", maxQuantityLength)
	errExponent         = fmt.Errorf("the exponent of the quantity is not between -%d and %d", maxExponent, maxExponent)
)

func decodeReplicaRequirements(encoded *estimatorpb.ReplicaRequirements) (*workv1alpha2.ReplicaRequirements, error) {
	if encoded == nil {
		return nil, nil
	}
	claim, err := decodeNodeClaim(encoded.GetNodeClaim())
	if err != nil {
		return nil, err
	}
	amounts, err := decodeResources(encoded.GetResourceRequestBytes())
	if err != nil {
		return nil, err
	}
	return &workv1alpha2.ReplicaRequirements{
		NodeClaim: claim, ResourceRequest: amounts, Namespace: encoded.GetNamespace(), PriorityClassName: encoded.GetPriorityClassName(),
	}, nil
}

func decodeAssumedWorkloads(encoded []*estimatorpb.AssumedWorkload) ([]capacity.AssumedWorkload, error) {
	var assumed []capacity.AssumedWorkload
	for i, workload := range encoded {
		components, err := decodeComponents(workload.GetComponents())
		if err != nil {
			return nil, fmt.Errorf("assumedWorkloads[%d].%w", i, err)
		}
		assumed = append(assumed, capacity.AssumedWorkload{Namespace: workload.GetNamespace(), Components: components})
	}
	return assumed, nil
}

func decodeComponents(encoded []*estimatorpb.Component) ([]workv1alpha2.Component, error) {
	var components []workv1alpha2.Component
	for i, component := range encoded {
		if component.GetReplicas() < 0 {
			return nil, fmt.Errorf("components[%d].replicas %d: %w", i, component.GetReplicas(), errNegativeReplicas)
		}
		requirements, err := decodeComponentRequirements(component.GetReplicaRequirements())
		if err != nil {
			return nil, fmt.Errorf("components[%d].replicaRequirements.%w", i, err)
		}
		components = append(components, workv1alpha2.Component{Name: component.GetName(), Replicas: component.GetReplicas(),
			ReplicaRequirements: requirements})
	}
	return components, nil
}

func decodeComponentRequirements(encoded *estimatorpb.ComponentReplicaRequirements) (*workv1alpha2.ComponentReplicaRequirements, error) {
	if encoded == nil {
		return nil, nil
	}
	claim, err := decodeNodeClaim(encoded.GetNodeClaim())
	if err != nil {
		return nil, err
	}
	amounts, err := decodeResources(encoded.GetResourceRequestBytes())
	if err != nil {
		return nil, err
	}
	return &workv1alpha2.ComponentReplicaRequirements{
		NodeClaim: claim, ResourceRequest: amounts, PriorityClassName: encoded.GetPriorityClassName(),
	}, nil
}

func decodeNodeClaim(encoded *estimatorpb.NodeClaim) (*workv1alpha2.NodeClaim, error) {
	if encoded == nil {
		return nil, nil
	}
	claim := &workv1alpha2.NodeClaim{NodeSelector: encoded.GetNodeSelector()}
	if encoded.NodeAffinityBytes != nil {
		claim.HardNodeAffinity = &corev1.NodeSelector{}
		if err := claim.HardNodeAffinity.Unmarshal(encoded.GetNodeAffinityBytes()); err != nil {
			return nil, fmt.Errorf("nodeClaim.nodeAffinityBytes: %w", err)
		}
	}
	for i, each := range encoded.GetTolerationsBytes() {
		toleration := corev1.Toleration{}
		if err := toleration.Unmarshal(each); err != nil {
			return nil, fmt.Errorf("nodeClaim.tolerationsBytes[%d]: %w", i, err)
		}
		claim.Tolerations = append(claim.Tolerations, toleration)
	}
	return claim, nil
}

func decodeResources(encoded map[string][]byte) (corev1.ResourceList, error) {
	if len(encoded) == 0 {
		return nil, nil
	}
	resources := make(corev1.ResourceList, len(encoded))
	for name, each := range encoded {
		quantity, err := decodeQuantity(each)
		if err != nil {
			return nil, fmt.Errorf("resourceRequestBytes[%q]: %w", name, err)
		}
		resources[corev1.ResourceName(name)] = quantity
	}
	return resources, nil
}

// decodeQuantity decodes a quantity of the wire. It checks the text before it parses the text,
// because a quantity such as 1e999999999 needs gigabytes when it is compared with another one. An
// absent text is 0, as in all messages.
func decodeQuantity(encoded []byte) (resource.Quantity, error) {
	text, err := quantityText(encoded)
	if err != nil || text == "" {
		return resource.Quantity{}, err
	}
	if len(text) > maxQuantityLength {
		return resource.Quantity{}, errQuantityTooLong
	}
	if err := checkExponent(text); err != nil {
		return resource.Quantity{}, err
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return resource.Quantity{}, fmt.Errorf("parsing the quantity %q: %w", text, err)
	}
	if quantity.Sign() < 0 {
		return resource.Quantity{}, errNegativeQuantity
	}
	return quantity, nil
}

// quantityText returns the value of field 1, which is the text of the quantity. As in all messages,
// the last value of a field counts and unknown fields are ignored.
func quantityText(encoded []byte) (string, error) {
	text := ""
	for len(encoded) > 0 {
		number, kind, length := protowire.ConsumeTag(encoded)
		if length < 0 {
			return "", fmt.Errorf("reading the tag of a field: %w", protowire.ParseError(length))
		}
		encoded = encoded[length:]
		if number == 1 && kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(encoded)
			text = string(value)
		}
		if length = protowire.ConsumeFieldValue(number, kind, encoded); length < 0 {
			return "", fmt.Errorf("reading field %d: %w", number, protowire.ParseError(length))
		}
		encoded = encoded[length:]
	}
	return text, nil
}

// checkExponent returns an error if the quantity has a large decimal exponent.
func checkExponent(text string) error {
	at := strings.LastIndexAny(text, "eE")
	if at < 0 || at == len(text)-1 || text[len(text)-1] == 'i' {
		return nil // without a number after it, E is the suffix exa
	}
	exponent, err := strconv.Atoi(text[at+1:])
	if err != nil || exponent < -maxExponent || exponent > maxExponent {
		return errExponent
	}
	return nil
}
