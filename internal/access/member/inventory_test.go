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

func requesting(cpu string) corev1.Container {
	return corev1.Container{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}
}

func TestWhatAPodAsksFor(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	sidecar := requesting("100m")
	sidecar.RestartPolicy = &always
	tests := map[string]struct {
		spec corev1.PodSpec
		want string
	}{
		"containers are added up":                     {corev1.PodSpec{Containers: []corev1.Container{requesting("1"), requesting("500m")}}, "1500m"},
		"an init container that needs more counts":    {corev1.PodSpec{InitContainers: []corev1.Container{requesting("2")}, Containers: []corev1.Container{requesting("1")}}, "2"},
		"one that needs less does not":                {corev1.PodSpec{InitContainers: []corev1.Container{requesting("1")}, Containers: []corev1.Container{requesting("2")}}, "2"},
		"one that keeps running is added to the rest": {corev1.PodSpec{InitContainers: []corev1.Container{sidecar}, Containers: []corev1.Container{requesting("1")}}, "1100m"},
		"and to those that are initialised after it":  {corev1.PodSpec{InitContainers: []corev1.Container{sidecar, requesting("2")}, Containers: []corev1.Container{requesting("1")}}, "2100m"},
		"overhead is added": {corev1.PodSpec{
			Overhead: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}, Containers: []corev1.Container{requesting("1")},
		}, "1010m"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			i := &inventory{tally: domain.NewTally()}
			test.spec.NodeName = "n1"
			pod, ok, err := i.reducePod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "1"}, Spec: test.spec})
			if !ok || err != nil {
				t.Fatalf("a Pod does not count: %v", err)
			}
			podStore{i}.set(pod)
			_, sum := i.tally.Summary(nil)
			cpu := sum.Allocated[corev1.ResourceCPU]
			if cpu.Cmp(resource.MustParse(test.want)) != 0 {
				t.Errorf("it asks for %s, want %s", cpu.String(), test.want)
			}
		})
	}
}

// fleet is an API server that serves nodes and Pods in pages, and tells watchers
// what it is given.
type fleet struct {
	*httptest.Server
	nodes, pods int
	largest     int
	events      chan metav1.WatchEvent

	mu      sync.Mutex
	expired bool
	// varied makes each Pod ask for something else.
	varied bool
}

func newFleet(t testing.TB, nodes, pods int) *fleet {
	t.Helper()
	f := &fleet{nodes: nodes, pods: pods, events: make(chan metav1.WatchEvent)}
	mux := http.NewServeMux()
	mux.HandleFunc("/api/v1/nodes", f.serve(func() int { return f.nodes }, "NodeList", func(n int) any { return f.node(n) }))
	mux.HandleFunc("/api/v1/pods", f.serve(func() int { return f.pods }, "PodList", func(n int) any { return f.pod(n) }))
	f.Server = httptest.NewServer(mux)
	t.Cleanup(f.CloseClientConnections)
	return f
}

func (f *fleet) node(number int) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", number), UID: types.UID(fmt.Sprintf("node-%d", number))},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourcePods: resource.MustParse("110")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			Images:      make([]corev1.ContainerImage, 5),
		},
	}
}

func (f *fleet) pod(number int) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: fmt.Sprintf("web-%d", number), UID: types.UID(fmt.Sprintf("pod-%d", number)),
		Annotations: map[string]string{"note": "nobody counts this"},
	}}
	pod.Spec.Containers = []corev1.Container{requesting("100m")}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.varied {
		pod.Spec.Containers = []corev1.Container{requesting(fmt.Sprintf("%dm", 1000+number))}
	}
	if f.nodes > 0 {
		pod.Spec.NodeName = fmt.Sprintf("node-%d", number%f.nodes)
	}
	return pod
}

func (f *fleet) serve(count func() int, kind string, item func(int) any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		w.Header().Set("Content-Type", "application/json")
		if query.Get("watch") != "" {
			// From nowhere a watch would begin anywhere.
			if query.Get("resourceVersion") != "7" {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			f.tell(w, r, kind)
			return
		}
		limit, _ := strconv.Atoi(query.Get("limit"))
		from, _ := strconv.Atoi(query.Get("continue"))
		f.mu.Lock()
		late := f.expired && from > 0
		f.expired = f.expired && !late
		f.largest = max(f.largest, limit)
		f.mu.Unlock()
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

func (f *fleet) tell(w http.ResponseWriter, r *http.Request, kind string) {
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	events := f.events
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

// awaitInventory waits until the summary is as check wants it.
func awaitInventory(t testing.TB, m *Member, check func(*clusterv1alpha1.NodeSummary, *clusterv1alpha1.ResourceSummary) string) {
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

func numbers(nodes, pods int) func(*clusterv1alpha1.NodeSummary, *clusterv1alpha1.ResourceSummary) string {
	return func(n *clusterv1alpha1.NodeSummary, r *clusterv1alpha1.ResourceSummary) string {
		running := r.Allocated[corev1.ResourcePods]
		return cmp.Diff([]int64{int64(nodes), int64(pods)}, []int64{int64(n.TotalNum), running.Value()})
	}
}

func TestAnInventoryIsReadInPagesAndFollowsWhatHappens(t *testing.T) {
	f := newFleet(t, 3, 2*pageSize+1)
	f.expired = true
	m := openAt(t, f.URL)
	awaitInventory(t, m, numbers(3, 2*pageSize+1))
	if f.largest != pageSize {
		t.Errorf("%d objects were asked for at once", f.largest)
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
	tell("DELETED", f.pod(0))
	awaitInventory(t, m, numbers(3, 2*pageSize))
	tell("ADDED", f.pod(2*pageSize+1))
	awaitInventory(t, m, numbers(3, 2*pageSize+1))
	waiting := f.pod(1)
	waiting.Spec.NodeName = ""
	tell("MODIFIED", waiting)
	awaitInventory(t, m, numbers(3, 2*pageSize))
}

func TestAnInventoryRecoversFromAListBeyondItsBounds(t *testing.T) {
	f := newFleet(t, 3, pageSize)
	f.varied = true
	m := openAt(t, f.URL)
	m.bounds.Limits.ResourceListBytes = 1000
	_, _, _, err := m.Inventory(nil)
	if err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return hit(m, bounds.ResourceLists), nil
	})
	if err != nil {
		t.Fatalf("the bound was not hit: %v", err)
	}
	for _, exceeded := range m.Exceeded() {
		if exceeded.Subject != "pods.v1" {
			t.Errorf("%v, want Pods only", exceeded.Description())
		}
	}
	f.mu.Lock()
	f.varied = false
	f.mu.Unlock()
	awaitInventory(t, m, numbers(3, pageSize))
}

// BenchmarkInventoryOfALargeMember tells what it takes to know the resources of a
// member with 5 000 nodes and 100 000 Pods: the memory that it keeps, and the most
// that was in use while the first lists came, of an API server in this process.
func BenchmarkInventoryOfALargeMember(b *testing.B) {
	const nodes, pods, limit = 5_000, 100_000, 30 << 20
	for b.Loop() {
		f := newFleet(b, nodes, pods)
		before := held()
		m := openAt(b, f.URL)
		awaitInventory(b, m, numbers(nodes, pods))
		kept := held() - before
		if kept > limit {
			b.Errorf("%d MiB are kept", kept>>20)
		}
		b.ReportMetric(float64(kept)/(1<<20), "MiB-kept")
	}
}

// held is the heap in use after everything else was collected.
func held() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
