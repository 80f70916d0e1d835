package standalone

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned"
	"k8s.io/utils/ptr"
)

// checkSimulation checks that a simulated cluster has volumes, addresses, resource metrics and
// autoscaling.
func checkSimulation(ctx context.Context, t *testing.T, cluster *Cluster, client kubernetes.Interface) {
	t.Helper()
	autoscaled := createAutoscaled(ctx, t, client)
	checkVolumes(ctx, t, client)
	checkAddresses(ctx, t, client)
	checkMetrics(ctx, t, cluster)
	await(ctx, t, "the autoscaler raises the replicas", func() error {
		found, err := client.AppsV1().Deployments("default").Get(ctx, autoscaled, metav1.GetOptions{})
		if err == nil && found.Status.AvailableReplicas != 3 {
			err = fmt.Errorf("available replicas: %d", found.Status.AvailableReplicas)
		}
		return err
	})
}

// await repeats a check until it succeeds.
func await(ctx context.Context, t *testing.T, description string, check func() error) {
	t.Helper()
	var err error
	if wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 2*time.Minute, true, func(context.Context) (bool, error) {
		err = check()
		return err == nil, nil
	}) != nil {
		t.Errorf("waiting until %s: %v", description, err)
	}
}

// createAutoscaled creates a Deployment that uses more CPU than its autoscaler targets, with up to 3
// replicas, and returns its name.
func createAutoscaled(ctx context.Context, t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	const name = "busy"
	labels := map[string]string{"app": name}
	container := corev1.Container{Name: name, Image: "nginx", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}}}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{CPUUsageAnnotation: "150m"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{container}},
		},
	}}
	autoscaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name}, MaxReplicas: 3,
		Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
			Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: ptr.To[int32](50)},
		}}},
	}}
	_, err := client.AppsV1().Deployments("default").Create(ctx, deployment, metav1.CreateOptions{})
	_, autoscalerErr := client.AutoscalingV2().HorizontalPodAutoscalers("default").Create(ctx, autoscaler, metav1.CreateOptions{})
	if err := errors.Join(err, autoscalerErr); err != nil {
		t.Fatal(err)
	}
	return name
}

// checkVolumes checks that a claim without a class gets a volume, which is deleted with the claim.
func checkVolumes(ctx context.Context, t *testing.T, client kubernetes.Interface) {
	t.Helper()
	claims := client.CoreV1().PersistentVolumeClaims("default")
	claim, err := claims.Create(ctx, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	await(ctx, t, "the claim is bound", func() error {
		if claim, err = claims.Get(ctx, "data", metav1.GetOptions{}); err == nil && claim.Status.Phase != corev1.ClaimBound {
			err = fmt.Errorf("phase %s", claim.Status.Phase)
		}
		return err
	})
	if err := claims.Delete(ctx, "data", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(ctx, t, "the volume is deleted", func() error {
		found, err := client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
		if err == nil && len(found.Items) > 0 {
			err = fmt.Errorf("PersistentVolume %s has phase %s", found.Items[0].Name, found.Items[0].Status.Phase)
		}
		return err
	})
}

// checkAddresses checks that a Service has the address of a load balancer while it has this type, and
// that an Ingress has an address.
func checkAddresses(ctx context.Context, t *testing.T, client kubernetes.Interface) {
	t.Helper()
	services, ingresses := client.CoreV1().Services("default"), client.NetworkingV1().Ingresses("default")
	service, err := services.Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	backend := &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}}}
	if _, err := ingresses.Create(ctx, &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: networkingv1.IngressSpec{DefaultBackend: backend}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	addresses := func(want int) func() error {
		return func() (err error) {
			if service, err = services.Get(ctx, "web", metav1.GetOptions{}); err == nil && len(service.Status.LoadBalancer.Ingress) != want {
				err = fmt.Errorf("addresses %v", service.Status.LoadBalancer.Ingress)
			}
			return err
		}
	}
	await(ctx, t, "the load balancer has an address", addresses(1))
	service.Spec.Type = corev1.ServiceTypeClusterIP
	if _, err := services.Update(ctx, service, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(ctx, t, "the address is removed with the load balancer", addresses(0))
	await(ctx, t, "the Ingress has an address", func() error {
		found, err := ingresses.Get(ctx, "web", metav1.GetOptions{})
		if err == nil && len(found.Status.LoadBalancer.Ingress) != 1 {
			err = errors.New("no address")
		}
		return err
	})
}

// checkMetrics checks that all nodes and running Pods have metrics.
func checkMetrics(ctx context.Context, t *testing.T, cluster *Cluster) {
	t.Helper()
	client, err := metricsclient.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	await(ctx, t, "Pods and nodes have metrics", func() error {
		pods, err := client.MetricsV1beta1().PodMetricses("default").List(ctx, metav1.ListOptions{LabelSelector: "app=busy"})
		if err != nil {
			return err
		}
		if len(pods.Items) == 0 || pods.Items[0].Containers[0].Usage.Cpu().MilliValue() != 150 {
			return fmt.Errorf("metrics of Pods: %v", pods.Items)
		}
		nodes, err := client.MetricsV1beta1().NodeMetricses().List(ctx, metav1.ListOptions{LabelSelector: "node.kubernetes.io/role=simulated"})
		if err == nil && len(nodes.Items) != DefaultNodeOptions().Count {
			err = fmt.Errorf("metrics of %d nodes", len(nodes.Items))
		}
		return err
	})
}
