package pull

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

func TestAgentCommand(t *testing.T) {
	r := Register{
		Name: "east", Provider: "p", Region: "r", Zones: []string{"a", "b"}, ProxyURL: "http://proxy:3128",
		CertRotation: true, Member: &rest.Config{Host: "https://east:6443"},
	}.withDefaults()
	want := []string{
		"/bin/karmada-agent", "--karmada-kubeconfig=/etc/kubeconfig/karmada-kubeconfig", "--cluster-name=east",
		"--cluster-api-endpoint=https://east:6443", "--cluster-provider=p", "--cluster-region=r", "--cluster-zones=a,b",
		"--controllers=*,certRotation", "--proxy-server-address=http://proxy:3128", "--leader-elect-resource-namespace=karmada-system",
		"--cluster-namespace=karmada-cluster", "--cluster-status-update-frequency=10s", "--metrics-bind-address=:8080",
		"--health-probe-bind-address=0.0.0.0:10357", "--v=2",
	}
	deployment := r.agentDeployment()
	container := deployment.Spec.Template.Spec.Containers[0]
	if diff := cmp.Diff(want, container.Command); diff != "" {
		t.Errorf("command (-want +got):\n%s", diff)
	}
	name, key := mountedSecret(deployment.Spec.Template.Spec, container, flagValue(container, "karmada-kubeconfig"))
	if name != "karmada-kubeconfig" || key != "karmada-kubeconfig" {
		t.Errorf("its kubeconfig is %s of Secret %s", key, name)
	}
	if r.CertRotation = false; flagValue(r.agentDeployment().Spec.Template.Spec.Containers[0], "controllers") != "*" {
		t.Error("without rotation other controllers are selected")
	}
	if r.Namespace = "agents"; flagValue(r.agentDeployment().Spec.Template.Spec.Containers[0], "leader-elect-resource-namespace") != "karmada-system" {
		t.Error("the Lease is in the namespace of the agent, which the control plane need not have")
	}
}

func TestMountedSecret(t *testing.T) {
	volume := func(name, secret string, items ...corev1.KeyToPath) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret, Items: items}}}
	}
	tests := map[string]struct {
		volumes   []corev1.Volume
		mounts    []corev1.VolumeMount
		file      string
		name, key string
	}{
		"a file of a Secret": {
			[]corev1.Volume{volume("v", "s")}, []corev1.VolumeMount{{Name: "v", MountPath: "/etc/kubeconfig"}}, "/etc/kubeconfig/k", "s", "k",
		},
		"a path with an extra slash": {
			[]corev1.Volume{volume("v", "s")}, []corev1.VolumeMount{{Name: "v", MountPath: "/etc/kubeconfig/"}}, "/etc//kubeconfig/k", "s", "k",
		},
		"a key under another name": {
			[]corev1.Volume{volume("v", "s", corev1.KeyToPath{Key: "key", Path: "k"})}, []corev1.VolumeMount{{Name: "v", MountPath: "/a"}}, "/a/k", "s", "key",
		},
		"a single file": {
			[]corev1.Volume{volume("v", "s")}, []corev1.VolumeMount{{Name: "v", MountPath: "/a/file", SubPath: "k"}}, "/a/file", "s", "k",
		},
		"a directory with a common prefix": {
			[]corev1.Volume{volume("v", "s")}, []corev1.VolumeMount{{Name: "v", MountPath: "/etc/kube"}}, "/etc/kubeconfig/k", "", "",
		},
		"a file outside of volumes": {nil, nil, "/etc/kubeconfig/k", "", ""},
		"no file":                   {[]corev1.Volume{volume("v", "s")}, []corev1.VolumeMount{{Name: "v", MountPath: "/a"}}, "", "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			gotName, gotKey := mountedSecret(corev1.PodSpec{Volumes: test.volumes}, corev1.Container{VolumeMounts: test.mounts}, test.file)
			if gotName != test.name || gotKey != test.key {
				t.Errorf("got %s of Secret %s, want %s of %s", gotKey, gotName, test.key, test.name)
			}
		})
	}
}

func TestPodFailure(t *testing.T) {
	waiting := func(reason, message string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	}
	ended := func(code int32, reason string) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason}}
	}
	tests := map[string]struct {
		status    corev1.PodStatus
		want      string
		restarted bool
	}{
		"ready":               {status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}},
		"an image is missing": {status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: waiting("ErrImagePull", "not found")}}}, want: "ErrImagePull: not found"},
		"crash loop": {
			status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: waiting("CrashLoopBackOff", ""), LastTerminationState: ended(1, "Error")}}},
			want:   "CrashLoopBackOff, after it ended with code 1: Error", restarted: true,
		},
		"terminated": {status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: ended(2, "Error")}}}, want: "ended with code 2: Error"},
		"unschedulable": {
			status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/0 nodes are available"}}},
			want:   "Unschedulable: 0/0 nodes are available",
		},
		"not scheduled yet": {status: corev1.PodStatus{Phase: corev1.PodPending}, want: "phase Pending"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, restarted := podFailure(&corev1.Pod{Status: test.status})
			if got != test.want || restarted != test.restarted {
				t.Errorf("got %q, restarted %t, want %q, %t", got, restarted, test.want, test.restarted)
			}
		})
	}
}

func TestIsRolledOut(t *testing.T) {
	done := appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2}
	tests := map[string]struct {
		change func(*appsv1.DeploymentStatus)
		want   bool
	}{
		"all replicas are available":     {func(*appsv1.DeploymentStatus) {}, true},
		"the status is outdated":         {func(s *appsv1.DeploymentStatus) { s.ObservedGeneration = 1 }, false},
		"a replica is not available":     {func(s *appsv1.DeploymentStatus) { s.AvailableReplicas = 1 }, false},
		"an old replica still exists":    {func(s *appsv1.DeploymentStatus) { s.Replicas = 3 }, false},
		"a replica has the old template": {func(s *appsv1.DeploymentStatus) { s.UpdatedReplicas = 1 }, false},
		"the status is empty":            {func(s *appsv1.DeploymentStatus) { *s = appsv1.DeploymentStatus{} }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			replicas, status := int32(2), done
			test.change(&status)
			deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Spec: appsv1.DeploymentSpec{Replicas: &replicas}, Status: status}
			if got := isRolledOut(deployment); got != test.want {
				t.Errorf("rolled out: %t, want %t", got, test.want)
			}
		})
	}
}
