package member

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	podresources "k8s.io/component-helpers/resource"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/member/bounds"
	domain "karmada.io/karmada/internal/domain/cluster"
)

// inventory watches the nodes and Pods of a member and counts them as they come
// and go. No object is kept: a list is read page by page, and of each node and Pod
// only what counts remains.
type inventory struct {
	start sync.Once
	err   error
	since time.Time
	ended sync.WaitGroup

	mu                      sync.Mutex
	tally                   *domain.Tally
	nodesListed, podsListed bool
	last                    *summary
}

// summary is what was told last, and what it was told of.
type summary struct {
	version   uint64
	models    []clusterv1alpha1.ResourceModel
	nodes     *clusterv1alpha1.NodeSummary
	resources *clusterv1alpha1.ResourceSummary
}

// Inventory is what the member has to offer and what of it is in use; models are
// the grades by which its nodes are counted. The answer is nil until the first
// lists have arrived, for which waited tells how long. It is the caller's.
func (m *Member) Inventory(models []clusterv1alpha1.ResourceModel) (
	nodes *clusterv1alpha1.NodeSummary, resources *clusterv1alpha1.ResourceSummary, waited time.Duration, err error,
) {
	i := &m.inventory
	i.start.Do(func() {
		i.since, i.tally = time.Now(), domain.NewTally()
		i.err = i.watch(m.ctx, m)
	})
	if i.err != nil {
		return nil, nil, 0, i.err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.nodesListed || !i.podsListed {
		return nil, nil, time.Since(i.since), nil
	}
	if i.last == nil || i.last.version != i.tally.Version() || !equality.Semantic.DeepEqual(i.last.models, models) {
		i.last = &summary{version: i.tally.Version(), models: models}
		i.last.nodes, i.last.resources = i.tally.Summary(models)
	}
	return i.last.nodes.DeepCopy(), i.last.resources.DeepCopy(), 0, nil
}

func (i *inventory) watch(ctx context.Context, m *Member) error {
	config := patiently(m.config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making client for the inventory of member %q: %w", m.Name, err)
	}
	nodes, pods := client.CoreV1().Nodes(), client.CoreV1().Pods("")
	i.ended.Go(func() {
		reflectInto(ctx, "nodes of "+m.Name, feed[countedNode]{
			list:   func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return nodes.List(ctx, o) },
			watch:  func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return nodes.Watch(ctx, o) },
			reduce: i.reduceNode,
			check:  func(listed int) error { return i.check(m, bounds.Nodes, "nodes.v1", listed, m.bounds.Limits.Nodes) },
		}, nodeStore{i})
	})
	i.ended.Go(func() {
		reflectInto(ctx, "Pods of "+m.Name, feed[countedPod]{
			list:     func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return pods.List(ctx, o) },
			watch:    func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return pods.Watch(ctx, o) },
			selector: running(),
			reduce:   i.reducePod,
			check:    func(listed int) error { return i.check(m, bounds.Pods, "pods.v1", listed, m.bounds.Limits.Pods) },
		}, podStore{i})
	})
	return nil
}

// check returns an error if the listed or the counted objects, or the resources that
// they name, are more than the bounds allow.
func (i *inventory) check(m *Member, bound bounds.Bound, subject string, listed, limit int) error {
	i.mu.Lock()
	nodes, pods, texts := i.tally.Held()
	i.mu.Unlock()
	counted := pods
	if bound == bounds.Nodes {
		counted = nodes
	}
	return cmp.Or(
		m.exceeds(bound, subject, "objects", max(listed, counted), limit),
		m.exceeds(bounds.Requests, subject, "bytes in different lists of resources", texts, m.bounds.Limits.RequestBytes))
}

// running selects the Pods that have not finished.
func running() string {
	return fields.AndSelectors(
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)),
	).String()
}

// countedNode is what counts of a node.
type countedNode struct {
	name        string
	ready       bool
	allocatable *domain.Amounts
}

func (i *inventory) reduceNode(object runtime.Object) (countedNode, bool) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return countedNode{}, false
	}
	counted := countedNode{name: node.Name}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			counted.ready = condition.Status == corev1.ConditionTrue
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	counted.allocatable = i.tally.Intern(node.Status.Allocatable)
	return counted, true
}

// countedPod is what counts of a Pod: where it runs, and what it asks for.
type countedPod struct {
	id       domain.PodID
	node     string
	requests *domain.Amounts
}

func (i *inventory) reducePod(object runtime.Object) (countedPod, bool) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return countedPod{}, false
	}
	requests := podresources.PodRequests(pod, podresources.PodResourcesOptions{})
	i.mu.Lock()
	defer i.mu.Unlock()
	return countedPod{id: fingerprint(pod.UID), node: pod.Spec.NodeName, requests: i.tally.Intern(requests)}, true
}

func fingerprint(uid types.UID) (id domain.PodID) {
	hash := fnv.New128a()
	_, _ = hash.Write([]byte(uid))
	hash.Sum(id[:0])
	return id
}

type nodeStore struct{ *inventory }

func (s nodeStore) set(node countedNode) { s.tally.SetNode(node.name, node.ready, node.allocatable) }

func (s nodeStore) remove(node countedNode) { s.tally.RemoveNode(node.name) }

func (s nodeStore) replace(nodes []countedNode) {
	listed := make(map[string]bool, len(nodes))
	for _, node := range nodes {
		s.set(node)
		listed[node.name] = true
	}
	s.tally.KeepNodes(func(name string) bool { return listed[name] })
	s.nodesListed = true
}

func (s nodeStore) lock() *sync.Mutex { return &s.mu }

type podStore struct{ *inventory }

func (s podStore) set(pod countedPod) { s.tally.SetPod(pod.id, pod.node, pod.requests) }

func (s podStore) remove(pod countedPod) { s.tally.RemovePod(pod.id) }

func (s podStore) replace(pods []countedPod) {
	listed := make(map[domain.PodID]bool, len(pods))
	for _, pod := range pods {
		s.set(pod)
		listed[pod.id] = true
	}
	s.tally.KeepPods(func(id domain.PodID) bool { return listed[id] })
	s.podsListed = true
}

func (s podStore) lock() *sync.Mutex { return &s.mu }
