package proxying

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"karmada.io/karmada/internal/domain/clusterjson"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"karmada.io/karmada/internal/access/memberproxy"
	"karmada.io/karmada/internal/domain/rawjson"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

// fetch reads a path of a cluster as the caller. It returns the body of a successful response. An
// error names the cluster.
func (r *request) fetch(ctx context.Context, cluster, path string, query url.Values) ([]byte, error) {
	idle, total := r.idle(cluster), r.limits.Page
	if idle == r.limits.Suspect {
		total = 3 * idle
	}
	ctx, cancel := context.WithTimeout(ctx, total)
	defer cancel()
	body, answered, err := r.read(ctx, cluster, path, query, idle)
	if r.req.Context().Err() == nil {
		r.suspects.record(cluster, answered)
	}
	return body, err
}

// read reads a path of a cluster. answered reports whether the cluster answered, also with an error.
func (r *request) read(ctx context.Context, cluster, path string, query url.Values, idle time.Duration) (body []byte, answered bool, err error) {
	response, err := r.Handler.options.Reads.Do(ctx, cluster, r.caller, memberproxy.Request{
		Method: http.MethodGet, Path: path, Query: query, Header: http.Header{"Accept": {r.format.accept}}, Idle: idle,
	})
	if err != nil {
		return nil, false, asStatus(cluster, err)
	}
	defer response.Body.Close()
	body, err = io.ReadAll(io.LimitReader(response.Body, r.limits.PageBytes+1))
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, false, newUnavailable("cluster %q: its response was not complete in time: select fewer objects, or try again", cluster)
	case err != nil:
		return nil, false, newUnavailable("cluster %q: reading its response: %v", cluster, err)
	case int64(len(body)) > r.limits.PageBytes:
		return nil, true, &tooLargeError{newUnavailable("cluster %q: its response exceeds %d bytes: select fewer objects", cluster, r.limits.PageBytes)}
	case response.StatusCode != http.StatusOK:
		return nil, true, responseError(cluster, response, body)
	}
	return body, true, nil
}

// tooLargeError is the error of a response that exceeds the limit.
type tooLargeError struct{ *apierrors.StatusError }

// idle returns how long a cluster may send nothing.
func (r *request) idle(cluster string) time.Duration {
	if r.isStrict {
		return r.limits.Idle
	}
	objects := r.kind.Snapshot().Cluster(cluster)
	if objects != nil {
		if state, _, _ := objects.State(); state == objectcache.Stale {
			return r.limits.Suspect
		}
	}
	if r.suspects.has(cluster) {
		return r.limits.Suspect
	}
	return r.limits.Idle
}

// fetchObject reads one object, or a table with one row.
func (r *request) fetchObject(ctx context.Context, cluster, path string, query url.Values) ([]byte, error) {
	body, err := r.fetch(ctx, cluster, path, query)
	if err != nil {
		return nil, err
	}
	if !rawjson.Valid(body) {
		return nil, newUnavailable("cluster %q: its response is no JSON", cluster)
	}
	if body, err = clusterjson.RewriteObject(body, cluster); err != nil {
		return nil, newUnavailable("cluster %q: reading its response: %v", cluster, err)
	}
	return body, nil
}

// asStatus returns an error of a request to a cluster as a Status.
func asStatus(cluster string, err error) error {
	if isStatus(err) {
		return err
	}
	return newUnavailable("cluster %q: %v", cluster, err)
}

// collectionPath returns the path of the objects of a namespace. An empty namespace means all
// namespaces.
func (r *request) collectionPath(namespace string) string {
	root := "/api/" + r.info.APIVersion
	if r.info.APIGroup != "" {
		root = fmt.Sprintf("/apis/%s/%s", r.info.APIGroup, r.info.APIVersion)
	}
	if namespace == "" {
		return root + "/" + r.info.Resource
	}
	return root + "/namespaces/" + url.PathEscape(namespace) + "/" + r.info.Resource
}
