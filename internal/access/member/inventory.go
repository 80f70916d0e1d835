package member

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	podresources "k8s.io/component-helpers/resource"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	domain "karmada.io/karmada/internal/domain/cluster"
)

// inventory watches the nodes and Pods of a member and keeps of them only what a
// summary needs.
type inventory struct {
	start  sync.Once
	err    error
	nodes  listers.NodeLister
	pods   listers.PodLister
	synced []toolscache.InformerSynced
}

// Inventory is what the member has to offer and what of it is in use. complete
// is false until the first lists have arrived; then the rest means nothing.
func (m *Member) Inventory() (nodes []domain.Node, pods []domain.Pod, complete bool, err error) {
	m.inventory.start.Do(func() { m.inventory.err = m.inventory.watch(m.ctx, m) })
	if m.inventory.err != nil {
		return nil, nil, false, m.inventory.err
	}
	for _, synced := range m.inventory.synced {
		if !synced() {
			return nil, nil, false, nil
		}
	}
	return m.inventory.list()
}

func (i *inventory) watch(ctx context.Context, m *Member) error {
	config := m.Config()
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making client for the inventory of member %q: %w", m.Name, err)
	}
	running := fields.AndSelectors(
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)),
	).String()
	nodeFactory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(slimNode))
	podFactory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(slimPod),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.FieldSelector = running }))
	i.nodes, i.pods = nodeFactory.Core().V1().Nodes().Lister(), podFactory.Core().V1().Pods().Lister()
	i.synced = []toolscache.InformerSynced{
		nodeFactory.Core().V1().Nodes().Informer().HasSynced, podFactory.Core().V1().Pods().Informer().HasSynced,
	}
	nodeFactory.Start(ctx.Done())
	podFactory.Start(ctx.Done())
	return nil
}

// slimNode drops all of a node but its name, readiness and allocatable resources.
func slimNode(obj any) (any, error) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return obj, nil
	}
	slim := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion},
		Status:     corev1.NodeStatus{Allocatable: node.Status.Allocatable},
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			slim.Status.Conditions = []corev1.NodeCondition{{Type: condition.Type, Status: condition.Status}}
		}
	}
	return slim, nil
}

// slimPod drops all of a Pod but where it runs and what it asks for.
func slimPod(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	requests := podresources.PodRequests(pod, podresources.PodResourcesOptions{})
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion},
		Spec: corev1.PodSpec{
			NodeName:   pod.Spec.NodeName,
			Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests}}},
		},
	}, nil
}

func (i *inventory) list() ([]domain.Node, []domain.Pod, bool, error) {
	storedNodes, err := i.nodes.List(labels.Everything())
	if err != nil {
		return nil, nil, false, fmt.Errorf("listing nodes: %w", err)
	}
	storedPods, err := i.pods.List(labels.Everything())
	if err != nil {
		return nil, nil, false, fmt.Errorf("listing Pods: %w", err)
	}
	nodes := make([]domain.Node, 0, len(storedNodes))
	for _, node := range storedNodes {
		ready := len(node.Status.Conditions) == 1 && node.Status.Conditions[0].Status == corev1.ConditionTrue
		nodes = append(nodes, domain.Node{Name: node.Name, Ready: ready, Allocatable: node.Status.Allocatable})
	}
	pods := make([]domain.Pod, 0, len(storedPods))
	for _, pod := range storedPods {
		pods = append(pods, domain.Pod{Node: pod.Spec.NodeName, Requests: pod.Spec.Containers[0].Resources.Requests})
	}
	return nodes, pods, true, nil
}
