// Package query serves all members' cached objects. The resource "search" supports two requests:
// search/cache lists all cached objects at the path of a Kubernetes API, and search/query lists or
// watches the objects that match a search query.
//
// Invariants:
//   - A caller gets only objects that the objects' cluster permits this caller to list. If a cluster
//     denies this or does not respond, its objects are omitted, and a Warning header names the cluster.
//   - Warnings do not depend on the cached objects: the caller's permissions are reviewed for all
//     clusters and kinds that can have matches, even if no object matches.
//   - A watch sends all changes that the caller may read, or ends with an error.
//   - A cluster that does not respond delays a response by at most the time limit for one review.
//   - A response needs memory for one object (search/cache, watch) or for one page.
//
// A request's duration depends on objects that the caller may not read: if a caller may not list a kind
// in all namespaces, the matches' namespaces are reviewed. A caller who measures the duration, or who
// sees the reviews in a cluster's audit log, can learn whether a hidden object matches. While a cluster
// does not respond to reviews, the end of a watch similarly reveals that a hidden object has changed
// whose kind, namespace, name and labels can match. To prevent this, permit only trusted callers to use
// search/query.
package query

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/klog/v2"

	"karmada.io/karmada/internal/domain/searchquery"
	"karmada.io/karmada/internal/servers/search/index"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

// Permissions reports what a caller may read.
type Permissions interface {
	// Allowed reports whether the caller may use the verb on the resource in the cluster, in the
	// namespace ("" means all namespaces) and for the name ("" means all names). If it returns an
	// error, the objects are not shown, because the caller's permissions are unknown.
	Allowed(ctx context.Context, caller user.Info, cluster, verb string, resource schema.GroupVersionResource, namespace, name string) (bool,
		error)
}

// Options configure a Handler. All fields except Now and ReviewTimeout are required.
type Options struct {
	Cache       *objectcache.Cache
	Searcher    index.Searcher
	Permissions Permissions
	// Now returns the current time. Default: time.Now.
	Now func() time.Time
	// ReviewTimeout limits one review of the caller's permissions. Default: 3 s.
	ReviewTimeout time.Duration
}

// Handler serves the resource "search". It is safe for concurrent use.
type Handler struct {
	cache         *objectcache.Cache
	searcher      index.Searcher
	permissions   Permissions
	now           func() time.Time
	reviewTimeout time.Duration
	writeTimeout  time.Duration
}

// New returns a handler.
func New(options Options) *Handler {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.ReviewTimeout == 0 {
		options.ReviewTimeout = 3 * time.Second
	}
	return &Handler{
		cache: options.Cache, searcher: options.Searcher, permissions: options.Permissions,
		now: options.Now, reviewTimeout: options.ReviewTimeout, writeTimeout: writeTimeout,
	}
}

// writeError writes err as a Status. An error in the query and an error of the context have codes of
// their own. All other errors are internal.
func writeError(ctx context.Context, w http.ResponseWriter, err error) {
	status := statusOf(err).Status()
	status.Kind, status.APIVersion = "Status", "v1"
	var expected apierrors.APIStatus
	if status.Code >= http.StatusInternalServerError && !errors.As(err, &expected) {
		klog.FromContext(ctx).Error(err, "Serving a search request")
	}
	writeJSON(ctx, w, int(status.Code), status)
}

func statusOf(err error) apierrors.APIStatus {
	var status apierrors.APIStatus
	var syntax *searchquery.SyntaxError
	switch {
	case errors.As(err, &status):
		return status
	case errors.As(err, &syntax):
		invalid := apierrors.NewBadRequest(syntax.Error())
		invalid.ErrStatus.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{
			Type: metav1.CauseTypeFieldValueInvalid, Field: parameterQuery, Message: syntax.Error(),
		}}}
		return invalid
	case errors.Is(err, objectcache.ErrExpired):
		return apierrors.NewResourceExpired("the changes since the last event are not known any more: watch again")
	case errors.Is(err, context.DeadlineExceeded):
		return apierrors.NewTimeoutError("the search took too long: use more terms, or a smaller limit", 1)
	}
	return apierrors.NewInternalError(err)
}

// writeJSON writes a small value as JSON.
func writeJSON(ctx context.Context, w http.ResponseWriter, code int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Encoding the response to a search request")
		code, body = http.StatusInternalServerError, []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":500}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(code)
	// An error means that the client has disconnected.
	_, _ = w.Write(append(body, '\n'))
}
