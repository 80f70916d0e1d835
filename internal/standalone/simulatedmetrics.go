package standalone

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	genericapiserver "k8s.io/apiserver/pkg/server"
	corelisters "k8s.io/client-go/listers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/metrics/pkg/apis/metrics"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/metrics-server/pkg/api"
	"sigs.k8s.io/metrics-server/pkg/api/generated/openapi"
)

// Annotations of a Pod that contain the usage of each of its containers, as defined by KWOK.
const (
	CPUUsageAnnotation    = "kwok.x-k8s.io/usage-cpu"
	MemoryUsageAnnotation = "kwok.x-k8s.io/usage-memory"
)

// metricsWindow is the period during which a Pod's usage is constant. The autoscaler uses only metrics of a
// window in which the Pod was ready.
const metricsWindow = 15 * time.Second

// Usage of a container that does not request a resource.
var minUsage = corev1.ResourceList{
	corev1.ResourceCPU:    resource.MustParse("1m"),
	corev1.ResourceMemory: resource.MustParse("1Mi"),
}

// usageAnnotations maps each resource to the annotation with its usage.
var usageAnnotations = map[corev1.ResourceName]string{corev1.ResourceCPU: CPUUsageAnnotation, corev1.ResourceMemory: MemoryUsageAnnotation}

// simulatedMetrics is the resource metrics API of a simulated cluster. The cluster's own API server serves
// it.
type simulatedMetrics struct {
	now     func() time.Time
	listers atomic.Pointer[listers]
}

// listers list the Pods and nodes of the cluster.
type listers struct {
	pods  corelisters.PodLister
	nodes corelisters.NodeLister
}

// newSimulatedMetrics returns the API of a cluster that has no metrics until New reads the cluster.
func newSimulatedMetrics() *simulatedMetrics {
	m := &simulatedMetrics{now: time.Now}
	none := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc,
		toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc})
	m.listers.Store(&listers{corelisters.NewPodLister(none), corelisters.NewNodeLister(none)})
	return m
}

// Definitions returns the schemas of the API.
func (*simulatedMetrics) Definitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	return openapi.GetOpenAPIDefinitions(ref)
}

// Install adds the API to an API server.
func (m *simulatedMetrics) Install(server *genericapiserver.GenericAPIServer) error {
	if err := api.Install(m, podMetadata{m: m}, nodes{m}, server, nil); err != nil {
		return fmt.Errorf("installing the API of resource metrics: %w", err)
	}
	return nil
}

// read makes the API serve the metrics of the Pods and nodes in a cache.
func (m *simulatedMetrics) read(ctx context.Context, objects cache.Cache) error {
	pods, err := objects.GetInformer(ctx, &corev1.Pod{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching Pods: %w", err)
	}
	nodes, err := objects.GetInformer(ctx, &corev1.Node{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	m.listers.Store(&listers{
		corelisters.NewPodLister(pods.(toolscache.SharedIndexInformer).GetIndexer()),
		corelisters.NewNodeLister(nodes.(toolscache.SharedIndexInformer).GetIndexer()),
	})
	return nil
}

// GetPodMetrics implements api.PodMetricsGetter. Only running Pods have metrics.
func (m *simulatedMetrics) GetPodMetrics(pods ...*metav1.PartialObjectMetadata) ([]metrics.PodMetrics, error) {
	lister, now := m.listers.Load().pods, metav1.NewTime(m.now())
	var found []metrics.PodMetrics
	for _, metadata := range pods {
		pod, err := lister.Pods(metadata.Namespace).Get(metadata.Name)
		if err != nil || pod.Status.Phase != corev1.PodRunning {
			continue
		}
		found = append(found, metrics.PodMetrics{
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, Labels: pod.Labels, CreationTimestamp: now},
			Timestamp:  now, Window: metav1.Duration{Duration: metricsWindow}, Containers: containerMetrics(pod),
		})
	}
	return found, nil
}

// GetNodeMetrics implements api.NodeMetricsGetter. The usage of a node is the usage of its Pods.
func (m *simulatedMetrics) GetNodeMetrics(nodes ...*corev1.Node) ([]metrics.NodeMetrics, error) {
	pods, err := m.listers.Load().pods.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("listing the Pods of nodes: %w", err)
	}
	usage := map[string]corev1.ResourceList{}
	for _, node := range nodes {
		usage[node.Name] = minUsage.DeepCopy()
	}
	for _, pod := range pods {
		total := usage[pod.Spec.NodeName]
		if total == nil || pod.Status.Phase != corev1.PodRunning {
			continue
		}
		for _, container := range containerMetrics(pod) {
			addTo(total, container.Usage)
		}
	}
	now := metav1.NewTime(m.now())
	found := make([]metrics.NodeMetrics, len(nodes))
	for i, node := range nodes {
		found[i] = metrics.NodeMetrics{
			ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: node.Labels, CreationTimestamp: now},
			Timestamp:  now, Window: metav1.Duration{Duration: metricsWindow}, Usage: usage[node.Name],
		}
	}
	return found, nil
}

func addTo(total, added corev1.ResourceList) {
	for name, quantity := range added {
		sum := total[name]
		sum.Add(quantity)
		total[name] = sum
	}
}

// containerMetrics returns each container's usage: an annotation's value, or half of the request.
func containerMetrics(pod *corev1.Pod) []metrics.ContainerMetrics {
	found := make([]metrics.ContainerMetrics, len(pod.Spec.Containers))
	for i := range pod.Spec.Containers {
		container := &pod.Spec.Containers[i]
		usage := corev1.ResourceList{}
		for name, annotation := range usageAnnotations {
			usage[name] = resourceUsage(pod.Annotations[annotation], container.Resources.Requests[name], minUsage[name])
		}
		found[i] = metrics.ContainerMetrics{Name: container.Name, Usage: usage}
	}
	return found
}

func resourceUsage(annotation string, request, least resource.Quantity) resource.Quantity {
	if set, err := resource.ParseQuantity(annotation); err == nil && set.Sign() >= 0 {
		return set
	}
	half := resource.NewMilliQuantity(request.MilliValue()/2, request.Format)
	if half.Cmp(least) < 0 {
		return least
	}
	return *half
}

// keepRequests removes everything from a Pod of the cache that its metrics do not need.
func keepRequests(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	kept := &corev1.Pod{TypeMeta: pod.TypeMeta, ObjectMeta: pod.ObjectMeta}
	kept.ManagedFields, kept.OwnerReferences, kept.Finalizers = nil, nil, nil
	kept.Spec.NodeName, kept.Status.Phase = pod.Spec.NodeName, pod.Status.Phase
	for i := range pod.Spec.Containers {
		kept.Spec.Containers = append(kept.Spec.Containers, corev1.Container{
			Name: pod.Spec.Containers[i].Name, Resources: corev1.ResourceRequirements{Requests: pod.Spec.Containers[i].Resources.Requests},
		})
	}
	return kept, nil
}

// nodes lists the nodes of the API.
type nodes struct{ *simulatedMetrics }

// List implements corelisters.NodeLister.
func (n nodes) List(selector labels.Selector) ([]*corev1.Node, error) {
	return n.listers.Load().nodes.List(selector)
}

// Get implements corelisters.NodeLister.
func (n nodes) Get(name string) (*corev1.Node, error) { return n.listers.Load().nodes.Get(name) }

// podMetadata lists the metadata of Pods, in a namespace unless it is empty.
type podMetadata struct {
	m         *simulatedMetrics
	namespace string
}

// List implements toolscache.GenericLister.
func (p podMetadata) List(selector labels.Selector) ([]runtime.Object, error) {
	pods, err := p.m.listers.Load().pods.Pods(p.namespace).List(selector)
	if err != nil {
		return nil, fmt.Errorf("listing Pods: %w", err)
	}
	objects := make([]runtime.Object, len(pods))
	for i, pod := range pods {
		objects[i] = &metav1.PartialObjectMetadata{ObjectMeta: pod.ObjectMeta}
	}
	return objects, nil
}

// Get implements toolscache.GenericLister.
func (p podMetadata) Get(name string) (runtime.Object, error) {
	namespace := p.namespace
	if namespace == "" {
		namespace, name, _ = toolscache.SplitMetaNamespaceKey(name)
	}
	pod, err := p.m.listers.Load().pods.Pods(namespace).Get(name)
	if err != nil {
		return nil, err
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: pod.ObjectMeta}, nil
}

// ByNamespace implements toolscache.GenericLister.
func (p podMetadata) ByNamespace(namespace string) toolscache.GenericNamespaceLister {
	return podMetadata{m: p.m, namespace: namespace}
}
