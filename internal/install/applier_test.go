package install

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// testWorkload is a Deployment with a Secret and a Service.
type testWorkload struct {
	image    string
	replicas int32
	secret   []byte
}

func newTestWorkload() testWorkload {
	return testWorkload{image: "program:v1", replicas: 2, secret: []byte("a")}
}

// objects returns the workload's objects, in the order in which they are created.
func (w testWorkload) objects() []client.Object {
	meta := metav1.ObjectMeta{Namespace: "karmada-system", Name: "program"}
	labels := map[string]string{"app": "program"}
	return []client.Object{
		NewSecret("karmada-system", "program-config", map[string][]byte{"config": w.secret}),
		&corev1.Service{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: meta, Spec: corev1.ServiceSpec{Selector: labels}},
		&appsv1.Deployment{
			TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: meta,
			Spec: appsv1.DeploymentSpec{
				Replicas: &w.replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{"secret": string(w.secret)}},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "program", Image: w.image}}},
				},
			},
		},
	}
}

// newTestApplier returns an applier for a fake cluster with objects. reported contains its messages.
func newTestApplier(existing ...client.Object) (applier Applier, reported *[]string) {
	reported = &[]string{}
	return Applier{
		API: fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(existing...).Build(), Installer: "test", Cluster: "the host",
		Progressf: func(format string, args ...any) {
			text := []string{}
			for _, arg := range args {
				text = append(text, arg.(string))
			}
			*reported = append(*reported, strings.Join(text, " "))
		},
	}, reported
}

func mustApply(t *testing.T, applier Applier, objects ...client.Object) int {
	t.Helper()
	written, err := applier.Apply(t.Context(), objects...)
	if err != nil {
		t.Fatal(err)
	}
	return written
}

func TestSecondApplyWritesNothing(t *testing.T) {
	applier, _ := newTestApplier()
	if written := mustApply(t, applier, newTestWorkload().objects()...); written != 3 {
		t.Errorf("%d objects are written first, want 3", written)
	}
	if written := mustApply(t, applier, newTestWorkload().objects()...); written != 0 {
		t.Errorf("%d objects are written again", written)
	}
}

func TestOnlyDifferencesAreWritten(t *testing.T) {
	tests := map[string]struct {
		change func(*testWorkload)
		want   []string
	}{
		"another image changes the Deployment":                  {func(w *testWorkload) { w.image = "program:v2" }, []string{"Deployment"}},
		"fewer replicas change the Deployment":                  {func(w *testWorkload) { w.replicas = 1 }, []string{"Deployment"}},
		"another file changes the Secret and restarts the Pods": {func(w *testWorkload) { w.secret = []byte("b") }, []string{"Secret", "Deployment"}},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			applier, reported := newTestApplier()
			mustApply(t, applier, newTestWorkload().objects()...)
			*reported = nil
			changed := newTestWorkload()
			test.change(&changed)
			mustApply(t, applier, changed.objects()...)
			var kinds []string
			for _, text := range *reported {
				kind, _, _ := strings.Cut(text, " ")
				kinds = append(kinds, kind)
			}
			if diff := cmp.Diff(test.want, kinds); diff != "" {
				t.Errorf("changed kinds (-want +got):\n%s", diff)
			}
		})
	}
}

func TestObjectsOfOthersAreKept(t *testing.T) {
	foreign := NewSecret("karmada-system", "program-config", nil)
	foreign.Labels = map[string]string{clusterv1alpha1.InstalledByLabel: "a chart"}
	applier, reported := newTestApplier(foreign)
	_, err := applier.Apply(t.Context(), newTestWorkload().objects()...)
	if other := (*ForeignError)(nil); !errors.As(err, &other) || !strings.Contains(err.Error(), "Secret karmada-system/program-config in the host was installed by a chart") {
		t.Errorf("error %v", err)
	}
	if err := applier.VerifyOwner(t.Context(), newTestWorkload().objects()[0]); err == nil {
		t.Error("the owner is not checked")
	}
	if err := applier.Delete(t.Context(), newTestWorkload().objects()...); err != nil {
		t.Fatal(err)
	}
	if err := applier.API.Get(t.Context(), client.ObjectKeyFromObject(foreign), &corev1.Secret{}); err != nil {
		t.Errorf("the Secret of another installer is gone: %v", err)
	}
	if len(*reported) != 1 || !strings.Contains((*reported)[0], "program-config") {
		t.Errorf("reported %q", *reported)
	}
}

func TestDeleteRemovesInstalledObjects(t *testing.T) {
	applier, _ := newTestApplier()
	mustApply(t, applier, newTestWorkload().objects()...)
	for range 2 { // the second time, nothing exists
		if err := applier.Delete(t.Context(), newTestWorkload().objects()...); err != nil {
			t.Fatal(err)
		}
	}
	deployments := &appsv1.DeploymentList{}
	if err := applier.API.List(t.Context(), deployments); err != nil || len(deployments.Items) > 0 {
		t.Errorf("%d Deployments remain: %v", len(deployments.Items), err)
	}
}

func TestNotReadyReason(t *testing.T) {
	waiting := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p1"}, Status: corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{
		{Name: "c", Image: "i", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}},
	}}}
	ready := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p2"}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
	tests := map[string]struct {
		conditions []any
		pods       []corev1.Pod
		warnings   map[string]string
		want       string
	}{
		"a Pod that waits is named":            {pods: []corev1.Pod{ready, waiting}, want: "Pod p1: ImagePullBackOff: container c cannot get image i"},
		"the phase of a Pod without a failure": {pods: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "p3"}, Status: corev1.PodStatus{Phase: corev1.PodPending}}}, want: "Pod p3: its phase is Pending"},
		"Pods that are ready":                  {pods: []corev1.Pod{ready}, want: "not available yet"},
		"a Pod whose probe fails": {
			pods:     []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "p3"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}},
			warnings: map[string]string{"p3": "Readiness probe failed"}, want: "Pod p3: its phase is Running: Readiness probe failed",
		},
		"Pods that admission rejects": {warnings: map[string]string{"etcd": "create Pod etcd-0: forbidden", "other": "x"}, want: "it has no Pods: create Pod etcd-0: forbidden"},
		"no Pods":                     {want: "check that kube-controller-manager"},
		"Pods that cannot be created": {conditions: []any{
			map[string]any{"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"},
		}, want: "exceeded quota"},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			workload := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "etcd"}, "status": map[string]any{"conditions": test.conditions}}}
			if got := notReadyReason(workload, test.pods, test.warnings); !strings.Contains(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func TestAwaitReadyIsBounded(t *testing.T) {
	applier, _ := newTestApplier()
	mustApply(t, applier, newTestWorkload().objects()...)
	key := client.ObjectKey{Namespace: "karmada-system", Name: "program"}
	var late *NotReadyError
	if err := AwaitReady(t.Context(), applier.API, newDeployment(key), time.Millisecond); !errors.As(err, &late) {
		t.Errorf("error %v", err)
	}
	deployment := &appsv1.Deployment{}
	if err := applier.API.Get(t.Context(), key, deployment); err != nil {
		t.Fatal(err)
	}
	deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: deployment.Generation, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2, Conditions: []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
	}}
	if err := applier.API.Status().Update(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	if err := AwaitReady(t.Context(), applier.API, newDeployment(key), time.Minute); err != nil {
		t.Error(err)
	}
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	if err := AwaitReady(interrupted, applier.API, newDeployment(client.ObjectKey{Name: "missing"}), time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("after an interrupt: %v", err)
	}
}

func newDeployment(key client.ObjectKey) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
}

func TestMissingImageEndsWait(t *testing.T) {
	labels := map[string]string{"app": "program"}
	workload := func() *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: "program"},
			Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}},
		}
	}
	pod := func(created time.Time) *corev1.Pod {
		waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: "program-1", Labels: labels, CreationTimestamp: metav1.NewTime(created)},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "mirror/karmada:v1"}}},
			Status:     corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{Name: "c", State: waiting}}},
		}
	}
	tests := map[string]struct {
		created time.Time
		want    string
	}{
		"a new Pod ends the wait at once":                      {time.Now().Add(time.Minute), "container c cannot get image mirror/karmada:v1: build the image and mirror it"},
		"a Pod of an earlier run may get its image in the end": {time.Now().Add(-time.Minute), "is not ready after 10ms: Pod program-1: ImagePullBackOff"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			host := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(workload(), pod(test.created)).Build()
			err := AwaitReady(t.Context(), host, workload(), 10*time.Millisecond)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestRepeatedCrashEndsWait(t *testing.T) {
	const line = "unknown flag: --no-such-flag"
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-system", Name: "p1", UID: "1"}}
	crash := func(count int32, message string) []corev1.Pod {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "c", RestartCount: count, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "usage\n" + message}},
		}}
		return []corev1.Pod{pod}
	}
	crashes := crashLog{}
	for _, pods := range [][]corev1.Pod{crash(1, line), crash(1, line), crash(2, "another error")} {
		if err := crashes.findRepeated("Deployment x", pods); err != nil {
			t.Fatalf("the wait ended: %v", err)
		}
	}
	const want = "another error (Pod p1, exit code 1; the whole log: kubectl --namespace karmada-system logs p1 --container c --previous): Deployment x crashed twice with this error"
	if err := crashes.findRepeated("Deployment x", crash(3, "another error")); err == nil || err.Error() != want {
		t.Errorf("error %v", err)
	}
	if got := notReadyReason(&unstructured.Unstructured{}, crash(3, line), nil); !strings.HasPrefix(got, line) {
		t.Errorf("the reason does not begin with the last line of the log: %s", got)
	}
}
