package watches_test

import (
	"context"
	"fmt"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"karmada.io/karmada/internal/access/watches"
	"karmada.io/karmada/internal/access/watches/watchestest"
	"karmada.io/karmada/internal/loop"
)

const byService = "service"

// watchEndpointSlices watches the EndpointSlices of all members, indexed by their Service.
func watchEndpointSlices(manager *watches.Manager, enqueue func(cluster, service string)) (*watches.Fleet, error) {
	query := watches.Query{Kind: discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice")}
	return manager.SubscribeFleet(query, func(cluster string) watches.Subscriber {
		enqueueService := func(slice *unstructured.Unstructured) { enqueue(cluster, serviceOf(slice)) }
		return watches.Subscriber{
			Handler: loop.Handlers[*unstructured.Unstructured]{
				Added:   func(slice *unstructured.Unstructured, _ bool) { enqueueService(slice) },
				Updated: func(_, slice *unstructured.Unstructured) { enqueueService(slice) },
				Deleted: enqueueService,
			},
			Indexers: toolscache.Indexers{byService: func(object any) ([]string, error) {
				return []string{serviceOf(object.(*unstructured.Unstructured))}, nil
			}},
		}
	})
}

// endpointSlicesOf returns the EndpointSlices of a Service in one member.
func endpointSlicesOf(fleet *watches.Fleet, cluster, service string) ([]*unstructured.Unstructured, error) {
	objects, isConnected := fleet.In(cluster)
	if !isConnected {
		return nil, fmt.Errorf("cluster %s is not connected", cluster)
	}
	slices, isUsable := objects.ByIndex(byService, service)
	if !isUsable {
		return nil, fmt.Errorf("the EndpointSlices of cluster %s are not known: %w", cluster, objects.State().Err)
	}
	return slices, nil
}

func serviceOf(slice *unstructured.Unstructured) string {
	return slice.GetNamespace() + "/" + slice.GetLabels()[discoveryv1.LabelServiceName]
}

func ExampleManager_SubscribeFleet() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	member := fake.NewClientBuilder().WithObjects(&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-x7x2p", Labels: map[string]string{discoveryv1.LabelServiceName: "web"},
	}}).Build()
	manager := watches.NewManager(ctx)
	manager.Connect("member1", watchestest.NewServer(member, func(schema.GroupVersionKind) bool { return true }))

	changes := make(chan string, 1)
	fleet, err := watchEndpointSlices(manager, func(cluster, service string) { changes <- cluster + " " + service })
	if err != nil {
		fmt.Println(err)
		return
	}
	defer fleet.Close()
	fmt.Println("changed:", <-changes)
	slices, err := endpointSlicesOf(fleet, "member1", "shop/web")
	fmt.Println(len(slices), "EndpointSlice", err)
	// Output:
	// changed: member1 shop/web
	// 1 EndpointSlice <nil>
}
