package estimator

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// Clients are the clients of the API server of the member.
type Clients struct {
	// Objects reads nodes, Pods and ResourceQuotas. Metadata reads ReplicaSets.
	Objects  kubernetes.Interface
	Metadata metadata.Interface
	// Workloads and Mapper read workloads of any kind.
	Workloads dynamic.Interface
	Mapper    meta.RESTMapper
}

// NewClients returns the clients for a member. They send no request yet.
func NewClients(member *rest.Config) (Clients, error) {
	config := rest.CopyConfig(member)
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return Clients{}, fmt.Errorf("making a client of the member: %w", err)
	}
	protobuf := rest.CopyConfig(config)
	protobuf.ContentType = runtime.ContentTypeProtobuf
	protobuf.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	objects, err := kubernetes.NewForConfigAndClient(protobuf, httpClient)
	if err != nil {
		return Clients{}, fmt.Errorf("making a client of the member: %w", err)
	}
	metadataClient, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), httpClient)
	if err != nil {
		return Clients{}, fmt.Errorf("making a client of the member: %w", err)
	}
	workloads, err := dynamic.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return Clients{}, fmt.Errorf("making a client of the member: %w", err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(objects.Discovery()))
	return Clients{Objects: objects, Metadata: metadataClient, Workloads: workloads, Mapper: mapper}, nil
}

// selectors reads the Pod selectors of workloads.
type selectors func(ctx context.Context, workload workv1alpha2.ObjectReference) (labels.Selector, error)

// errNoSelector is returned for a workload without a Pod selector.
var errNoSelector = errors.New("the kind has no Pod selector in spec.selector")

func (c Clients) selectors() selectors {
	return func(ctx context.Context, workload workv1alpha2.ObjectReference) (labels.Selector, error) {
		kind := schema.FromAPIVersionAndKind(workload.APIVersion, workload.Kind)
		mapping, err := c.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return nil, fmt.Errorf("finding the kind %s in the member: %w", kind, err)
		}
		object, err := c.Workloads.Resource(mapping.Resource).Namespace(workload.Namespace).Get(ctx, workload.Name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("reading %s %s/%s of the member: %w", workload.Kind, workload.Namespace, workload.Name, err)
		}
		return podSelector(object)
	}
}

// podSelector returns the label selector in spec.selector of a workload.
func podSelector(workload *unstructured.Unstructured) (labels.Selector, error) {
	fields, found, err := unstructured.NestedMap(workload.Object, "spec", "selector")
	if err != nil || !found || len(fields) == 0 {
		return nil, errNoSelector
	}
	selector := &metav1.LabelSelector{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(fields, selector, true); err != nil {
		return nil, errors.Join(errNoSelector, err)
	}
	return metav1.LabelSelectorAsSelector(selector)
}
