package clusterstatus

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/member"
	domain "karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/loop"
)

// newIdleMember starts the API server of a member in which nothing changes.
func newIdleMember(b testing.TB) *httptest.Server {
	b.Helper()
	answer := func(w http.ResponseWriter, kind string, content any) {
		w.Header().Set("Content-Type", kind)
		_ = json.NewEncoder(w).Encode(content)
	}
	apis := apidiscoveryv2.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{APIVersion: "apidiscovery.k8s.io/v2", Kind: "APIGroupDiscoveryList"}}
	for group := range 40 {
		version := apidiscoveryv2.APIVersionDiscovery{Version: "v1", Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
		for number := range 6 {
			version.Resources = append(version.Resources, apidiscoveryv2.APIResourceDiscovery{
				Resource: fmt.Sprintf("kind%ds", number), Scope: apidiscoveryv2.ScopeNamespace, Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"},
				ResponseKind: &metav1.GroupVersionKind{Group: fmt.Sprintf("group%d.example.io", group), Version: "v1", Kind: fmt.Sprintf("Kind%d", number)},
			})
		}
		apis.Items = append(apis.Items, apidiscoveryv2.APIGroupDiscovery{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("group%d.example.io", group)}, Versions: []apidiscoveryv2.APIVersionDiscovery{version},
		})
	}
	describe := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		if r.Header.Get("If-None-Match") == `"1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		answer(w, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", apis)
	}
	list := func(of func() any) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("watch") == "" {
				answer(w, "application/json", of())
				return
			}
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
	mux.HandleFunc("/version", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, "application/json", version.Info{GitVersion: "v1.36.3"})
	})
	mux.HandleFunc("/api", describe)
	mux.HandleFunc("/apis", describe)
	mux.HandleFunc("/api/v1/nodes", list(func() any { return newNodeList(10) }))
	mux.HandleFunc("/api/v1/pods", list(func() any { return newPodList(300) }))
	server := httptest.NewUnstartedServer(mux)
	server.EnableHTTP2 = true
	server.StartTLS()
	b.Cleanup(server.Close)
	return server
}

func newNodeList(number int) *corev1.NodeList {
	list := &corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
	for i := range number {
		node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i)}}
		node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourcePods: resource.MustParse("110")}
		list.Items = append(list.Items, node)
	}
	return list
}

func newPodList(number int) *corev1.PodList {
	list := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
	for i := range number {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%d", i), UID: types.UID(fmt.Sprintf("pod-%d", i))}}
		pod.Spec.NodeName = fmt.Sprintf("node-%d", i%10)
		pod.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")},
		}}}
		list.Items = append(list.Items, pod)
	}
	return list
}

// fakeKarmada is a control plane that stores Clusters and Secrets and counts writes.
type fakeKarmada struct {
	client.Client
	mu       sync.Mutex
	clusters map[string]*clusterv1alpha1.Cluster
	writes   int
}

func (f *fakeKarmada) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch typed := into.(type) {
	case *clusterv1alpha1.Cluster:
		f.clusters[key.Name].DeepCopyInto(typed)
	case *corev1.Secret:
		typed.Data = map[string][]byte{clusterv1alpha1.SecretTokenKey: []byte("token")}
	}
	return nil
}

func (f *fakeKarmada) Status() client.SubResourceWriter { return fakeStatusWriter{karmada: f} }

type fakeStatusWriter struct {
	client.SubResourceWriter
	karmada *fakeKarmada
}

func (f fakeStatusWriter) Update(_ context.Context, object client.Object, _ ...client.SubResourceUpdateOption) error {
	f.karmada.mu.Lock()
	defer f.karmada.mu.Unlock()
	cluster, ok := object.(*clusterv1alpha1.Cluster)
	if !ok {
		return fmt.Errorf("%T is no Cluster", object)
	}
	f.karmada.clusters[cluster.Name] = cluster.DeepCopy()
	f.karmada.writes++
	return nil
}

// BenchmarkIdleMembers measures the cost of 50 members in which nothing changes. One round consists of
// one probe of each member, which happens every 10 seconds. The API servers run in this process, so
// their cost is included.
func BenchmarkIdleMembers(b *testing.B) {
	const number = 50
	karmada := &fakeKarmada{clusters: map[string]*clusterv1alpha1.Cluster{}}
	measured, err := newClusterMetrics(prometheus.NewRegistry())
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
	members := member.NewClusters(ctx, member.Options{Karmada: karmada, Secrets: karmada})
	b.Cleanup(cancel)
	c := &controller{
		options: DefaultOptions(), karmada: karmada, members: members, now: time.Now, metrics: measured,
		events: loop.NewEvents(record.NewFakeRecorder(100 * number)),
	}
	for i := range number {
		cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("member%d", i), UID: types.UID(fmt.Sprint(i)), Finalizers: []string{clusterv1alpha1.ClusterControllerFinalizer},
		}}
		cluster.Spec = clusterv1alpha1.ClusterSpec{
			SyncMode: clusterv1alpha1.Push, APIEndpoint: newIdleMember(b).URL, InsecureSkipTLSVerification: true, ResourceModels: domain.DefaultModels(),
			SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: cluster.Name},
		}
		karmada.clusters[cluster.Name] = cluster
		b.Cleanup(func() { members.CloseMember(cluster.Name) })
	}
	round := func() (settled bool) {
		settled = true
		for name := range karmada.clusters {
			result, err := c.reconcile(b.Context(), name, types.NamespacedName{Name: name})
			if err != nil {
				b.Fatal(err)
			}
			settled = settled && result.RequeueAfter == c.options.Period
		}
		return settled
	}
	for !round() {
		runtime.Gosched()
	}
	karmada.writes = 0
	before, rounds := cpuTime(b), 0
	for b.Loop() {
		round()
		rounds++
	}
	used := (cpuTime(b) - before) / time.Duration(rounds)
	if karmada.writes > 0 {
		b.Errorf("%d writes without a change", karmada.writes)
	}
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	b.ReportMetric(100*used.Seconds()/c.options.Period.Seconds(), "%core")
	b.ReportMetric(float64(stats.HeapAlloc)/(1<<20), "MiB-heap")
	b.ReportMetric(float64(stats.Sys)/(1<<20), "MiB-process")
}

// cpuTime returns this process's CPU time.
func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
