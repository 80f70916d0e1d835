package standalone

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"
)

func TestResourceUsage(t *testing.T) {
	for name, test := range map[string]struct {
		annotation, request, want string
	}{
		"an annotation":               {annotation: "180m", request: "100m", want: "180m"},
		"an annotation of zero":       {annotation: "0", request: "100m", want: "0"},
		"half of the request":         {request: "100m", want: "50m"},
		"no request":                  {request: "0", want: "1m"},
		"an invalid annotation":       {annotation: "much", request: "1", want: "500m"},
		"a negative annotation":       {annotation: "-1", request: "1", want: "500m"},
		"a request below the minimum": {request: "1m", want: "1m"},
	} {
		t.Run(name, func(t *testing.T) {
			got := resourceUsage(test.annotation, resource.MustParse(test.request), resource.MustParse("1m"))
			if want := resource.MustParse(test.want); got.Cmp(want) != 0 {
				t.Errorf("usage %s, want %s", got.String(), want.String())
			}
		})
	}
}

func TestMetricsOfPodsAndNodes(t *testing.T) {
	pod := func(name, node string, phase corev1.PodPhase, cpu string) *corev1.Pod {
		container := corev1.Container{Name: "web", Image: "nginx", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}
		whole := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name},
			Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{container}}, Status: corev1.PodStatus{Phase: phase},
		}
		kept, err := keepRequests(whole)
		if err != nil {
			t.Fatal(err)
		}
		return kept.(*corev1.Pod)
	}
	pods := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc})
	for _, each := range []*corev1.Pod{pod("one", "x", corev1.PodRunning, "200m"), pod("two", "x", corev1.PodRunning, "400m"), pod("done", "x", corev1.PodSucceeded, "1"), pod("far", "y", corev1.PodRunning, "1")} {
		if err := pods.Add(each); err != nil {
			t.Fatal(err)
		}
	}
	m := newSimulatedMetrics()
	m.now = func() time.Time { return time.Unix(100, 0) }
	m.listers.Store(&listers{corelisters.NewPodLister(pods), m.listers.Load().nodes})

	ofNodes, err := m.GetNodeMetrics(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "x"}})
	if err != nil || len(ofNodes) != 1 || ofNodes[0].Usage.Cpu().MilliValue() != 301 {
		t.Errorf("metrics of the node: %v, %v", ofNodes, err)
	}
	named := func(name string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}}
	}
	ofPods, err := m.GetPodMetrics(named("two"), named("done"), named("absent"))
	if err != nil || len(ofPods) != 1 || ofPods[0].Name != "two" || ofPods[0].Containers[0].Usage.Cpu().MilliValue() != 200 {
		t.Errorf("metrics of Pods: %v, %v", ofPods, err)
	}
}

func TestSimulatedAddressesAreInTheirRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		address, err := netip.ParseAddr(simulatedAddress(types.UID(rapid.String().Draw(t, "UID"))))
		if err != nil || !addressPrefix.Contains(address) {
			t.Errorf("address %s, %v", address, err)
		}
	})
}

func TestLoadBalancerIngress(t *testing.T) {
	service := func(kind corev1.ServiceType, address string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{UID: "u"}, Spec: corev1.ServiceSpec{Type: kind, LoadBalancerIP: address}}
	}
	for name, test := range map[string]struct {
		service *corev1.Service
		want    []string
	}{
		"no load balancer":              {service: service(corev1.ServiceTypeNodePort, "")},
		"an address of its own":         {service: service(corev1.ServiceTypeLoadBalancer, ""), want: []string{simulatedAddress("u")}},
		"an address that the user sets": {service: service(corev1.ServiceTypeLoadBalancer, "10.0.0.7"), want: []string{"10.0.0.7"}},
		"an invalid address":            {service: service(corev1.ServiceTypeLoadBalancer, "web"), want: []string{simulatedAddress("u")}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, ingress := range loadBalancerIngress(test.service) {
				got = append(got, ingress.IP)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("addresses (-want +got):\n%s", diff)
			}
		})
	}
}
