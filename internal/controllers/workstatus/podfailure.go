package workstatus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/domain/podfailure"
)

const (
	// listLimit is the maximum number of Pods or events of one workload in one list request.
	listLimit = 50
	// failedCreateMaxAge is the maximum age of an event about a rejected Pod that is used. It is
	// longer than the longest retry delay of controllers, which is 17 minutes, so that a workload
	// whose Pods are still rejected always has such an event.
	failedCreateMaxAge = 20 * time.Minute
)

var errEmptySelector = errors.New("an empty selector would select all Pods")

// readPodFailure reads the Pods of a workload and returns their failure, or nil if there is none.
// It reads first the pending Pods, then the running Pods, and then the events about Pods whose
// creation was rejected.
func readPodFailure(ctx context.Context, memberClient client.Reader, workload *unstructured.Unstructured,
	now time.Time) (*podfailure.Failure, error) {
	selector, err := podSelector(workload)
	if err != nil {
		return nil, err
	}
	for _, phase := range []corev1.PodPhase{corev1.PodPending, corev1.PodRunning} {
		pods, err := listObjects[corev1.Pod](ctx, memberClient, workload.GetNamespace(),
			client.MatchingLabelsSelector{Selector: selector}, client.MatchingFields{"status.phase": string(phase)})
		if err != nil {
			return nil, err
		}
		if failure, ok := podfailure.MostCommon(pods); ok {
			return &failure, nil
		}
	}
	if !podfailure.LacksPods(workload) {
		return nil, nil
	}
	return readFailedCreate(ctx, memberClient, workload, now)
}

func readFailedCreate(ctx context.Context, memberClient client.Reader, workload *unstructured.Unstructured,
	now time.Time) (*podfailure.Failure, error) {
	events, err := listObjects[corev1.Event](ctx, memberClient, workload.GetNamespace(),
		client.MatchingFields{"involvedObject.uid": string(workload.GetUID()), "reason": podfailure.FailedCreate})
	if err != nil {
		return nil, err
	}
	if failure, ok := podfailure.FromEvents(events, now.Add(-failedCreateMaxAge)); ok {
		return &failure, nil
	}
	return nil, nil
}

func podSelector(workload *unstructured.Unstructured) (labels.Selector, error) {
	raw, found, err := unstructured.NestedMap(workload.Object, "spec", "selector")
	if err != nil || !found || len(raw) == 0 {
		return nil, fmt.Errorf("%s has no spec.selector: %w", workload.GetKind(), cmp.Or(err, errEmptySelector))
	}
	var selector metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &selector); err != nil {
		return nil, fmt.Errorf("reading spec.selector: %w", err)
	}
	parsed, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		return nil, fmt.Errorf("reading spec.selector: %w", err)
	}
	return parsed, nil
}

// listObjects lists Pods or events of a namespace. It lists unstructured objects and converts them,
// because clients of members support only unstructured objects.
func listObjects[T corev1.Pod | corev1.Event](
	ctx context.Context, memberClient client.Reader, namespace string, options ...client.ListOption,
) ([]T, error) {
	kind := podOrEventKind(new(T))
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	options = append(options, client.InNamespace(namespace), client.Limit(listLimit))
	if err := memberClient.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("listing objects of kind %s in namespace %s: %w", kind.Kind, namespace, err)
	}
	objects := make([]T, len(list.Items))
	for i := range list.Items {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &objects[i]); err != nil {
			return nil, fmt.Errorf("reading %s %q: %w", kind.Kind, list.Items[i].GetName(), err)
		}
	}
	return objects, nil
}

func podOrEventKind(object any) schema.GroupVersionKind {
	if _, ok := object.(*corev1.Event); ok {
		return corev1.SchemeGroupVersion.WithKind("Event")
	}
	return corev1.SchemeGroupVersion.WithKind("Pod")
}
