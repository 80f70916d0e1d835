package hosted

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/domain/podfailure"
)

const (
	readyPollInterval = 500 * time.Millisecond
	// describeTimeout limits the time for reading why Pods are not ready.
	describeTimeout = 10 * time.Second
)

// NotReadyError means that Pods of a workload are not ready in time.
type NotReadyError struct {
	// Workload is the kind, namespace and name of the workload.
	Workload string
	Timeout  time.Duration
	Reason   string
}

// Error implements error.
func (n *NotReadyError) Error() string {
	return fmt.Sprintf("%s is not ready after %s: %s", n.Workload, n.Timeout, n.Reason)
}

// rollout is the state of a workload.
type rollout struct {
	// done means that all replicas are available and have the current template.
	done       bool
	selector   *metav1.LabelSelector
	conditions []appsv1.DeploymentCondition
}

// NewWorkload returns an empty Deployment or StatefulSet with a key, which AwaitReady reads.
func NewWorkload(kind string, key client.ObjectKey) (client.Object, error) {
	meta := metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}
	switch kind {
	case deploymentKind:
		return &appsv1.Deployment{TypeMeta: metav1.TypeMeta{Kind: kind}, ObjectMeta: meta}, nil
	case statefulSetKind:
		return &appsv1.StatefulSet{TypeMeta: metav1.TypeMeta{Kind: kind}, ObjectMeta: meta}, nil
	}
	return nil, fmt.Errorf("%s %s is no workload", kind, key)
}

// IsWorkload reports whether an object has Pods that AwaitReady can wait for.
func IsWorkload(object client.Object) bool {
	_, err := NewWorkload(object.GetObjectKind().GroupVersionKind().Kind, client.ObjectKey{})
	return err == nil
}

const (
	deploymentKind  = "Deployment"
	statefulSetKind = "StatefulSet"
)

// readRollout returns the state of a Deployment or StatefulSet.
func readRollout(workload client.Object) rollout {
	switch w := workload.(type) {
	case *appsv1.Deployment:
		return rollout{done: IsRolledOut(w), selector: w.Spec.Selector, conditions: w.Status.Conditions}
	case *appsv1.StatefulSet:
		status, want := w.Status, wantedReplicas(w.Spec.Replicas)
		done := status.ObservedGeneration >= w.Generation && status.UpdatedReplicas == want && status.Replicas == want && status.AvailableReplicas == want
		return rollout{done: done, selector: w.Spec.Selector}
	}
	return rollout{}
}

// IsRolledOut reports whether all replicas of a Deployment are available and have its current
// template.
func IsRolledOut(deployment *appsv1.Deployment) bool {
	status, want := deployment.Status, wantedReplicas(deployment.Spec.Replicas)
	return status.ObservedGeneration >= deployment.Generation && status.UpdatedReplicas == want && status.Replicas == want && status.AvailableReplicas == want
}

func wantedReplicas(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}

// AwaitReady reads a Deployment or StatefulSet until it is rolled out; see NewWorkload. After the
// timeout, it returns a NotReadyError that names each Pod which is not ready. A timeout of 0 means
// no time limit. It returns a MissingImageError as soon as a new Pod cannot get its image, and a
// CrashError as soon as a container crashed twice with the same error.
func AwaitReady(ctx context.Context, host client.Client, workload client.Object, timeout time.Duration) error {
	name, lastErr, began, crashes := Describe(workload), error(nil), time.Now(), crashLog{}
	poll := func(ctx context.Context) (bool, error) {
		if lastErr = host.Get(ctx, client.ObjectKeyFromObject(workload), workload); lastErr != nil {
			return false, nil //nolint:nilerr // the wait continues
		}
		if readRollout(workload).done {
			return true, nil
		}
		pods, err := ListPods(ctx, host, workload.GetNamespace(), readRollout(workload).selector.MatchLabels)
		if err != nil {
			return false, nil //nolint:nilerr // the wait continues
		}
		return false, cmp.Or(checkImages(name, pods, began), crashes.findRepeated(name, pods))
	}
	var err error
	if timeout == 0 {
		err = wait.PollUntilContextCancel(ctx, readyPollInterval, true, poll)
	} else {
		err = wait.PollUntilContextTimeout(ctx, readyPollInterval, timeout, true, poll)
	}
	state := readRollout(workload)
	switch {
	case err == nil || errors.As(err, new(*MissingImageError)) || errors.As(err, new(*CrashError)):
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("waiting for %s: %w", name, ctx.Err())
	case state.selector == nil:
		return fmt.Errorf("reading %s: %w", name, lastErr)
	}
	return &NotReadyError{Workload: name, Timeout: timeout, Reason: describePods(ctx, host, workload, state)}
}

// MissingImageError means that the nodes cannot get the image of a workload.
type MissingImageError struct{ Workload, Cause string }

// Error implements error.
func (m *MissingImageError) Error() string {
	return fmt.Sprintf("%s: %s: build the image and mirror it to a registry that the nodes reach, or load it into the nodes, as docs/image.md describes, and name the registry with --private-image-registry", m.Workload, m.Cause)
}

// checkImages returns a MissingImageError if a Pod of the workload that is younger than began cannot
// get its image. An older Pod may be one of an earlier run, after which the image was mirrored.
func checkImages(workload string, pods []corev1.Pod, began time.Time) error {
	for i := range pods {
		failure, failed := podfailure.MostCommon(pods[i : i+1])
		// Times of creation have no fractions of a second.
		if failed && failure.Reason == podfailure.ImagePullBackOff && !pods[i].CreationTimestamp.Time.Before(began.Truncate(time.Second)) {
			return &MissingImageError{Workload: workload, Cause: failure.Message}
		}
	}
	return nil
}

// describePods returns the reasons why Pods of a workload are not ready.
func describePods(ctx context.Context, host client.Client, workload client.Object, state rollout) string {
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	pods, err := ListPods(ctx, host, workload.GetNamespace(), state.selector.MatchLabels)
	if err != nil {
		return err.Error()
	}
	return notReadyReason(workload.GetName(), state.conditions, pods, lastWarnings(ctx, host, workload.GetNamespace()))
}

// lastWarnings returns the message of the latest warning event of each object in a namespace, by the
// name of the object. It is empty if events cannot be read, because they only add details.
func lastWarnings(ctx context.Context, host client.Client, namespace string) map[string]string {
	events := &corev1.EventList{}
	if err := host.List(ctx, events, client.InNamespace(namespace)); err != nil {
		return nil
	}
	latest := map[string]*corev1.Event{}
	for i := range events.Items {
		event := &events.Items[i]
		known := latest[event.InvolvedObject.Name]
		if event.Type == corev1.EventTypeWarning && (known == nil || known.LastTimestamp.Before(&event.LastTimestamp)) {
			latest[event.InvolvedObject.Name] = event
		}
	}
	messages := make(map[string]string, len(latest))
	for name, event := range latest {
		messages[name] = event.Message
	}
	return messages
}

// notReadyReason returns the reasons why the Pods of a workload are not ready. warnings are messages
// of events by the name of the object.
func notReadyReason(workload string, conditions []appsv1.DeploymentCondition, pods []corev1.Pod, warnings map[string]string) string {
	var reasons []string
	for i := range pods {
		pod := &pods[i]
		if IsPodReady(pod) || pod.DeletionTimestamp != nil {
			continue
		}
		reason := fmt.Sprintf("its phase is %s", pod.Status.Phase)
		if crash := describeLastCrash(pod); crash != "" {
			reasons = append(reasons, crash)
			continue
		}
		if failure, ok := podfailure.MostCommon(pods[i : i+1]); ok {
			reason = failure.Reason + ": " + failure.Message
		} else if warning := warnings[pod.Name]; warning != "" {
			reason += ": " + warning
		}
		reasons = append(reasons, fmt.Sprintf("Pod %s: %s", pod.Name, reason))
	}
	for _, condition := range conditions {
		if condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
			reasons = append(reasons, condition.Message)
		}
	}
	switch {
	case len(reasons) > 0:
		return strings.Join(reasons, "; ")
	case len(pods) > 0:
		return "its Pods are ready, but not available yet"
	case warnings[workload] != "":
		return "it has no Pods: " + warnings[workload]
	default:
		return "it has no Pods: check that kube-controller-manager of the host runs"
	}
}

// IsPodReady reports whether the Pod has the condition Ready.
func IsPodReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// ListPods returns the Pods with labels.
func ListPods(ctx context.Context, host client.Client, namespace string, labels map[string]string) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := host.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels(labels)); err != nil {
		return nil, fmt.Errorf("listing Pods in namespace %s of the host: %w", namespace, err)
	}
	return pods.Items, nil
}
