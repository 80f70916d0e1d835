package member

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	podresources "k8s.io/component-helpers/resource"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/member/bounds"
	"karmada.io/karmada/internal/access/watches"
	domain "karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/domain/nodecapacity"
)

// inventory watches the nodes and Pods of a member and counts them. It does not store the objects:
// it reads lists in pages, and keeps only the counted values of each node and Pod.
type inventory struct {
	startOnce sync.Once
	err       error
	startedAt time.Time
	watches   sync.WaitGroup

	mu                      sync.Mutex
	tally                   *domain.UsageCounter
	nodesListed, podsListed bool
	lastSummary             *inventorySummary
}

// inventorySummary is the summary that was returned last, together with its inputs.
type inventorySummary struct {
	version   uint64
	models    []clusterv1alpha1.ResourceModel
	nodes     *clusterv1alpha1.NodeSummary
	resources *clusterv1alpha1.ResourceSummary
}

// Inventory returns the resources of the member and how much of them is used. models are the grades
// by which the nodes are counted. Until the first lists are read, nodes and resources are nil, and
// waited is the time since the first call of Inventory. The caller may modify the result.
func (m *Member) Inventory(models []clusterv1alpha1.ResourceModel) (
	nodes *clusterv1alpha1.NodeSummary, resources *clusterv1alpha1.ResourceSummary, waited time.Duration, err error,
) {
	i := &m.inventory
	i.startOnce.Do(func() {
		i.startedAt, i.tally = time.Now(), domain.NewUsageCounter()
		i.err = i.startWatches(m.ctx, m)
	})
	if i.err != nil {
		return nil, nil, 0, i.err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.nodesListed || !i.podsListed {
		return nil, nil, time.Since(i.startedAt), nil
	}
	if i.lastSummary == nil || i.lastSummary.version != i.tally.Version() || !equality.Semantic.DeepEqual(i.lastSummary.models, models) {
		i.lastSummary = &inventorySummary{version: i.tally.Version(), models: models}
		i.lastSummary.nodes, i.lastSummary.resources = i.tally.Summary(models)
	}
	return i.lastSummary.nodes.DeepCopy(), i.lastSummary.resources.DeepCopy(), 0, nil
}

func (i *inventory) startWatches(ctx context.Context, m *Member) error {
	client, err := m.inventoryClient()
	if err != nil {
		return fmt.Errorf("making client for the inventory of member %q: %w", m.Name, err)
	}
	nodeLoop := watches.Loop{
		Open: watches.FixedSource(watches.NewSource(client.Nodes(), "nodes.v1", "", "", m.bounds)),
		Sink: &inventorySink[countedNode]{
			Reduced: watches.Reduced[countedNode]{Reduce: i.reduceNode, Store: nodeStore{i}, Mutex: &i.mu},
			bounds: inventoryBounds{
				member: m, inventory: i, bound: bounds.Nodes, subject: "nodes.v1", limit: m.bounds.Limits.Nodes, lists: &i.tally.NodeLists,
			},
		},
	}
	podLoop := watches.Loop{
		Open: watches.FixedSource(watches.NewSource(client.Pods(""), "pods.v1", "", unfinishedPods, m.bounds)),
		Sink: &inventorySink[countedPod]{
			Reduced: watches.Reduced[countedPod]{Reduce: i.reducePod, Store: podStore{i}, Mutex: &i.mu},
			bounds: inventoryBounds{
				member: m, inventory: i, bound: bounds.Pods, subject: "pods.v1", limit: m.bounds.Limits.Pods, lists: &i.tally.PodLists,
			},
		},
	}
	i.watches.Go(func() { nodeLoop.Run(ctx) })
	i.watches.Go(func() { podLoop.Run(ctx) })
	return nil
}

// inventoryClient returns a client for nodes and Pods. The client limits the memory of decoded
// responses.
func (m *Member) inventoryClient() (corev1client.CoreV1Interface, error) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Node{}, &corev1.NodeList{}, &corev1.Pod{}, &corev1.PodList{})
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	config := rest.CopyConfig(m.config)
	config.GroupVersion, config.APIPath = &corev1.SchemeGroupVersion, "/api"
	config.NegotiatedSerializer = m.bounds.Codec(scheme)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	restClient, err := rest.RESTClientForConfigAndClient(config, m.watchHTTP)
	if err != nil {
		return nil, err
	}
	return corev1client.New(restClient), nil
}

// unfinishedPods selects the Pods that have not finished.
const unfinishedPods = "status.phase!=Succeeded,status.phase!=Failed"

// countedNode holds the counted values of a node.
type countedNode struct {
	name        string
	ready       bool
	allocatable *domain.InternedResources
}

func (i *inventory) reduceNode(object runtime.Object) (reduced countedNode, err error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return countedNode{}, fmt.Errorf("got %T instead of a node", object)
	}
	reduced.name = node.Name
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			reduced.ready = condition.Status == corev1.ConditionTrue
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	reduced.allocatable, err = i.tally.NodeLists.Intern(node.Status.Allocatable)
	return reduced, err
}

// countedPod holds the counted values of a Pod: its node and its requests.
type countedPod struct {
	id       nodecapacity.PodID
	node     string
	requests *domain.InternedResources
}

func (i *inventory) reducePod(object runtime.Object) (reduced countedPod, err error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return countedPod{}, fmt.Errorf("got %T instead of a Pod", object)
	}
	reduced.id, reduced.node = nodecapacity.PodIDOf(pod.UID), pod.Spec.NodeName
	requests := podresources.PodRequests(pod, podresources.PodResourcesOptions{})
	i.mu.Lock()
	defer i.mu.Unlock()
	reduced.requests, err = i.tally.PodLists.Intern(requests)
	return reduced, err
}

type nodeStore struct{ *inventory }

// Set implements watches.ReducedStore, as do the methods below.
func (n nodeStore) Set(node countedNode) { n.tally.SetNode(node.name, node.ready, node.allocatable) }

// Remove removes a deleted node.
func (n nodeStore) Remove(node countedNode) { n.tally.RemoveNode(node.name) }

// Replace stores all nodes of a list.
func (n nodeStore) Replace(nodes []countedNode) {
	listed := make(map[string]bool, len(nodes))
	for _, node := range nodes {
		n.Set(node)
		listed[node.name] = true
	}
	n.tally.PruneNodes(func(name string) bool { return listed[name] })
	n.nodesListed = true
}

type podStore struct{ *inventory }

// Set implements watches.ReducedStore, as do the methods below.
func (p podStore) Set(pod countedPod) { p.tally.SetPod(pod.id, pod.node, pod.requests) }

// Remove removes a deleted Pod.
func (p podStore) Remove(pod countedPod) { p.tally.RemovePod(pod.id) }

// Replace stores all Pods of a list.
func (p podStore) Replace(pods []countedPod) {
	listed := make(map[nodecapacity.PodID]bool, len(pods))
	for _, pod := range pods {
		p.Set(pod)
		listed[pod.id] = true
	}
	p.tally.PrunePods(func(id nodecapacity.PodID) bool { return listed[id] })
	p.podsListed = true
}
