package processnode

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/uuid"

	"karmada.io/karmada/internal/standalone/freeport"
)

// serviceMeta returns the metadata of a Service. Its UID, and so its address, differs in each run.
func serviceMeta(name string) metav1.ObjectMeta {
	meta := objectMeta(name)
	meta.UID = uuid.NewUUID()
	return meta
}

// freePort returns a port of the loopback address on which no server listens.
func freePort(t *testing.T) int {
	t.Helper()
	port, err := freeport.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// TestProgramsReachEachOtherByService runs a server and programs that connect to it by the names and ports
// of Services, as a control plane's components do.
func TestProgramsReachEachOtherByService(t *testing.T) {
	nodePort := freePort(t)
	selector := map[string]string{"app": "web"}
	n := startNode(t, t.TempDir(),
		&corev1.Service{ObjectMeta: serviceMeta("web"), Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, ClusterIP: "10.96.0.7", Selector: selector,
			Ports: []corev1.ServicePort{{Port: 18085, TargetPort: intstr.FromString("http"), NodePort: int32(nodePort)}},
		}},
		&corev1.Service{ObjectMeta: serviceMeta("members"), Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Selector: selector, PublishNotReadyAddresses: true}},
		&corev1.Service{ObjectMeta: serviceMeta("alias"), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "web." + namespace + ".svc.cluster.local"}},
	)
	server := testPod("web-0", "serve", ":18086", ".")
	server.Labels, server.Spec.Hostname, server.Spec.Subdomain = selector, "web-0", "members"
	server.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 18086}}
	server.Spec.Containers[0].ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("http")}}}
	n.create(t, server)
	for name, url := range map[string]string{
		"service": "http://web." + namespace + ".svc:18085/", "short": "http://web:18085/", "alias": "http://alias." + namespace + ".svc.cluster.local:18085/",
	} {
		client := testPod(name, "fetch", url)
		client.Spec.RestartPolicy = corev1.RestartPolicyNever
		n.create(t, client)
		if ended := n.await(t, name, "its end", isEnded); ended.Status.Phase != corev1.PodSucceeded {
			t.Errorf("the program could not reach %s:\n%s", url, n.logs(t, name))
		}
		if err := n.client.CoreV1().Pods(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		n.await(t, name, "end of the Pod", isGone)
	}
	member := testPod("member", "fetch", "http://web-0.members."+namespace+".svc.cluster.local:18086/")
	member.Spec.RestartPolicy = corev1.RestartPolicyNever
	n.create(t, member)
	if ended := n.await(t, "member", "its end", isEnded); ended.Status.Phase != corev1.PodSucceeded {
		t.Errorf("the program could not reach a Pod of a headless Service:\n%s", n.logs(t, "member"))
	}
	response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/", nodePort))
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("the node port answered %s (%v)", response.Status, err)
	}
}

// TestImageOfAllProgramsRunsProgramOfCommand requires that the file with all programs gets the program's
// name, also by exec.
func TestImageOfAllProgramsRunsProgramOfCommand(t *testing.T) {
	n := startNode(t, t.TempDir())
	pod := testPod("all", "name")
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Spec.Containers[0].Image, pod.Spec.Containers[0].Command = "docker.io/karmada/karmada:v1", []string{"/bin/karmada-scheduler"}
	n.create(t, pod)
	n.await(t, "all", "its end", isEnded)
	if log := n.logs(t, "all"); !strings.Contains(log, "program karmada-scheduler\n") {
		t.Errorf("the program wrote %q", log)
	}
	waiting := testPod("waiting", "wait")
	waiting.Spec.Containers[0].Image, waiting.Spec.Containers[0].Command = "karmada", []string{"karmadactl"}
	n.create(t, waiting)
	n.await(t, "waiting", "running", isRunning)
	c := n.findPod(namespace, "waiting").findContainer("main")
	var out strings.Builder
	if err := c.execWithOutput(t.Context(), []string{"karmadactl", "act:name"}, &out); err != nil || !strings.Contains(out.String(), "program karmadactl\n") {
		t.Errorf("exec wrote %q (%v)", out.String(), err)
	}
}
