package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/interpreter"
)

// newRequest returns a request for the object, with 0 replicas.
func (o *operation) newRequest(object *unstructured.Unstructured) (*configv1alpha1.ResourceInterpreterRequest, error) {
	raw, err := encode(object)
	if err != nil {
		return nil, o.wrap(err)
	}
	return &configv1alpha1.ResourceInterpreterRequest{
		Kind:            metav1.GroupVersionKind{Group: o.kind.Group, Version: o.kind.Version, Kind: o.kind.Kind},
		Name:            object.GetName(),
		Namespace:       object.GetNamespace(),
		Operation:       o.name,
		Object:          *raw,
		DesiredReplicas: new(int32),
	}, nil
}

func encode(object *unstructured.Unstructured) (*runtime.RawExtension, error) {
	raw, err := json.Marshal(object.Object)
	if err != nil {
		return nil, fmt.Errorf("encoding %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	return &runtime.RawExtension{Raw: raw}, nil
}

// askAbout sends a request that contains only the object.
func (o *operation) askAbout(ctx context.Context, object *unstructured.Unstructured) (*configv1alpha1.ResourceInterpreterResponse, error) {
	request, err := o.newRequest(object)
	if err != nil {
		return nil, err
	}
	return o.ask(ctx, request)
}

// askForPatch sends the request and returns the patched object, or the object itself if nothing changes.
func (o *operation) askForPatch(
	ctx context.Context, object *unstructured.Unstructured, request *configv1alpha1.ResourceInterpreterRequest,
) (*unstructured.Unstructured, error) {
	response, err := o.ask(ctx, request)
	if err != nil {
		return nil, err
	}
	patched, err := patchedObject(object, response)
	if err != nil {
		return nil, o.wrap(err)
	}
	return patched, nil
}

// Replicas implements interpreter.Operations.
func (o *operation) Replicas(ctx context.Context, template *unstructured.Unstructured) (int32, *workv1alpha2.ReplicaRequirements, error) {
	response, err := o.askAbout(ctx, template)
	if err != nil {
		return 0, nil, err
	}
	switch {
	case response.Replicas == nil:
		return 0, nil, o.wrap(nilFieldError("replicas"))
	case *response.Replicas < 0:
		return 0, nil, o.wrap(fmt.Errorf("webhook returned response.replicas %d: return 0 or more", *response.Replicas))
	}
	if requirements := response.ReplicaRequirements; requirements != nil {
		if err := interpreter.ValidateRequests(requirements.ResourceRequest); err != nil {
			return 0, nil, o.wrap(fmt.Errorf("reading response.replicaRequirements: %w", err))
		}
	}
	return *response.Replicas, response.ReplicaRequirements, nil
}

// Components implements interpreter.Operations.
func (o *operation) Components(ctx context.Context, template *unstructured.Unstructured) ([]workv1alpha2.Component, error) {
	response, err := o.askAbout(ctx, template)
	if err != nil {
		return nil, err
	}
	if err := validateComponents(response.Components); err != nil {
		return nil, o.wrap(err)
	}
	return response.Components, nil
}

// ReviseReplicas implements interpreter.Operations.
func (o *operation) ReviseReplicas(
	ctx context.Context, template *unstructured.Unstructured, replicas int64,
) (*unstructured.Unstructured, error) {
	if replicas < 0 || replicas > math.MaxInt32 {
		return nil, o.wrap(fmt.Errorf("a webhook cannot set %d replicas: use 0 to %d", replicas, math.MaxInt32))
	}
	request, err := o.newRequest(template)
	if err != nil {
		return nil, err
	}
	request.DesiredReplicas = new(int32(replicas))
	return o.askForPatch(ctx, template, request)
}

// Retain implements interpreter.Operations.
func (o *operation) Retain(ctx context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	request, err := o.newRequest(desired)
	if err != nil {
		return nil, err
	}
	if request.ObservedObject, err = encode(observed); err != nil {
		return nil, o.wrap(err)
	}
	return o.askForPatch(ctx, desired, request)
}

// AggregateStatus implements interpreter.Operations. It uses only the patched template's status, because the
// other fields belong to the user.
func (o *operation) AggregateStatus(
	ctx context.Context, template *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem,
) (*unstructured.Unstructured, error) {
	request, err := o.newRequest(template)
	if err != nil {
		return nil, err
	}
	request.AggregatedStatus = items
	patched, err := o.askForPatch(ctx, template, request)
	if err != nil || patched == template {
		return patched, err
	}
	return withStatusOf(template, patched), nil
}

// ReflectStatus implements interpreter.Operations.
func (o *operation) ReflectStatus(ctx context.Context, memberObject *unstructured.Unstructured) (*runtime.RawExtension, error) {
	response, err := o.askAbout(ctx, memberObject)
	if err != nil {
		return nil, err
	}
	if response.RawStatus == nil {
		return nil, o.wrap(nilFieldError("rawStatus"))
	}
	var status map[string]any
	if err := json.Unmarshal(response.RawStatus.Raw, &status); err != nil {
		return nil, o.wrap(fmt.Errorf(
			"webhook returned a response.rawStatus that is no object: return the fields of the status as an object: %w", err))
	}
	return response.RawStatus, nil
}

// IsHealthy implements interpreter.Operations.
func (o *operation) IsHealthy(ctx context.Context, memberObject *unstructured.Unstructured) (bool, error) {
	response, err := o.askAbout(ctx, memberObject)
	if err != nil {
		return false, err
	}
	if response.Healthy == nil {
		return false, o.wrap(nilFieldError("healthy"))
	}
	return *response.Healthy, nil
}

// Dependencies implements interpreter.Operations. A missing field counts as an empty list, because encoders
// omit empty lists.
func (o *operation) Dependencies(
	ctx context.Context, template *unstructured.Unstructured,
) ([]configv1alpha1.DependentObjectReference, error) {
	response, err := o.askAbout(ctx, template)
	if err != nil {
		return nil, err
	}
	// Package interpreter validates all dependencies again, but its error cannot name the webhook.
	if err := interpreter.ValidateDependencies(response.Dependencies); err != nil {
		return nil, o.wrap(fmt.Errorf("webhook returned response.dependencies: %w", err))
	}
	return response.Dependencies, nil
}
