package estimator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	grpcmetadata "google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/estimators"
	"karmada.io/karmada/internal/access/estimators/estimatorpb"
	"karmada.io/karmada/internal/domain/capacity"
)

const testTimeout = 20 * time.Second

// list returns resources from a text such as "cpu=1 memory=2Gi".
func list(text string) corev1.ResourceList {
	resources := corev1.ResourceList{}
	for field := range strings.FieldsSeq(text) {
		name, quantity, _ := strings.Cut(field, "=")
		resources[corev1.ResourceName(name)] = resource.MustParse(quantity)
	}
	return resources
}

func node(name, allocatable string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Allocatable: list(allocatable)}}
}

func pod(name, on, requests string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid of " + name)},
		Spec:       corev1.PodSpec{NodeName: on, Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list(requests)}}}},
	}
}

// controlled adds a controller to an object.
func controlled[Object metav1.Object](object Object, apiVersion, kind, name string) Object {
	isController := true
	object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID("uid of " + name), Controller: &isController}})
	return object
}

// unschedulablePod returns a Pod that has waited for an hour.
func unschedulablePod(name, apiVersion, kind, owner string) *corev1.Pod {
	p := controlled(pod(name, "", "cpu=1"), apiVersion, kind, owner)
	p.Labels = map[string]string{"app": owner}
	p.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Hour)),
	}}
	return p
}

func replicaSet(name, revision, deployment string) *metav1.PartialObjectMetadata {
	return controlled(&metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID("uid of " + name), Annotations: map[string]string{"deployment.kubernetes.io/revision": revision},
		},
	}, "apps/v1", "Deployment", deployment)
}

func quota(hard, used string) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "q"}, Status: corev1.ResourceQuotaStatus{Hard: list(hard), Used: list(used)}}
}

func rollout(name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Rollout", "metadata": map[string]any{"namespace": "shop", "name": name}, "spec": spec,
	}}
}

// clients returns clients of a member with these objects.
func clients(t *testing.T, objects ...runtime.Object) (Clients, *fake.Clientset) {
	t.Helper()
	var typed, metadata, workloads []runtime.Object
	for _, object := range objects {
		switch object.(type) {
		case *metav1.PartialObjectMetadata:
			metadata = append(metadata, object)
		case *unstructured.Unstructured:
			workloads = append(workloads, object)
		default:
			typed = append(typed, object)
		}
	}
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Rollout"}, meta.RESTScopeNamespace)
	clientset, metadataClient := fake.NewClientset(typed...), metadatafake.NewSimpleMetadataClient(scheme, metadata...)
	addListVersions(&clientset.Fake)
	addListVersions(&metadataClient.Fake)
	return Clients{
		Objects: clientset, Metadata: metadataClient,
		Workloads: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), workloads...), Mapper: mapper,
	}, clientset
}

// addListVersions makes the lists of a fake client have a resource version, as those of an API server.
func addListVersions(client *clienttesting.Fake) {
	for _, reactor := range client.ReactionChain {
		simple, ok := reactor.(*clienttesting.SimpleReactor)
		if !ok {
			continue
		}
		inner := simple.Reaction
		simple.Reaction = func(action clienttesting.Action) (bool, runtime.Object, error) {
			handled, object, err := inner(action)
			if list, failure := meta.ListAccessor(object); failure == nil && err == nil {
				list.SetResourceVersion("1")
			}
			return handled, object, err
		}
	}
}

// runningServer is a server that runs during a test.
type runningServer struct {
	address  string
	registry *prometheus.Registry
	stop     func() error
}

func start(t *testing.T, o Options) *runningServer {
	t.Helper()
	s := &runningServer{registry: prometheus.NewRegistry()}
	o.Cluster, o.Registerer = "east", s.registry
	server, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx, listener) }()
	s.address = listener.Addr().String()
	s.stop = func() error { cancel(); return <-ended }
	t.Cleanup(cancel)
	return s
}

func (r *runningServer) client(t *testing.T, security credentials.TransportCredentials) estimatorpb.EstimatorClient {
	t.Helper()
	connection, err := grpc.NewClient(r.address, grpc.WithTransportCredentials(security))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return estimatorpb.NewEstimatorClient(connection)
}

func demandOfReplicas(request string) capacity.Demand {
	demand := capacity.Demand{Requirements: &workv1alpha2.ReplicaRequirements{ResourceRequest: list(request)}}
	demand.Workload.Namespace = "shop"
	return demand
}

func demandOfSets(components ...workv1alpha2.Component) capacity.Demand {
	demand := capacity.Demand{Components: components}
	demand.Workload.Namespace = "shop"
	return demand
}

func replicas(t *testing.T, client estimatorpb.EstimatorClient, cluster, request string, assumed ...capacity.AssumedWorkload) (int32, error) {
	t.Helper()
	message, err := estimators.EncodeReplicas(cluster, demandOfReplicas(request), assumed)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	response, err := client.MaxAvailableReplicas(grpcmetadata.AppendToOutgoingContext(ctx, objectKey, "kind=Deployment, name=shop/web"), message, grpc.WaitForReady(true))
	return response.GetMaxReplicas(), err
}

func component(replicas int32, request string) workv1alpha2.Component {
	return workv1alpha2.Component{Name: "c", Replicas: replicas, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: list(request)}}
}

func sets(t *testing.T, client estimatorpb.EstimatorClient, components ...workv1alpha2.Component) (int32, error) {
	t.Helper()
	message, err := estimators.EncodeSets("east", demandOfSets(components...), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	response, err := client.MaxAvailableComponentSets(ctx, message, grpc.WaitForReady(true))
	return response.GetMaxSets(), err
}

func TestEstimates(t *testing.T) {
	objects := []runtime.Object{node("a", "cpu=4 pods=10"), node("b", "cpu=8 pods=10"), pod("p", "a", "cpu=1"), pod("waiting", "", "cpu=1"), quota("cpu=5", "cpu=0")}
	assumed := capacity.AssumedWorkload{Namespace: "shop", Components: []workv1alpha2.Component{component(2, "cpu=1")}}
	tests := map[string]struct {
		quotas, assumed bool
		ask             func(*testing.T, estimatorpb.EstimatorClient) (int32, error)
		want            int32
	}{
		"replicas": {ask: func(t *testing.T, c estimatorpb.EstimatorClient) (int32, error) {
			return replicas(t, c, "east", "cpu=1")
		}, want: 11},
		"replicas within quotas": {quotas: true, ask: func(t *testing.T, c estimatorpb.EstimatorClient) (int32, error) {
			return replicas(t, c, "east", "cpu=1")
		}, want: 5},
		"replicas that fit nowhere": {quotas: true, ask: func(t *testing.T, c estimatorpb.EstimatorClient) (int32, error) {
			return replicas(t, c, "east", "cpu=9")
		}, want: 0},
		"assumed workloads": {assumed: true, ask: func(t *testing.T, c estimatorpb.EstimatorClient) (int32, error) {
			return replicas(t, c, "east", "cpu=1", assumed)
		}, want: 9},
		"assumed workloads in the quota": {quotas: true, assumed: true, ask: func(t *testing.T, c estimatorpb.EstimatorClient) (int32, error) {
			return replicas(t, c, "east", "cpu=1", assumed)
		}, want: 3},
		"assumed workloads, disabled": {ask: func(t *testing.T, c estimatorpb.EstimatorClient) (int32, error) {
			return replicas(t, c, "east", "cpu=1", assumed)
		}, want: 11},
		"sets": {ask: func(t *testing.T, c estimatorpb.EstimatorClient) (int32, error) {
			return sets(t, c, component(2, "cpu=2"))
		}, want: 2},
		"sets within quotas": {quotas: true, ask: func(t *testing.T, c estimatorpb.EstimatorClient) (int32, error) {
			return sets(t, c, component(1, "cpu=1"), component(1, "cpu=2"))
		}, want: 1},
		"sets without components": {quotas: true, ask: func(t *testing.T, c estimatorpb.EstimatorClient) (int32, error) { return sets(t, c) }, want: 2147483647},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			member, _ := clients(t, objects...)
			s := start(t, Options{Clients: member, Quotas: test.quotas, Assumed: test.assumed})
			if got, err := test.ask(t, s.client(t, insecure.NewCredentials())); err != nil || got != test.want {
				t.Errorf("%d, %v; want %d", got, err, test.want)
			}
			if err := s.stop(); err != nil {
				t.Errorf("the server ended with: %v", err)
			}
		})
	}
}

func TestUnschedulableReplicas(t *testing.T) {
	member, _ := clients(t,
		unschedulablePod("web-2-x", "apps/v1", "ReplicaSet", "web-2"), unschedulablePod("web-2-y", "apps/v1", "ReplicaSet", "web-2"),
		unschedulablePod("web-1-x", "apps/v1", "ReplicaSet", "web-1"), replicaSet("web-1", "9", "web"), replicaSet("web-2", "10", "web"),
		unschedulablePod("db-0", "apps/v1", "StatefulSet", "db"), unschedulablePod("own-0", "example.com/v1", "Rollout", "own"), pod("running", "a", "cpu=1"),
		rollout("selecting", map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "web-2"}}}),
		rollout("other", map[string]any{"selector": "app=web"}), rollout("none", nil))
	s := start(t, Options{Clients: member})
	client := s.client(t, insecure.NewCredentials())
	tests := map[string]struct {
		apiVersion, kind, namespace, name string
		threshold                         time.Duration
		want                              int32
		wantErr                           string
	}{
		"a Deployment by its newest ReplicaSet":   {apiVersion: "apps/v1", kind: "Deployment", name: "web", want: 2},
		"a Deployment without unschedulable Pods": {apiVersion: "apps/v1", kind: "Deployment", name: "api", want: 0},
		"a longer threshold":                      {apiVersion: "apps/v1", kind: "Deployment", name: "web", threshold: 2 * time.Hour, want: 0},
		"a StatefulSet":                           {apiVersion: "apps/v1", kind: "StatefulSet", name: "db", want: 1},
		"a ReplicaSet":                            {apiVersion: "apps/v1", kind: "ReplicaSet", name: "web-1", want: 1},
		"another kind that owns its Pods":         {apiVersion: "example.com/v1", kind: "Rollout", name: "own", want: 1},
		"another kind with a selector":            {apiVersion: "example.com/v1", kind: "Rollout", name: "selecting", want: 2},
		"a selector that is no label selector":    {apiVersion: "example.com/v1", kind: "Rollout", name: "other", wantErr: "kind(Rollout) of workload(shop/other) is not supported"},
		"a kind without a selector":               {apiVersion: "example.com/v1", kind: "Rollout", name: "none", wantErr: "kind(Rollout) of workload(shop/none) is not supported"},
		"a workload that does not exist":          {apiVersion: "example.com/v1", kind: "Rollout", name: "gone", wantErr: `"gone" not found`},
		"a kind that does not exist":              {apiVersion: "example.com/v1", kind: "Nothing", name: "x", wantErr: "finding the kind example.com/v1, Kind=Nothing"},
		"a namespace without unschedulable Pods":  {apiVersion: "example.com/v1", kind: "Nothing", namespace: "bank", name: "x", want: 0},
		"a version that cannot be parsed":         {apiVersion: "a/b/c", kind: "Nothing", name: "x", wantErr: "finding the kind"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			workload := workv1alpha2.ObjectReference{APIVersion: test.apiVersion, Kind: test.kind, Namespace: "shop", Name: test.name}
			if test.namespace != "" {
				workload.Namespace = test.namespace
			}
			ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
			defer cancel()
			got, err := client.GetUnschedulableReplicas(ctx, estimators.EncodeUnschedulable("east", workload, test.threshold), grpc.WaitForReady(true))
			if (err != nil) != (test.wantErr != "") || err != nil && !strings.Contains(err.Error(), test.wantErr) || got.GetUnschedulableReplicas() != test.want {
				t.Errorf("%v, %v; want %d, %q", got, err, test.want, test.wantErr)
			}
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	_, err := client.GetUnschedulableReplicas(ctx, &estimatorpb.UnschedulableReplicasRequest{Cluster: "east"})
	if status.Code(err) != codes.Unknown || status.Convert(err).Message() != "resource is nil" {
		t.Errorf("error %v of a request without a resource", err)
	}
}

func TestErrorsAndMetrics(t *testing.T) {
	member, _ := clients(t, node("a", "cpu=4 pods=10"))
	s := start(t, Options{Clients: member, Quotas: true})
	client := s.client(t, insecure.NewCredentials())
	if got, err := replicas(t, client, "east", "cpu=1"); err != nil || got != 4 {
		t.Fatalf("%d, %v", got, err)
	}
	_, err := replicas(t, client, "west", "cpu=1")
	if status.Code(err) != codes.Unknown || status.Convert(err).Message() != "cluster name does not match, got: west, desire: east" {
		t.Errorf("error %v of a request for another cluster", err)
	}
	if _, err := sets(t, client, workv1alpha2.Component{Replicas: -1}); err == nil || !strings.Contains(err.Error(), "components[0].replicas -1") {
		t.Errorf("error %v of an invalid request", err)
	}
	if _, err := replicas(t, client, "east", strings.Repeat("a.io/b=1 ", 1)+strings.Repeat("x", maxRequestBytes)+"=1"); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("error %v of a request that is too large", err)
	}
	families, err := s.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			text := family.GetName()
			for _, label := range metric.GetLabel() {
				text += " " + label.GetValue()
			}
			got[text] = true
		}
	}
	for _, want := range []string{
		"estimating_request_total success MaxAvailableReplicas", "estimating_request_total error MaxAvailableReplicas", "estimating_request_total error MaxAvailableComponentSets",
		"estimating_algorithm_duration_seconds success ListNodesByNodeClaim MaxAvailableReplicas", "estimating_algorithm_duration_seconds success MaxAvailableReplicas MaxAvailableReplicas",
		"estimating_algorithm_duration_seconds success Total MaxAvailableReplicas", "estimating_plugin_extension_point_duration_seconds EstimateReplicas",
		"estimating_plugin_execution_duration_seconds NodeResourceEstimator EstimateReplicas", "estimating_plugin_execution_duration_seconds ResourceQuotaEstimator EstimateReplicas",
	} {
		if !got["karmada_scheduler_estimator_"+want] {
			t.Errorf("no metric %s", want)
		}
	}
}

func TestServesAfterFirstLists(t *testing.T) {
	member, clientset := clients(t, node("a", "cpu=4 pods=10"))
	listing, release := make(chan struct{}), make(chan struct{})
	clientset.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		close(listing)
		<-release
		return true, &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []corev1.Pod{*pod("p", "a", "cpu=3")}}, nil
	})
	s := start(t, Options{Clients: member})
	client, answered := s.client(t, insecure.NewCredentials()), make(chan error, 1)
	go func() {
		got, err := replicas(t, client, "east", "cpu=1")
		if err == nil && got != 1 {
			err = fmt.Errorf("%d replicas, want 1", got)
		}
		answered <- err
	}()
	<-listing
	close(release)
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

func TestNewRejectsInvalidOptions(t *testing.T) {
	for name, o := range map[string]Options{
		"no cluster":             {},
		"a negative parallelism": {Cluster: "east", Parallelism: -1},
		"a missing certificate":  {Cluster: "east", Certificates: Certificates{CertFile: "missing.crt", KeyFile: "missing.key"}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := New(o); err == nil {
				t.Error("no error")
			}
		})
	}
}

func TestPanicsBecomeErrors(t *testing.T) {
	_, err := recoverPanics(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: "/x"}, func(context.Context, any) (any, error) { panic("broken") })
	if !errors.Is(err, errPanicked) || !strings.Contains(err.Error(), "broken") {
		t.Errorf("error %v", err)
	}
}

func TestRequestsWaitForSlots(t *testing.T) {
	m, err := newMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &service{cluster: "east", metrics: m, slots: make(chan struct{}, 1)}
	s.slots <- struct{}{}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the client is gone"))
	if _, err := s.handleRequest(ctx, "MaxAvailableReplicas", "east", nil); err == nil || !strings.Contains(err.Error(), "the client is gone") {
		t.Errorf("error %v", err)
	}
}

func TestSlowRequestsAreLogged(t *testing.T) {
	m, err := newMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	ctx := klog.NewContext(t.Context(), funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}))
	ctx = grpcmetadata.NewIncomingContext(ctx, grpcmetadata.Pairs(objectKey, "kind=Deployment, name=shop/web"))
	m.startTrace("MaxAvailableReplicas").finish(ctx, nil)
	slow := m.startTrace("MaxAvailableReplicas")
	slow.started = slow.started.Add(-time.Minute)
	slow.endStep("ListNodesByNodeClaim", nil)
	slow.finish(ctx, nil)
	if len(lines) != 1 || !strings.Contains(lines[0], "name=shop/web") || !strings.Contains(lines[0], "ListNodesByNodeClaim=") {
		t.Errorf("log %q, want one line with the object and the steps", lines)
	}
}

func TestReduceRejectsOtherObjects(t *testing.T) {
	object := &metav1.Status{}
	_, nodeErr := reduceNode(object)
	_, podErr := reducePod(object)
	_, quotaErr := reduceQuota(object)
	_, replicaSetErr := reduceReplicaSet(object)
	if nodeErr == nil || podErr == nil || quotaErr == nil || replicaSetErr == nil {
		t.Error("a status is stored")
	}
	if _, err := reduceReplicaSet(&appsv1.ReplicaSet{}); err != nil {
		t.Errorf("a ReplicaSet is not stored: %v", err)
	}
}
