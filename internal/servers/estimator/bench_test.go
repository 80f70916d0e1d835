package estimator

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/estimators"
	"karmada.io/karmada/internal/access/estimators/estimatorpb"
	"karmada.io/karmada/internal/domain/capacity"
)

const (
	largeNodes = 5_000
	largePods  = 100_000
)

// largeAPIServer serves the nodes and Pods of a large member in pages. Its watches have no events.
type largeAPIServer struct{ codec apiruntime.Serializer }

func (l *largeAPIServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	limit, _ := strconv.Atoi(query.Get("limit"))
	first, _ := strconv.Atoi(query.Get("continue"))
	switch {
	case query.Get("watch") != "":
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case r.URL.Path == "/api/v1/nodes":
		page := &corev1.NodeList{ListMeta: pageMeta(first, limit, largeNodes)}
		for i := first; i < min(first+limit, largeNodes); i++ {
			page.Items = append(page.Items, *largeNode(i))
		}
		l.write(w, "NodeList", page)
	case r.URL.Path == "/api/v1/pods":
		page := &corev1.PodList{ListMeta: pageMeta(first, limit, largePods)}
		for i := first; i < min(first+limit, largePods); i++ {
			page.Items = append(page.Items, *largePod(i))
		}
		l.write(w, "PodList", page)
	default:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1"}}`)
	}
}

func (l *largeAPIServer) write(w http.ResponseWriter, kind string, page apiruntime.Object) {
	page.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	w.Header().Set("Content-Type", apiruntime.ContentTypeProtobuf)
	if err := l.codec.Encode(page, w); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

func pageMeta(first, limit, total int) metav1.ListMeta {
	page := metav1.ListMeta{ResourceVersion: "1"}
	if first+limit < total {
		page.Continue = strconv.Itoa(first + limit)
	}
	return page
}

func largeNodeName(i int) string {
	return fmt.Sprintf("ip-10-0-%d-%d.eu-central-1.compute.internal", i/250, i%250)
}

func largeNode(i int) *corev1.Node {
	n := node(largeNodeName(i), "cpu=64 memory=256Gi pods=110 ephemeral-storage=100Gi hugepages-2Mi=0")
	n.Labels = map[string]string{
		corev1.LabelHostname: n.Name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64", corev1.LabelInstanceTypeStable: "m5.16xlarge",
		corev1.LabelTopologyZone: []string{"a", "b", "c"}[i%3], corev1.LabelTopologyRegion: "eu-central-1", "node.example.com/pool": "general",
	}
	for image := range 30 {
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{fmt.Sprintf("registry.example.com/shop/image-%d:v1.2.3", image)}, SizeBytes: 1 << 20})
	}
	return n
}

func largePod(i int) *corev1.Pod {
	p := controlled(pod(fmt.Sprintf("web-%d-5d4f8c9b7d-abcde", i), largeNodeName(i%largeNodes), ""), "apps/v1", "ReplicaSet", fmt.Sprintf("web-%d-5d4f8c9b7d", i/10))
	p.UID, p.Labels = types.UID(fmt.Sprintf("6fbbbdb6-f2ba-4f0d-9f6d-%012d", i)), map[string]string{"app": fmt.Sprintf("web-%d", i/10), "pod-template-hash": "5d4f8c9b7d"}
	for container := range 2 {
		c := corev1.Container{Name: fmt.Sprintf("c%d", container), Image: "registry.example.com/shop/web:v1.2.3"}
		for variable := range 20 {
			c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", variable), Value: "a value of some length for a Pod of a realistic size"})
		}
		c.Resources.Requests = list(fmt.Sprintf("cpu=%dm memory=%dMi", 100+i%400, 128+i%64))
		p.Spec.Containers = append(p.Spec.Containers, c)
	}
	return p
}

// BenchmarkLargeMember measures one request to a server of a member with 5,000 nodes and 100,000
// Pods, the time of the first lists, and the memory of the process. The memory includes the fake API
// server, which creates each page when it is requested.
func BenchmarkLargeMember(b *testing.B) {
	codec := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	api := httptest.NewServer(&largeAPIServer{codec: codec})
	b.Cleanup(api.CloseClientConnections)
	member, err := NewClients(&rest.Config{Host: api.URL, QPS: -1})
	if err != nil {
		b.Fatal(err)
	}
	server, err := New(Options{Cluster: "east", Clients: member})
	if err != nil {
		b.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	started := time.Now()
	go func() { ended <- server.Run(ctx, listener) }()
	if !server.cache.await(ctx) {
		b.Fatal("the lists are not complete")
	}
	listed := time.Since(started)
	connection, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	defer connection.Close()
	demand := capacity.Demand{Requirements: &workv1alpha2.ReplicaRequirements{ResourceRequest: list("cpu=500m memory=1Gi")}}
	request, err := estimators.EncodeReplicas("east", demand, nil)
	if err != nil {
		b.Fatal(err)
	}
	client := estimatorpb.NewEstimatorClient(connection)
	for b.Loop() {
		if response, err := client.MaxAvailableReplicas(ctx, request, grpc.WaitForReady(true)); err != nil || response.GetMaxReplicas() == 0 {
			b.Fatal(response, err)
		}
	}
	stats := runtime.MemStats{}
	runtime.ReadMemStats(&stats)
	b.ReportMetric(float64(stats.Sys)/(1<<20), "MiB-peak")
	runtime.GC()
	runtime.ReadMemStats(&stats)
	b.ReportMetric(float64(stats.HeapAlloc)/(1<<20), "MiB-held")
	b.ReportMetric(listed.Seconds(), "s-listing")
	cancel()
	if err := <-ended; err != nil {
		b.Error(err)
	}
}
