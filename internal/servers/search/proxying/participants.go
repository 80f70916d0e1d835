package proxying

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"karmada.io/karmada/internal/access/fanout"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

// participant is a cluster whose objects a request concerns.
type participant struct {
	*objectcache.ClusterObjects
	cluster string
	// namespace is the namespace to request from the cluster. Empty means all namespaces.
	namespace string
	// only contains the namespaces to which a request for all namespaces is restricted. Nil means no
	// restriction.
	only []string
}

// withoutObjects returns a copy without the objects, because a watch must not keep them in memory.
func (p *participant) withoutObjects() *participant {
	return &participant{cluster: p.cluster, namespace: p.namespace, only: p.only}
}

// includes reports whether the registries permit the proxy to show objects in the namespace.
func (p *participant) includes(namespace string) bool {
	return p.only == nil || slices.Contains(p.only, namespace)
}

// participants returns the clusters in the snapshot that the request concerns, sorted by name.
func (r *request) participants(snapshot *objectcache.Snapshot) []*participant {
	var all []*participant
	for _, objects := range snapshot.Clusters() {
		p := &participant{ClusterObjects: objects, cluster: objects.Source().Cluster, namespace: r.namespace()}
		if registered := objects.Namespaces(); registered != nil && r.kind.Namespaced() {
			switch {
			case len(registered) == 0, p.namespace != "" && !slices.Contains(registered, p.namespace):
				continue // the registries exclude the namespace
			case p.namespace == "" && len(registered) == 1:
				p.namespace = registered[0]
			case p.namespace == "":
				p.only = registered
			}
		}
		all = append(all, p)
	}
	return all
}

// namespace returns the namespace that the request has in the cache, which is empty for a
// cluster-scoped object. For a list or watch, an empty namespace means all namespaces.
func (r *request) namespace() string {
	if !r.kind.Namespaced() {
		return ""
	}
	return r.info.Namespace
}

// collectionPath returns the path of the participant's objects in the member.
func (r *request) collectionPath(p *participant) string {
	return fanout.ResourcePath(r.info, p.namespace, "")
}

// memberQuery returns the request's query for the participant, without its position in a list or watch.
func (r *request) memberQuery(p *participant) url.Values {
	query := r.req.URL.Query()
	for _, name := range []string{"continue", "watch", "resourceVersion"} {
		query.Del(name)
	}
	if p.only != nil {
		// The namespace of a row is in the row's object.
		query.Del("includeObject")
	}
	return query
}

// awaitListed returns a snapshot in which every cluster has been listed. It waits at most Limits.Lookup
// for clusters that have never been listed and have no known problem.
func (r *request) awaitListed(ctx context.Context) *objectcache.Snapshot {
	ctx, cancel := context.WithTimeout(ctx, r.limits.Lookup)
	defer cancel()
	for {
		changed := r.Handler.options.Cache.StatesChanged()
		snapshot := r.kind.Snapshot()
		isPending := func(c *objectcache.ClusterObjects) bool {
			state, _, reason := c.State()
			return state == objectcache.Waiting && reason == ""
		}
		if !slices.ContainsFunc(snapshot.Clusters(), isPending) {
			return snapshot
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return snapshot
		}
	}
}

// readable returns the participants whose cached objects the caller may read with the verb. It adds a
// warning for each other participant, and for each one whose objects may be outdated. In strict mode,
// it returns an error if a cluster is outdated or does not respond.
func (r *request) readable(ctx context.Context, all []*participant, verb string) ([]*participant, error) {
	allowed, errs := make([]bool, len(all)), make([]error, len(all))
	fanout.InParallel(len(all), func(i int) { allowed[i], errs[i] = r.mayRead(ctx, all[i], verb) })
	var kept []*participant
	denied := 0
	for i, p := range all {
		err := errs[i]
		if err == nil && allowed[i] {
			err = p.problem()
		}
		if err != nil && r.isStrict {
			return nil, fanout.NewUnavailableError("cluster %q: %s", p.cluster, reasonOf(p.cluster, err))
		}
		switch {
		case errs[i] != nil:
			r.warn(p.cluster, "its objects are omitted: %s", reasonOf(p.cluster, err))
		case !allowed[i]:
			denied++
			r.warn(p.cluster, "its objects are omitted: %v", r.newDenial(p.cluster, verb, p.namespace))
		default:
			if err != nil {
				r.warn(p.cluster, "%v", err)
			}
			kept = append(kept, p)
		}
	}
	if len(kept) == 0 && denied > 0 && denied == len(all) {
		return nil, r.newDenial("", verb, all[0].namespace)
	}
	if len(kept) == 0 && len(all) > 0 {
		return nil, fanout.NewUnavailableError("no cluster responds: %s", r.warnings[all[0].cluster])
	}
	return kept, nil
}

// mayRead reports whether the caller may use the verb on all of the participant's objects that the
// request concerns.
func (r *request) mayRead(ctx context.Context, p *participant, verb string) (bool, error) {
	namespaces := []string{p.namespace}
	if p.only != nil {
		namespaces = p.only
	}
	name, _ := r.fields.Name()
	for _, namespace := range namespaces {
		ok, err := r.Handler.options.Permissions.Allowed(ctx, r.caller, p.cluster, verb, r.kind.GroupVersionResource(), namespace, name)
		if err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

// problem returns why the participant's cached objects may be outdated, or nil.
func (p *participant) problem() error {
	state, since, reason := p.State()
	switch state {
	case objectcache.Current:
		return nil
	case objectcache.Stale:
		return fmt.Errorf("its objects are as of %s: %s", since.UTC().Format(time.RFC3339), reason)
	}
	if reason == "" {
		reason = "the first list is not complete"
	}
	return fmt.Errorf("its objects are not cached yet: %s", reason)
}

// newDenial returns the error for a caller who may not use the verb. An empty cluster means all
// clusters.
func (r *request) newDenial(cluster, verb, namespace string) *apierrors.StatusError {
	where := "in any cluster"
	if cluster != "" {
		where = fmt.Sprintf("in cluster %q", cluster)
	}
	scope := "at the cluster scope"
	if namespace != "" {
		scope = fmt.Sprintf("in the namespace %q", namespace)
	}
	return apierrors.NewForbidden(fanout.GroupResource(r.info), r.info.Name, fmt.Errorf("user %q cannot %s resource %q in API group %q %s %s",
		r.caller.GetName(), verb, r.info.Resource, r.info.APIGroup, scope, where))
}
