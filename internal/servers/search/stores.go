package search

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
	"karmada.io/karmada/internal/servers/search/objectcache"
	"karmada.io/karmada/internal/servers/search/opensearch"
)

const (
	// selectionDelay is the debounce time for changes of the back ends.
	selectionDelay = time.Second
	// ownerRetry is the interval at which reading the identity of the control plane is retried.
	ownerRetry = 5 * time.Second
)

// addStatus adds the writer of ResourceRegistry statuses. One replica runs it.
func (a *assembly) addStatus(context.Context) error {
	scheme := runtime.NewScheme()
	if err := searchv1alpha1.AddToScheme(scheme); err != nil {
		return fmt.Errorf("registering types: %w", err)
	}
	registries, err := client.New(a.registries, client.Options{
		Scheme: scheme, Mapper: newMapper(searchv1alpha1.GroupVersion.WithKind(searchv1alpha1.ResourceRegistryKind)),
		Cache: &client.CacheOptions{Reader: a.karmada},
	})
	if err != nil {
		return fmt.Errorf("making a client of ResourceRegistries: %w", err)
	}
	a.stores = &openSearchStores{cache: a.cache, karmada: a.karmadaClient, clusters: a.karmada.clusterNames}
	a.leader.tasks = append(a.leader.tasks, func(ctx context.Context) {
		// Each term as the leader has a new writer, because another replica may have written in between.
		newRegistryStatusWriter(registryStatusOptions{Karmada: registries, Cache: a.cache, Problems: a.stores.problem}).Run(ctx)
	})
	return nil
}

// addOpenSearch adds the OpenSearch back ends. One replica runs them.
func (a *assembly) addOpenSearch(context.Context) error {
	if a.options.DisableSearch {
		return nil
	}
	a.metrics.openSearch = a.stores.states
	a.leader.tasks = append(a.leader.tasks, a.stores.run)
	return nil
}

// openSearchStores runs the OpenSearch back ends while this replica is the leader.
type openSearchStores struct {
	cache    *objectcache.Cache
	karmada  kubernetes.Interface
	clusters func() []string
	// manager is nil while this replica is not the leader.
	manager atomic.Pointer[opensearch.Manager]
}

// run stores objects until ctx ends.
func (o *openSearchStores) run(ctx context.Context) {
	select {
	case <-o.cache.Evaluated():
	case <-ctx.Done():
		return
	}
	owner, err := o.awaitOwner(ctx)
	if err != nil {
		return // the server ends
	}
	manager := opensearch.NewManager(o.cache, opensearch.Options{Owner: owner, Secret: o.readSecret}, opensearch.Limits{})
	o.manager.Store(manager)
	defer o.manager.Store(nil)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		manager.Run(ctx)
	}()
	o.followSelection(ctx, manager)
	<-ended
}

// followSelection passes the back ends that the registries select to the manager.
func (o *openSearchStores) followSelection(ctx context.Context, manager *opensearch.Manager) {
	var last map[string]opensearch.Backend
	for ctx.Err() == nil {
		changed := o.cache.StatesChanged()
		if selected := o.selected(); last == nil || !maps.EqualFunc(last, selected, isSameBackend) {
			manager.Select(selected)
			last = selected
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(selectionDelay):
		case <-ctx.Done():
		}
	}
}

// selected returns the back end of each cluster that has one.
func (o *openSearchStores) selected() map[string]opensearch.Backend {
	selected := map[string]opensearch.Backend{}
	for _, cluster := range o.clusters() {
		if config := o.cache.OpenSearch(cluster); config != nil {
			selected[cluster] = opensearch.Backend{
				Addresses: config.Addresses, SecretNamespace: config.SecretRef.Namespace, SecretName: config.SecretRef.Name,
			}
		}
	}
	return selected
}

func isSameBackend(a, b opensearch.Backend) bool {
	return a.SecretNamespace == b.SecretNamespace && a.SecretName == b.SecretName && slices.Equal(a.Addresses, b.Addresses)
}

// awaitOwner returns the identity of the control plane. It retries until ctx ends.
func (o *openSearchStores) awaitOwner(ctx context.Context) (owner string, err error) {
	err = wait.PollUntilContextCancel(ctx, ownerRetry, true, func(ctx context.Context) (bool, error) {
		namespace, err := o.karmada.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		if err != nil {
			klog.FromContext(ctx).Error(err, "Reading the identity of the control plane; retrying", "namespace", metav1.NamespaceSystem)
			return false, nil
		}
		owner = string(namespace.UID)
		return true, nil
	})
	return owner, err
}

// readSecret returns the data of a Secret of the control plane, or nil if it does not exist.
func (o *openSearchStores) readSecret(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	secret, err := o.karmada.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s/%s: %w", namespace, name, err)
	}
	return secret.Data, nil
}

// problem returns what is wrong with a cluster's objects in its back end, or "".
func (o *openSearchStores) problem(cluster string) string {
	manager := o.manager.Load()
	if manager == nil {
		return ""
	}
	state, selected := manager.StateOf(cluster)
	if !selected {
		return ""
	}
	return state.Problem(cluster)
}

// states returns the states of the back ends. They are empty while this replica is not the leader.
func (o *openSearchStores) states() []openSearchState {
	manager := o.manager.Load()
	if manager == nil {
		return nil
	}
	var states []openSearchState
	for _, state := range manager.States() {
		states = append(states, openSearchState{backend: state.Backend.String(), feed: state.Feed, rejected: state.Rejected})
	}
	return states
}
