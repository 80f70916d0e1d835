package member

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/member/bounds"
	domain "karmada.io/karmada/internal/domain/cluster"
)

func containerRequesting(cpu string) corev1.Container {
	return corev1.Container{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}
}

// pageSize is the number of objects in one page of a list.
var pageSize = int(bounds.DefaultLimits().PageSize)

func TestPodRequests(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	sidecar := containerRequesting("100m")
	sidecar.RestartPolicy = &always
	tests := map[string]struct {
		spec corev1.PodSpec
		want string
	}{
		"containers are added up":                             {corev1.PodSpec{Containers: []corev1.Container{containerRequesting("1"), containerRequesting("500m")}}, "1500m"},
		"an init container that requests more counts":         {corev1.PodSpec{InitContainers: []corev1.Container{containerRequesting("2")}, Containers: []corev1.Container{containerRequesting("1")}}, "2"},
		"an init container that requests less does not count": {corev1.PodSpec{InitContainers: []corev1.Container{containerRequesting("1")}, Containers: []corev1.Container{containerRequesting("2")}}, "2"},
		"a sidecar is added to the containers":                {corev1.PodSpec{InitContainers: []corev1.Container{sidecar}, Containers: []corev1.Container{containerRequesting("1")}}, "1100m"},
		"a sidecar is added to later init containers":         {corev1.PodSpec{InitContainers: []corev1.Container{sidecar, containerRequesting("2")}, Containers: []corev1.Container{containerRequesting("1")}}, "2100m"},
		"overhead is added": {corev1.PodSpec{
			Overhead: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}, Containers: []corev1.Container{containerRequesting("1")},
		}, "1010m"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			i := &inventory{tally: domain.NewUsageCounter()}
			test.spec.NodeName = "n1"
			pod, err := i.reducePod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "1"}, Spec: test.spec})
			if err != nil {
				t.Fatalf("a Pod does not count: %v", err)
			}
			podStore{i}.Set(pod)
			_, sum := i.tally.Summary(nil)
			cpu := sum.Allocated[corev1.ResourceCPU]
			if cpu.Cmp(resource.MustParse(test.want)) != 0 {
				t.Errorf("the requests are %s, want %s", cpu.String(), test.want)
			}
		})
	}
}

// inventoryServer is an API server that serves nodes and Pods in pages, and sends events to
// watches.
type inventoryServer struct {
	*httptest.Server
	nodes, pods int
	largestPage int
	events      chan metav1.WatchEvent

	mu        sync.Mutex
	isExpired bool
	// hasDistinctRequests makes each Pod request amounts that no other Pod requests.
	hasDistinctRequests bool
}

func newInventoryServer(t testing.TB, nodes, pods int) *inventoryServer {
	t.Helper()
	f := &inventoryServer{nodes: nodes, pods: pods, events: make(chan metav1.WatchEvent)}
	mux := http.NewServeMux()
	mux.HandleFunc("/api/v1/nodes", f.serveList(func() int { return f.nodes }, "NodeList", func(n int) any { return f.newNode(n) }))
	mux.HandleFunc("/api/v1/pods", f.serveList(func() int { return f.pods }, "PodList", func(n int) any { return f.newPod(n) }))
	f.Server = httptest.NewServer(mux)
	t.Cleanup(f.CloseClientConnections)
	return f
}

func (i *inventoryServer) newNode(number int) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", number), UID: types.UID(fmt.Sprintf("node-%d", number))},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourcePods: resource.MustParse("110")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			Images:      make([]corev1.ContainerImage, 5),
		},
	}
}

func (i *inventoryServer) newPod(number int) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: fmt.Sprintf("web-%d", number), UID: types.UID(fmt.Sprintf("pod-%d", number)),
		Annotations: map[string]string{"note": "not counted"},
	}}
	pod.Spec.Containers = []corev1.Container{containerRequesting("100m")}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.hasDistinctRequests {
		pod.Spec.Containers = []corev1.Container{containerRequesting(fmt.Sprintf("%dm", 1000+number))}
	}
	if i.nodes > 0 {
		pod.Spec.NodeName = fmt.Sprintf("node-%d", number%i.nodes)
	}
	return pod
}

func (i *inventoryServer) serveList(count func() int, kind string, item func(int) any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		w.Header().Set("Content-Type", "application/json")
		if query.Get("watch") != "" {
			// The watch must start at the version of the list. Without a resource version it would
			// start at an unknown version.
			if query.Get("resourceVersion") != "7" {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			i.serveWatch(w, r, kind)
			return
		}
		limit, _ := strconv.Atoi(query.Get("limit"))
		from, _ := strconv.Atoi(query.Get("continue"))
		i.mu.Lock()
		late := i.isExpired && from > 0
		i.isExpired = i.isExpired && !late
		i.largestPage = max(i.largestPage, limit)
		i.mu.Unlock()
		if late {
			w.WriteHeader(http.StatusGone)
			_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Reason: metav1.StatusReasonExpired, Code: http.StatusGone})
			return
		}
		to, rest := min(from+limit, count()), ""
		if to < count() {
			rest = strconv.Itoa(to)
		}
		items := []any{}
		for n := from; n < to; n++ {
			items = append(items, item(n))
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"resourceVersion": "7", "continue": rest}, "items": items,
		})
	}
}

func (i *inventoryServer) serveWatch(w http.ResponseWriter, r *http.Request, kind string) {
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	events := i.events
	if kind != "PodList" {
		events = nil
	}
	for {
		select {
		case <-r.Context().Done():
			return
		case event := <-events:
			_ = json.NewEncoder(w).Encode(event)
			w.(http.Flusher).Flush()
		}
	}
}

// waitForInventory waits until check accepts the summary.
func waitForInventory(t testing.TB, m *Member, check func(*clusterv1alpha1.NodeSummary, *clusterv1alpha1.ResourceSummary) string) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	limit := time.After(time.Minute)
	wrong := "the first lists have not arrived"
	for {
		nodes, resources, _, err := m.Inventory(nil)
		if err != nil {
			t.Fatal(err)
		}
		if nodes != nil {
			if wrong = check(nodes, resources); wrong == "" {
				return
			}
		}
		select {
		case <-limit:
			t.Fatal(wrong)
		case <-ticker.C:
		}
	}
}

func wantCounts(nodes, pods int) func(*clusterv1alpha1.NodeSummary, *clusterv1alpha1.ResourceSummary) string {
	return func(n *clusterv1alpha1.NodeSummary, r *clusterv1alpha1.ResourceSummary) string {
		running := r.Allocated[corev1.ResourcePods]
		return cmp.Diff([]int64{int64(nodes), int64(pods)}, []int64{int64(n.TotalNum), running.Value()})
	}
}

func TestInventoryListsPagesAndWatches(t *testing.T) {
	f := newInventoryServer(t, 3, 2*pageSize+1)
	f.isExpired = true
	m := openAt(t, f.URL)
	waitForInventory(t, m, wantCounts(3, 2*pageSize+1))
	if f.largestPage != pageSize {
		t.Errorf("%d objects were requested at once", f.largestPage)
	}
	tell := func(kind string, pod *corev1.Pod) {
		pod.TypeMeta, pod.ResourceVersion = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, "8"
		raw, err := json.Marshal(pod)
		if err != nil {
			t.Fatal(err)
		}
		event := metav1.WatchEvent{Type: kind}
		event.Object.Raw = raw
		f.events <- event
	}
	tell("DELETED", f.newPod(0))
	waitForInventory(t, m, wantCounts(3, 2*pageSize))
	tell("ADDED", f.newPod(2*pageSize+1))
	waitForInventory(t, m, wantCounts(3, 2*pageSize+1))
	waiting := f.newPod(1)
	waiting.Spec.NodeName = ""
	tell("MODIFIED", waiting)
	waitForInventory(t, m, wantCounts(3, 2*pageSize))
}

func TestInventoryRecoversFromExceededBounds(t *testing.T) {
	f := newInventoryServer(t, 3, pageSize)
	f.hasDistinctRequests = true
	m := openAt(t, f.URL)
	m.bounds.Limits.ResourceListBytes = 1000
	_, _, _, err := m.Inventory(nil)
	if err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return hasExceeded(m, bounds.ResourceLists), nil
	})
	if err != nil {
		t.Fatalf("the bound was not exceeded: %v", err)
	}
	for _, exceeded := range m.ExceededBounds() {
		if exceeded.Subject != "pods.v1" {
			t.Errorf("%v, want Pods only", exceeded.Description())
		}
	}
	f.mu.Lock()
	f.hasDistinctRequests = false
	f.mu.Unlock()
	waitForInventory(t, m, wantCounts(3, pageSize))
}

// BenchmarkInventoryOfLargeMember measures the memory of the inventory of a member with 5 000 nodes
// and 100 000 Pods. It measures the memory that the inventory keeps, and the maximum memory while
// the first lists are read from an API server in this process.
func BenchmarkInventoryOfLargeMember(b *testing.B) {
	const nodes, pods, limit = 5_000, 100_000, 30 << 20
	for b.Loop() {
		f := newInventoryServer(b, nodes, pods)
		before := heapInUse()
		m := openAt(b, f.URL)
		waitForInventory(b, m, wantCounts(nodes, pods))
		kept := heapInUse() - before
		if kept > limit {
			b.Errorf("%d MiB are kept", kept>>20)
		}
		b.ReportMetric(float64(kept)/(1<<20), "MiB-kept")
	}
}

// heapInUse returns the heap in use after a garbage collection.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
