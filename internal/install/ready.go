package install

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/kubectl/pkg/util/podutils"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/domain/podfailure"
)

const (
	readyPollInterval = 500 * time.Millisecond
	// describeTimeout limits the requests that explain why Pods are not ready.
	describeTimeout = 10 * time.Second
)

// NotReadyError means that a workload's Pods did not become ready in time.
type NotReadyError struct {
	// Workload is the workload's kind, namespace and name.
	Workload string
	Timeout  time.Duration
	Reason   string
}

// Error implements error.
func (n *NotReadyError) Error() string {
	return fmt.Sprintf("%s is not ready after %s: %s", n.Workload, n.Timeout, n.Reason)
}

// IsWorkload reports whether AwaitReady can wait for the object's Pods.
func IsWorkload(object client.Object) bool {
	kind := object.GetObjectKind().GroupVersionKind().Kind
	return kind == "Deployment" || kind == "StatefulSet"
}

// IsReady reports whether all replicas of a Deployment or StatefulSet run the current template and are
// available.
func IsReady(workload *unstructured.Unstructured) bool {
	result, err := status.Compute(workload)
	return err == nil && result.Status == status.CurrentStatus
}

// AwaitReady waits until a Deployment or StatefulSet is ready. A timeout of 0 means no time limit. After the
// timeout, it returns a NotReadyError that names each Pod that is not ready. It returns a MissingImageError
// as soon as a new Pod cannot pull its image, and a CrashError as soon as a container has crashed twice with
// the same error.
func AwaitReady(ctx context.Context, host client.Client, workload client.Object, timeout time.Duration) error {
	kind, err := host.GroupVersionKindFor(workload)
	if err != nil {
		return fmt.Errorf("waiting for the Pods of %s: %w", workload.GetName(), err)
	}
	current := &unstructured.Unstructured{}
	current.SetGroupVersionKind(kind)
	current.SetNamespace(workload.GetNamespace())
	current.SetName(workload.GetName())
	name, lastErr, began, crashes := Describe(current), error(nil), time.Now(), crashLog{}
	limited, cancel := ctx, context.CancelFunc(func() {})
	if timeout > 0 {
		limited, cancel = context.WithTimeout(ctx, timeout)
	}
	defer cancel()
	err = wait.PollUntilContextCancel(limited, readyPollInterval, true, func(ctx context.Context) (bool, error) {
		if lastErr = host.Get(ctx, client.ObjectKeyFromObject(workload), current); lastErr != nil {
			return false, nil //nolint:nilerr // the wait continues
		}
		if IsReady(current) {
			return true, nil
		}
		pods, err := listWorkloadPods(ctx, host, current)
		if err != nil {
			return false, nil //nolint:nilerr // the wait continues
		}
		return false, cmp.Or(findMissingImage(name, pods, began), crashes.findRepeated(name, pods))
	})
	switch {
	case !wait.Interrupted(err):
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("waiting for %s: %w", name, ctx.Err())
	case current.GetUID() == "" && lastErr != nil:
		return fmt.Errorf("reading %s: %w", name, lastErr)
	}
	return &NotReadyError{Workload: name, Timeout: timeout, Reason: describePods(ctx, host, current)}
}

func listWorkloadPods(ctx context.Context, host client.Client, workload *unstructured.Unstructured) ([]corev1.Pod, error) {
	labels, _, err := unstructured.NestedStringMap(workload.Object, "spec", "selector", "matchLabels")
	if err != nil {
		return nil, fmt.Errorf("reading the selector of %s: %w", Describe(workload), err)
	}
	return ListPods(ctx, host, workload.GetNamespace(), labels)
}

// MissingImageError means that the nodes cannot pull a workload's image.
type MissingImageError struct{ Workload, Cause string }

// Error implements error.
func (m *MissingImageError) Error() string {
	return fmt.Sprintf("%s: %s: build the image and mirror it to a registry that the nodes reach, or load it into the nodes, as docs/image.md describes, and name the registry with --private-image-registry", m.Workload, m.Cause)
}

// findMissingImage returns a MissingImageError if a Pod created after the given time cannot pull its image.
// It ignores older Pods, because the image may have been mirrored since their last attempt.
func findMissingImage(workload string, pods []corev1.Pod, began time.Time) error {
	for i := range pods {
		failure, failed := podfailure.MostCommon(pods[i : i+1])
		// Creation timestamps have no fractions of a second.
		if failed && failure.Reason == podfailure.ImagePullBackOff && !pods[i].CreationTimestamp.Time.Before(began.Truncate(time.Second)) {
			return &MissingImageError{Workload: workload, Cause: failure.Message}
		}
	}
	return nil
}

// describePods explains why a workload's Pods are not ready.
func describePods(ctx context.Context, host client.Client, workload *unstructured.Unstructured) string {
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	pods, err := listWorkloadPods(ctx, host, workload)
	if err != nil {
		return err.Error()
	}
	return notReadyReason(workload, pods, lastWarnings(ctx, host, workload.GetNamespace()))
}

// lastWarnings returns the message of each object's latest warning event in the namespace, by object name.
// It returns nil if events cannot be listed, because they only add details.
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

// notReadyReason explains why a workload's Pods are not ready. warnings are event messages by object name.
func notReadyReason(workload *unstructured.Unstructured, pods []corev1.Pod, warnings map[string]string) string {
	var reasons []string
	for i := range pods {
		pod := &pods[i]
		if podutils.IsPodReady(pod) || pod.DeletionTimestamp != nil {
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
	if described, err := status.GetObjectWithConditions(workload.Object); err == nil {
		for _, condition := range described.Status.Conditions {
			if condition.Type == string(appsv1.DeploymentReplicaFailure) && condition.Status == corev1.ConditionTrue {
				reasons = append(reasons, condition.Message)
			}
		}
	}
	switch {
	case len(reasons) > 0:
		return strings.Join(reasons, "; ")
	case len(pods) > 0:
		return "its Pods are ready, but not available yet"
	case warnings[workload.GetName()] != "":
		return "it has no Pods: " + warnings[workload.GetName()]
	default:
		return "it has no Pods: check that kube-controller-manager of the host runs"
	}
}

// ListPods returns the Pods with the given labels.
func ListPods(ctx context.Context, host client.Client, namespace string, labels map[string]string) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := host.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels(labels)); err != nil {
		return nil, fmt.Errorf("listing Pods in namespace %s of the host: %w", namespace, err)
	}
	return pods.Items, nil
}
