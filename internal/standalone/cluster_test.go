package standalone

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	watchtools "k8s.io/client-go/tools/watch"
)

// One test covers the start, a Deployment, the stop, the restart with the same objects, and
// another Deployment, because the start of a cluster is expensive.
func TestClusterRunsDeploymentAndSurvivesRestart(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()
	options := Options{Name: "member1", CommonName: "member1", Dir: t.TempDir(), RunPrograms: true, Simulate: true}

	began := time.Now()
	cluster, err := Start(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("API server ready after %s", time.Since(began).Round(time.Millisecond))
	if err := cluster.StartWorkloads(ctx, DefaultNodeOptions()); err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	awaitAvailable(ctx, t, client, createDeployment(ctx, t, client, "web"))
	t.Logf("Deployment available after %s", time.Since(began).Round(time.Millisecond))
	checkSimulation(ctx, t, cluster, client)

	options.Port = cluster.Port()
	cluster.Stop()
	if err := cluster.Failure(); err != nil {
		t.Errorf("Stop is reported as a failure: %v", err)
	}

	cluster, err = Start(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Stop()
	client, err = kubernetes.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.AppsV1().Deployments("default").Get(ctx, "web", metav1.GetOptions{}); err != nil {
		t.Errorf("the Deployment did not survive the restart: %v", err)
	}
	if err := cluster.StartWorkloads(ctx, DefaultNodeOptions()); err != nil {
		t.Fatal(err)
	}
	awaitAvailable(ctx, t, client, createDeployment(ctx, t, client, "another"))
	if err := cluster.Failure(); err != nil {
		t.Errorf("after the restart: %v", err)
	}
}

// A scrape of the metrics of one cluster must not wait for the etcd of another cluster.
func TestMetricsOfOneClusterDoNotWaitForStoppedCluster(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()
	clusters := map[string]*Cluster{}
	for _, name := range []string{"runs", "stopped"} {
		cluster, err := Start(ctx, Options{Name: name, CommonName: name, Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		defer cluster.Stop()
		clusters[name] = cluster
	}
	clusters["stopped"].Stop()
	client, err := kubernetes.NewForConfig(clusters["runs"].Config())
	if err != nil {
		t.Fatal(err)
	}
	// The storage monitor of Kubernetes times out after 20 seconds. Retry the request, because the
	// machine may be slow.
	for range 3 {
		within, cancel := context.WithTimeout(ctx, 15*time.Second)
		_, err = client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(within)
		cancel()
		if err == nil {
			return
		}
	}
	t.Errorf("reading the metrics: %v", err)
}

func createDeployment(ctx context.Context, t *testing.T, client kubernetes.Interface, name string) *appsv1.Deployment {
	t.Helper()
	labels := map[string]string{"app": name}
	replicas := int32(2)
	deployment, err := client.AppsV1().Deployments("default").Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx:1.19"}}},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return deployment
}

func awaitAvailable(ctx context.Context, t *testing.T, client kubernetes.Interface, deployment *appsv1.Deployment) {
	t.Helper()
	watcher := client.AppsV1().Deployments(deployment.Namespace)
	selector := fields.OneTermEqualSelector("metadata.name", deployment.Name).String()
	list, err := watcher.Watch(ctx, metav1.ListOptions{FieldSelector: selector, ResourceVersion: deployment.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	_, err = watchtools.UntilWithoutRetry(ctx, list, func(event watch.Event) (bool, error) {
		current, ok := event.Object.(*appsv1.Deployment)
		return ok && current.Status.AvailableReplicas == 2, nil
	})
	if err != nil {
		t.Fatalf("waiting for the Deployment to become available: %v", err)
	}
}
