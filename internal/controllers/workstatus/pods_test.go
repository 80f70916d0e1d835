package workstatus

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/access/report"
	"karmada.io/karmada/internal/domain/podfailure"
)

// withPods is a member that holds Pods.
type withPods struct {
	shelf
	pods client.Client
}

func (w withPods) Client() client.Client { return w.pods }

func podOf(app, name string, phase corev1.PodPhase, waiting *corev1.ContainerStateWaiting) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx:nope"}}},
		Status: corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "main", State: corev1.ContainerState{Waiting: waiting},
		}}},
	}
}

func memberWith(t *testing.T, pods ...client.Object) withPods {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	phase := func(object client.Object) []string {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return nil
		}
		phase, _, _ := unstructured.NestedString(fields, "status", "phase")
		return []string{phase}
	}
	involved := func(client.Object) []string { return []string{"web"} }
	reason := func(client.Object) []string { return []string{podfailure.FailedCreate} }
	return withPods{pods: fake.NewClientBuilder().WithScheme(scheme).WithObjects(pods...).WithIndex(&corev1.Pod{}, "status.phase", phase).
		WithIndex(&corev1.Event{}, "involvedObject.uid", involved).WithIndex(&corev1.Event{}, "reason", reason).Build()}
}

func workload(kind string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": kind, "metadata": map[string]any{"namespace": "shop", "name": "web", "uid": "web"},
		"spec": map[string]any{"replicas": int64(1), "selector": map[string]any{"matchLabels": map[string]any{"app": "web"}}},
	}}
}

func TestPodsOfAWorkloadThatStaysUnhealthyAreRead(t *testing.T) {
	missing := podOf("web", "web-1", corev1.PodPending, &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"})
	crashing := podOf("web", "web-2", corev1.PodRunning, &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"})
	foreign := podOf("other", "other-1", corev1.PodPending, &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"})
	refused := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web.1"}, Reason: podfailure.FailedCreate, Message: "exceeded quota",
		LastTimestamp: metav1.NewTime(time.Unix(0, 0)),
	}
	const quota = `{"conditions":[{"message":"exceeded quota","reason":"FailedCreate","status":"True","type":"PodFailure"}],"replicas":1}`
	const image = `{"conditions":[{"message":"container main cannot get image nginx:nope","reason":"ImagePullBackOff","status":"True","type":"PodFailure"}],"replicas":1}`
	tests := map[string]struct {
		observed *unstructured.Unstructured
		health   workv1alpha1.ResourceHealth
		pods     []client.Object
		want     string
		again    time.Duration
	}{
		"an image that is not there":         {workload("Deployment"), "Unhealthy", []client.Object{missing, crashing}, image, 2 * firstPodCheck},
		"a container that does not stay up":  {workload("StatefulSet"), "Unhealthy", []client.Object{crashing}, `{"conditions":[{"message":"container main does not stay up","reason":"CrashLoopBackOff","status":"True","type":"PodFailure"}],"replicas":1}`, 2 * firstPodCheck},
		"Pods that a quota refuses":          {workload("StatefulSet"), "Unhealthy", []client.Object{refused}, quota, 2 * firstPodCheck},
		"Pods of another workload":           {workload("DaemonSet"), "Unhealthy", []client.Object{foreign}, `{"replicas":1}`, 2 * firstPodCheck},
		"a healthy workload":                 {workload("Deployment"), "Healthy", []client.Object{missing}, `{"replicas":1}`, 0},
		"a kind whose status is not known":   {&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Service"}}, "Unhealthy", []client.Object{missing}, `{"replicas":1}`, 0},
		"a workload that selects everything": {&unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}}, "Unhealthy", []client.Object{missing}, `{"replicas":1}`, 2 * firstPodCheck},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(0, 0)
			c := &controller{reports: report.NewWorks(nil, report.Options{Workers: 1}), pods: newPodChecks(func() time.Time { return now })}
			stored := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: "web"}}
			look := func() (string, time.Duration) {
				entry := &workv1alpha1.ManifestStatus{Health: tc.health, Status: &runtime.RawExtension{Raw: []byte(`{"replicas":1}`)}}
				again := c.explain(t.Context(), memberWith(t, tc.pods...), stored, tc.observed, entry)
				return string(entry.Status.Raw), again
			}
			if early, again := look(); early != `{"replicas":1}` || again != 0 && again != firstPodCheck {
				t.Errorf("at once: %s, again after %s", early, again)
			}
			now = now.Add(firstPodCheck)
			got, again := look()
			if diff := cmp.Diff(tc.want, got); diff != "" || again != tc.again {
				t.Errorf("again after %s, status (-want +got):\n%s", again, diff)
			}
			if after, _ := look(); after != got {
				t.Errorf("before the next read it says %s", after)
			}
		})
	}
}

func TestPodsAreReadSeldom(t *testing.T) {
	now := time.Unix(0, 0)
	checks := newPodChecks(func() time.Time { return now })
	web := podSubject{identifier: workv1alpha1.ResourceIdentifier{Name: "web"}}
	stored := &podfailure.Failure{Reason: "Unschedulable"}
	check, wait := checks.check(web, stored)
	if check.failure != stored || wait != firstPodCheck {
		t.Fatalf("after a start: %+v, wait %s", check, wait)
	}
	var pauses []time.Duration
	for range 7 {
		now = now.Add(wait)
		if check, wait = checks.check(web, nil); wait != 0 {
			t.Fatalf("not due: %s", wait)
		}
		wait = checks.found(web, check)
		pauses = append(pauses, wait/time.Second)
	}
	if diff := cmp.Diff([]time.Duration{20, 40, 80, 160, 300, 300, 300}, pauses); diff != "" {
		t.Errorf("pauses in seconds (-want +got):\n%s", diff)
	}
	checks.forget(web)
	if check, wait := checks.check(web, nil); check.failure != nil || wait != firstPodCheck {
		t.Errorf("after it was healthy: %+v, wait %s", check, wait)
	}

	due := 0
	for i := range 2 * podChecksPerSecond {
		checks.check(podSubject{identifier: workv1alpha1.ResourceIdentifier{Name: fmt.Sprint(i)}}, nil)
	}
	now = now.Add(firstPodCheck)
	for i := range 2 * podChecksPerSecond {
		if _, wait := checks.check(podSubject{identifier: workv1alpha1.ResourceIdentifier{Name: fmt.Sprint(i)}}, nil); wait == 0 {
			due++
		}
	}
	if due != podChecksPerSecond {
		t.Errorf("%d workloads are read at once, want %d", due, podChecksPerSecond)
	}
}
