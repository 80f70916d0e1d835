package hosted

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

func testEstimator() Estimator {
	return Estimator{Workload: Workload{Namespace: "karmada-system", Image: "estimator:v1", Replicas: 2, PriorityClass: "high"}, Cluster: "east", Kubeconfig: []byte("a")}
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
	if written := mustApply(t, applier, testEstimator().Objects()...); written != 3 {
		t.Errorf("%d objects are written first, want 3", written)
	}
	if written := mustApply(t, applier, testEstimator().Objects()...); written != 0 {
		t.Errorf("%d objects are written again", written)
	}
}

func TestOnlyDifferencesAreWritten(t *testing.T) {
	tests := map[string]struct {
		change func(*Estimator)
		want   []string
	}{
		"another image changes the Deployment":                        {func(e *Estimator) { e.Image = "estimator:v2" }, []string{"Deployment"}},
		"fewer replicas change the Deployment":                        {func(e *Estimator) { e.Replicas = 1 }, []string{"Deployment"}},
		"another kubeconfig changes the Secret and restarts the Pods": {func(e *Estimator) { e.Kubeconfig = []byte("b") }, []string{"Secret", "Deployment"}},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			applier, reported := newTestApplier()
			mustApply(t, applier, testEstimator().Objects()...)
			*reported = nil
			changed := testEstimator()
			test.change(&changed)
			mustApply(t, applier, changed.Objects()...)
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
	foreign := NewSecret("karmada-system", "east-kubeconfig", nil)
	foreign.Labels = map[string]string{clusterv1alpha1.InstalledByLabel: "a chart"}
	applier, reported := newTestApplier(foreign)
	_, err := applier.Apply(t.Context(), testEstimator().Objects()...)
	if other := (*ForeignError)(nil); !errors.As(err, &other) || !strings.Contains(err.Error(), "Secret karmada-system/east-kubeconfig in the host was installed by a chart") {
		t.Errorf("error %v", err)
	}
	if err := applier.CheckOwner(t.Context(), testEstimator().Objects()[0]); err == nil {
		t.Error("the owner is not checked")
	}
	if err := applier.Delete(t.Context(), testEstimator().Objects()...); err != nil {
		t.Fatal(err)
	}
	if err := applier.API.Get(t.Context(), client.ObjectKeyFromObject(foreign), &corev1.Secret{}); err != nil {
		t.Errorf("the Secret of another installer is gone: %v", err)
	}
	if len(*reported) != 1 || !strings.Contains((*reported)[0], "east-kubeconfig") {
		t.Errorf("reported %q", *reported)
	}
}

func TestDeleteRemovesInstalledObjects(t *testing.T) {
	applier, _ := newTestApplier()
	mustApply(t, applier, testEstimator().Objects()...)
	for range 2 { // the second time, nothing exists
		if err := applier.Delete(t.Context(), testEstimator().Objects()...); err != nil {
			t.Fatal(err)
		}
	}
	deployments := &appsv1.DeploymentList{}
	if err := applier.API.List(t.Context(), deployments); err != nil || len(deployments.Items) > 0 {
		t.Errorf("%d Deployments remain: %v", len(deployments.Items), err)
	}
}

func TestContains(t *testing.T) {
	tests := map[string]struct {
		existing, want any
		contained      bool
	}{
		"equal values":             {"a", "a", true},
		"other values":             {"a", "b", false},
		"further keys are allowed": {map[string]any{"a": int64(1), "b": int64(2)}, map[string]any{"a": int64(1)}, true},
		"a missing key":            {map[string]any{}, map[string]any{"a": int64(1)}, false},
		"an empty map is wanted":   {nil, map[string]any{}, true},
		"a longer list":            {[]any{"a", "b"}, []any{"a"}, false},
		"a list in another order":  {[]any{"b", "a"}, []any{"a", "b"}, false},
		"defaults in list items":   {[]any{map[string]any{"a": "1", "default": true}}, []any{map[string]any{"a": "1"}}, true},
		"a list instead of a map":  {[]any{}, map[string]any{"a": "1"}, false},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			if got := contains(test.existing, test.want); got != test.contained {
				t.Errorf("contains is %t", got)
			}
		})
	}
}

// TestMountedFilesExist requires that the arguments of the programs name only mounted files.
func TestMountedFilesExist(t *testing.T) {
	objects := append(testEstimator().Objects(), Descheduler{Workload: Workload{Namespace: "n", Replicas: 1}}.Objects()...)
	keys := []string{pkiDir + "/" + CertKey, pkiDir + "/" + KeyKey, pkiDir + "/" + CAKey, configDir + "/" + configKey, configDir + "/east-kubeconfig"}
	for _, object := range objects {
		deployment, ok := object.(*appsv1.Deployment)
		if !ok {
			continue
		}
		for _, argument := range deployment.Spec.Template.Spec.Containers[0].Command {
			if _, path, found := strings.Cut(argument, "=/"); found && !slices.Contains(keys, "/"+path) {
				t.Errorf("%s reads a file that is not mounted: %s", deployment.Name, argument)
			}
		}
	}
}

func TestNotReadyReason(t *testing.T) {
	waiting := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p1"}, Status: corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{
		{Name: "c", Image: "i", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}},
	}}}
	ready := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p2"}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
	tests := map[string]struct {
		deployment appsv1.Deployment
		pods       []corev1.Pod
		want       string
	}{
		"a Pod that waits is named":            {pods: []corev1.Pod{ready, waiting}, want: "Pod p1: ImagePullBackOff: container c cannot get image i"},
		"the phase of a Pod without a failure": {pods: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "p3"}, Status: corev1.PodStatus{Phase: corev1.PodPending}}}, want: "Pod p3: its phase is Pending"},
		"Pods that are ready":                  {pods: []corev1.Pod{ready}, want: "not available yet"},
		"no Pods":                              {want: "check that kube-controller-manager"},
		"Pods that cannot be created": {deployment: appsv1.Deployment{Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "exceeded quota"},
		}}}, want: "exceeded quota"},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			if got := notReadyReason(&test.deployment, test.pods); !strings.Contains(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func TestAwaitReadyIsBounded(t *testing.T) {
	applier, _ := newTestApplier()
	mustApply(t, applier, testEstimator().Objects()...)
	key := client.ObjectKey{Namespace: "karmada-system", Name: testEstimator().Name()}
	var late *NotReadyError
	if err := AwaitReady(t.Context(), applier.API, key, time.Millisecond); !errors.As(err, &late) {
		t.Errorf("error %v", err)
	}
	deployment := &appsv1.Deployment{}
	if err := applier.API.Get(t.Context(), key, deployment); err != nil {
		t.Fatal(err)
	}
	deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: deployment.Generation, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2}
	if err := applier.API.Status().Update(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	if err := AwaitReady(t.Context(), applier.API, key, time.Minute); err != nil {
		t.Error(err)
	}
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	if err := AwaitReady(interrupted, applier.API, client.ObjectKey{Name: "missing"}, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("after an interrupt: %v", err)
	}
}
