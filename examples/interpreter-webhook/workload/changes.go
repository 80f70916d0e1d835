package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"karmada.io/karmada/pkg/webhook/interpreter"
)

// changing returns the patch for the changes that edit makes to the object of the request. The object
// is unstructured, so that the patch does not touch fields that this program does not know.
func changing(request interpreter.Request, edit func(object map[string]any) error) interpreter.Response {
	object := &unstructured.Unstructured{}
	if err := request.Decode(object); err != nil {
		return interpreter.Errored(http.StatusBadRequest, err)
	}
	if err := edit(object.Object); err != nil {
		return interpreter.Errored(http.StatusUnprocessableEntity, err)
	}
	current, err := json.Marshal(object)
	if err != nil {
		return interpreter.Errored(http.StatusInternalServerError, fmt.Errorf("encoding the object: %w", err))
	}
	return interpreter.PatchResponseFromRaw(request.Object.Raw, current)
}

func reviseReplica(_ context.Context, request interpreter.Request) interpreter.Response {
	return changing(request, func(object map[string]any) error {
		if request.DesiredReplicas == nil {
			return errors.New("the request has no replicas")
		}
		return unstructured.SetNestedField(object, int64(*request.DesiredReplicas), "spec", "replicas")
	})
}

// retain keeps spec.paused of the cluster, so that a user can pause a Workload in one cluster.
func retain(_ context.Context, request interpreter.Request) interpreter.Response {
	return changing(request, func(object map[string]any) error {
		observed := &unstructured.Unstructured{}
		if err := request.DecodeObserved(observed); err != nil {
			return err
		}
		paused, found, err := unstructured.NestedBool(observed.Object, "spec", "paused")
		if err != nil || !found {
			return err
		}
		return unstructured.SetNestedField(object, paused, "spec", "paused")
	})
}

// aggregateStatus sets the number of ready replicas to the sum of all clusters.
func aggregateStatus(_ context.Context, request interpreter.Request) interpreter.Response {
	return changing(request, func(object map[string]any) error {
		var sum int64
		for i := range request.AggregatedStatus {
			item := &request.AggregatedStatus[i]
			if item.Status == nil {
				continue
			}
			var collected status
			if err := json.Unmarshal(item.Status.Raw, &collected); err != nil {
				return fmt.Errorf("decoding the status of cluster %s: %w", item.ClusterName, err)
			}
			sum += collected.ReadyReplicas
		}
		return unstructured.SetNestedField(object, sum, "status", "readyReplicas")
	})
}
