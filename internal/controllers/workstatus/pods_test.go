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
	"karmada.io/karmada/internal/domain/podfailure"
	"karmada.io/karmada/internal/loop"
)

// memberWithPods is a member with Pods.
type memberWithPods struct {
	fakeMember
	pods client.Client
}

func (m memberWithPods) Client() client.Client { return m.pods }

func newPod(app, name string, phase corev1.PodPhase, waiting *corev1.ContainerStateWaiting) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx:nope"}}},
		Status: corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{{
			Name: "main", State: corev1.ContainerState{Waiting: waiting},
		}}},
	}
}

func newMemberWithPods(t *testing.T, pods ...client.Object) memberWithPods {
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
	return memberWithPods{pods: fake.NewClientBuilder().WithScheme(scheme).WithObjects(pods...).WithIndex(&corev1.Pod{}, "status.phase", phase).
		WithIndex(&corev1.Event{}, "involvedObject.uid", involved).WithIndex(&corev1.Event{}, "reason", reason).Build()}
}

func newWorkload(kind string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": kind, "metadata": map[string]any{"namespace": "shop", "name": "web", "uid": "web"},
		"spec": map[string]any{"replicas": int64(1), "selector": map[string]any{"matchLabels": map[string]any{"app": "web"}}},
	}}
}

func TestPodFailuresOfUnhealthyWorkloadsAreReported(t *testing.T) {
	missing := newPod("web", "web-1", corev1.PodPending, &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"})
	crashing := newPod("web", "web-2", corev1.PodRunning, &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"})
	foreign := newPod("other", "other-1", corev1.PodPending, &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"})
	refused := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web.1"}, Reason: podfailure.FailedCreate, Message: "exceeded quota",
		LastTimestamp: metav1.NewTime(time.Unix(0, 0)),
	}
	const quota = `{"conditions":[{"message":"exceeded quota","reason":"FailedCreate","status":"True","type":"PodFailure"}],"replicas":1}`
	const image = `{"conditions":[{"message":"container main cannot get image nginx:nope","reason":"ImagePullBackOff","status":"True","type":"PodFailure"}],"replicas":1}`
	tests := map[string]struct {
		observed     *unstructured.Unstructured
		health       workv1alpha1.ResourceHealth
		pods         []client.Object
		want         string
		requeueAfter time.Duration
	}{
		"a missing image":               {newWorkload("Deployment"), "Unhealthy", []client.Object{missing, crashing}, image, 2 * firstPodCheckDelay},
		"a crashing container":          {newWorkload("StatefulSet"), "Unhealthy", []client.Object{crashing}, `{"conditions":[{"message":"container main does not stay up","reason":"CrashLoopBackOff","status":"True","type":"PodFailure"}],"replicas":1}`, 2 * firstPodCheckDelay},
		"Pods rejected by a quota":      {newWorkload("StatefulSet"), "Unhealthy", []client.Object{refused}, quota, 2 * firstPodCheckDelay},
		"Pods of another workload":      {newWorkload("DaemonSet"), "Unhealthy", []client.Object{foreign}, `{"replicas":1}`, 2 * firstPodCheckDelay},
		"a healthy workload":            {newWorkload("Deployment"), "Healthy", []client.Object{missing}, `{"replicas":1}`, 0},
		"a kind without Pods":           {&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Service"}}, "Unhealthy", []client.Object{missing}, `{"replicas":1}`, 0},
		"a workload without a selector": {&unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}}, "Unhealthy", []client.Object{missing}, `{"replicas":1}`, 2 * firstPodCheckDelay},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(0, 0)
			c := &controller{reports: loop.NewStatusWriter(nil, nil, loop.StatusWriterOptions{Workers: 1}), podChecks: newPodCheckSchedule(func() time.Time { return now })}
			stored := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: "web"}}
			runPass := func() (string, time.Duration) {
				entry := &workv1alpha1.ManifestStatus{Health: tc.health, Status: &runtime.RawExtension{Raw: []byte(`{"replicas":1}`)}}
				requeueAfter := c.addPodFailure(t.Context(), newMemberWithPods(t, tc.pods...), stored, tc.observed, entry)
				return string(entry.Status.Raw), requeueAfter
			}
			if early, requeueAfter := runPass(); early != `{"replicas":1}` || requeueAfter != 0 && requeueAfter != firstPodCheckDelay {
				t.Errorf("before the first check: %s, requeue after %s", early, requeueAfter)
			}
			now = now.Add(firstPodCheckDelay)
			got, requeueAfter := runPass()
			if diff := cmp.Diff(tc.want, got); diff != "" || requeueAfter != tc.requeueAfter {
				t.Errorf("requeue after %s, status (-want +got):\n%s", requeueAfter, diff)
			}
			if after, _ := runPass(); after != got {
				t.Errorf("before the next read the status is %s", after)
			}
		})
	}
}

func TestPodChecksAreRateLimited(t *testing.T) {
	now := time.Unix(0, 0)
	checks := newPodCheckSchedule(func() time.Time { return now })
	web := workloadKey{identifier: workv1alpha1.ResourceIdentifier{Name: "web"}}
	stored := &podfailure.Failure{Reason: "Unschedulable"}
	check, wait := checks.nextCheck(web, stored)
	if check.failure != stored || wait != firstPodCheckDelay {
		t.Fatalf("after a start: %+v, wait %s", check, wait)
	}
	var intervals []time.Duration
	for range 7 {
		now = now.Add(wait)
		if check, wait = checks.nextCheck(web, nil); wait != 0 {
			t.Fatalf("the check is not due for %s", wait)
		}
		wait = checks.recordCheck(web, check)
		intervals = append(intervals, wait/time.Second)
	}
	if diff := cmp.Diff([]time.Duration{20, 40, 80, 160, 300, 300, 300}, intervals); diff != "" {
		t.Errorf("intervals in seconds (-want +got):\n%s", diff)
	}
	checks.remove(web)
	if check, wait := checks.nextCheck(web, nil); check.failure != nil || wait != firstPodCheckDelay {
		t.Errorf("after the workload was healthy: %+v, wait %s", check, wait)
	}
}

func TestDueWorkloadsWaitForTheirTurn(t *testing.T) {
	now := time.Unix(0, 0)
	checks := newPodCheckSchedule(func() time.Time { return now })
	const workloads = 2000
	key := func(i int) workloadKey {
		return workloadKey{identifier: workv1alpha1.ResourceIdentifier{Name: fmt.Sprint(i)}}
	}
	for i := range workloads {
		checks.nextCheck(key(i), nil)
	}
	now = now.Add(firstPodCheckDelay)
	started, waits := now, make([]time.Duration, workloads)
	for i := range workloads {
		if _, waits[i] = checks.nextCheck(key(i), nil); waits[i] > workloads*time.Second/podChecksPerSecond {
			t.Fatalf("workload %d waits for %s", i, waits[i])
		}
	}
	if waits[podChecksPerSecond-1] != 0 || waits[podChecksPerSecond] == 0 {
		t.Errorf("the first delays are %s, want %d reads at once", waits[:2*podChecksPerSecond], podChecksPerSecond)
	}
	if last := waits[workloads-1]; last < (workloads-podChecksPerSecond)*time.Second/podChecksPerSecond-time.Second {
		t.Errorf("the last workload waits for %s only, so its Work needs many passes until its turn", last)
	}
	for i, wait := range waits {
		now = started.Add(wait)
		check, again := checks.nextCheck(key(i), nil)
		if again != 0 {
			t.Fatalf("workload %d waits for %s after its turn came", i, again)
		}
		checks.recordCheck(key(i), check)
	}
}
