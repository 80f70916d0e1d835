package member

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"karmada.io/karmada/internal/access/watches"
)

const (
	// managedPageSize is the number of objects in one response. maxParallelManagedLists is the number of
	// kinds of a member that are listed at once.
	managedPageSize         = 500
	maxParallelManagedLists = 8
)

// ManagedObject contains the metadata and the kind of an object in a member.
type ManagedObject struct {
	*unstructured.Unstructured
	Resource schema.GroupVersionResource
}

// ManagedObjects are the objects of a member that have the managed label. An object of a kind that is not in
// Kinds is unknown, not deleted.
type ManagedObjects struct {
	Objects []ManagedObject
	// Kinds are the kinds that were read completely.
	Kinds sets.Set[schema.GroupKind]
}

// ListManaged returns the managed objects of all kinds that can be listed and deleted, in any order. The
// error names the kinds that could not be read. The result contains the objects of the kinds that
// could be read.
func ListManaged(ctx context.Context, config *rest.Config) (ManagedObjects, error) {
	// Warnings are disabled, because otherwise each deprecated kind would log one.
	config = rest.CopyConfig(config)
	config.WarningHandler, config.WarningHandlerWithContext = rest.NoWarnings{}, nil
	found := ManagedObjects{Kinds: sets.New[schema.GroupKind]()}
	api, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return found, fmt.Errorf("making a client: %w", err)
	}
	member, err := metadata.NewForConfig(config)
	if err != nil {
		return found, fmt.Errorf("making a client: %w", err)
	}
	lists, failure := api.ServerPreferredResources()
	if failure != nil {
		failure = fmt.Errorf("not all kinds could be listed: %w", failure)
	}
	failures := []error{failure}
	var mu sync.Mutex
	var reading errgroup.Group
	reading.SetLimit(maxParallelManagedLists)
	for kind, resource := range listableKinds(lists) {
		reading.Go(func() error {
			objects, err := listManagedKind(ctx, member, kind, resource)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
				// Discovery returned this kind, but the member does not list it.
			case err != nil:
				failures = append(failures, fmt.Errorf("%s could not be listed: %w", resource.GroupResource(), err))
			default:
				found.Kinds.Insert(kind.GroupKind())
				found.Objects = append(found.Objects, objects...)
			}
			return nil
		})
	}
	_ = reading.Wait()
	return found, joinSortedErrors(failures)
}

// joinSortedErrors joins errors, sorted by their texts.
func joinSortedErrors(failures []error) error {
	failures = slices.DeleteFunc(failures, func(err error) bool { return err == nil })
	slices.SortFunc(failures, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(failures...)
}

// listableKinds returns the kinds whose objects can be listed and deleted. It skips events and
// metrics, because Karmada never delivers them.
func listableKinds(lists []*metav1.APIResourceList) map[schema.GroupVersionKind]schema.GroupVersionResource {
	kinds := map[schema.GroupVersionKind]schema.GroupVersionResource{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for i := range list.APIResources {
			r := &list.APIResources[i]
			skipped := r.Kind == "Event" || version.Group == "metrics.k8s.io" || strings.Contains(r.Name, "/")
			if !skipped && slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "get") && slices.Contains(r.Verbs, "delete") {
				kinds[version.WithKind(r.Kind)] = version.WithResource(r.Name)
			}
		}
	}
	return kinds
}

func listManagedKind(ctx context.Context, member metadata.Interface, kind schema.GroupVersionKind,
	resource schema.GroupVersionResource) ([]ManagedObject, error) {
	var found []ManagedObject
	page := metav1.ListOptions{Limit: managedPageSize, LabelSelector: watches.ManagedSelector}
	for {
		list, err := member.Resource(resource).List(ctx, page)
		if err != nil {
			return nil, err // the caller names the kind
		}
		for i := range list.Items {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&metav1.PartialObjectMetadata{ObjectMeta: list.Items[i].ObjectMeta})
			if err != nil {
				return nil, fmt.Errorf("reading %s: %w", list.Items[i].Name, err)
			}
			object := &unstructured.Unstructured{Object: content}
			object.SetGroupVersionKind(kind)
			found = append(found, ManagedObject{Unstructured: object, Resource: resource})
		}
		if page.Continue = list.GetContinue(); page.Continue == "" {
			return found, nil
		}
	}
}
