package objectcache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/member"
)

// connection is the connection to one member that all watches of the member share.
type connection struct {
	member  *member.Member
	objects *dynamic.DynamicClient
}

// connections holds the connection to each member. It opens a connection again if the member package
// did, for example because the Cluster has another address.
type connections struct {
	members Members

	mu   sync.Mutex
	open map[string]*connection
	// closing has a channel for each connection that is being closed. It is closed at the end.
	closing map[string]chan struct{}
}

// get returns the connection to a member. It sends no request to the member.
func (c *connections) get(ctx context.Context, cluster *clusterv1alpha1.Cluster) (*connection, error) {
	if err := c.awaitClosed(ctx, cluster.Name); err != nil {
		return nil, fmt.Errorf("connecting to cluster %q: %w", cluster.Name, err)
	}
	opened, err := c.members.GetForCluster(ctx, cluster)
	if err != nil {
		return nil, fmt.Errorf("connecting to cluster %q: %w", cluster.Name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if existing := c.open[cluster.Name]; existing != nil && existing.member == opened {
		return existing, nil
	}
	config := opened.Config()
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making the HTTP client for cluster %q: %w", cluster.Name, err)
	}
	objects, err := dynamic.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("making the client for cluster %q: %w", cluster.Name, err)
	}
	c.open[cluster.Name] = &connection{member: opened, objects: objects}
	return c.open[cluster.Name], nil
}

// awaitClosed waits until the connection to an older cluster with the same name is closed. Otherwise the
// new connection would be closed.
func (c *connections) awaitClosed(ctx context.Context, cluster string) error {
	for {
		c.mu.Lock()
		closing := c.closing[cluster]
		c.mu.Unlock()
		if closing == nil {
			return nil
		}
		select {
		case <-closing:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// beginClose makes get wait, and returns a function that closes the connection to a cluster that is gone.
func (c *connections) beginClose(cluster string) func() {
	closing := make(chan struct{})
	c.mu.Lock()
	defer c.mu.Unlock()
	previous := c.closing[cluster]
	c.closing[cluster] = closing
	delete(c.open, cluster)
	return func() {
		if previous != nil {
			<-previous
		}
		c.members.CloseMember(cluster)
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.closing[cluster] == closing {
			delete(c.closing, cluster)
		}
		close(closing)
	}
}

// errNotServed reports that a member does not serve a kind.
var errNotServed = errors.New("the cluster does not serve the kind")

// discover returns the source of a kind as the member serves the kind now. The error matches
// errNotServed if the member says that it does not serve the kind, or does not offer lists and
// watches of the kind.
func (c *connection) discover(ctx context.Context, cluster string, kind schema.GroupVersionKind) (Source, error) {
	list, err := c.member.Resources(ctx, kind.GroupVersion())
	if apierrors.IsNotFound(err) {
		return Source{}, fmt.Errorf("cluster %q, %s in %s: %w", cluster, kind.Kind, kind.GroupVersion(), errNotServed)
	}
	if err != nil {
		return Source{}, fmt.Errorf("listing the kinds of %s in cluster %q: %w", kind.GroupVersion(), cluster, err)
	}
	for _, resource := range list.APIResources {
		if resource.Kind != kind.Kind || strings.Contains(resource.Name, "/") {
			continue
		}
		if !slices.Contains(resource.Verbs, "list") || !slices.Contains(resource.Verbs, "watch") {
			return Source{}, fmt.Errorf("cluster %q offers no list and watch of %s in %s: %w", cluster, kind.Kind, kind.GroupVersion(), errNotServed)
		}
		return Source{Cluster: cluster, Kind: kind, Resource: resource.Name, Namespaced: resource.Namespaced}, nil
	}
	return Source{}, fmt.Errorf("cluster %q, %s in %s: %w", cluster, kind.Kind, kind.GroupVersion(), errNotServed)
}
