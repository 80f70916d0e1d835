package proxying

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karmada.io/karmada/internal/access/fanout"
	"karmada.io/karmada/internal/access/memberproxy"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

// read reads a path in a cluster with the caller's identity. It returns the response's code and body.
// Of the body, it reads at most one byte more than the limit. An error means that the cluster did not
// respond completely.
func (r *request) read(ctx context.Context, cluster, path, accept string, query url.Values) (code int, body []byte, err error) {
	idle, total := r.idle(cluster), r.limits.Page
	if idle == r.limits.Suspect {
		total = 3 * idle
	}
	ctx, cancel := context.WithTimeout(ctx, total)
	defer cancel()
	defer func() {
		if r.req.Context().Err() == nil {
			r.suspects.record(cluster, err == nil)
		}
	}()
	response, err := r.Handler.options.Reads.Do(ctx, cluster, r.caller, memberproxy.Request{
		Method: http.MethodGet, Path: path, Query: query, Header: http.Header{"Accept": {accept}}, Idle: idle,
	})
	if err != nil {
		return 0, nil, asStatus(cluster, err)
	}
	defer response.Body.Close()
	body, err = io.ReadAll(io.LimitReader(response.Body, r.limits.PageBytes+1))
	switch {
	case err != nil && ctx.Err() != nil:
		return 0, nil, fanout.NewUnavailableError("cluster %q: its response was not complete in time: select fewer objects, or try again",
			cluster)
	case err != nil:
		return 0, nil, fanout.NewUnavailableError("cluster %q: reading its response: %v", cluster, err)
	}
	return response.StatusCode, body, nil
}

// fetch reads a path in a cluster with the caller's identity, and returns a successful response's body.
// An error is a Status that names the cluster.
func (r *request) fetch(ctx context.Context, cluster, path string, query url.Values) ([]byte, error) {
	code, body, err := r.read(ctx, cluster, path, r.format.Accept, query)
	switch {
	case err != nil:
		return nil, err
	case int64(len(body)) > r.limits.PageBytes:
		return nil, &tooLargeError{fanout.NewUnavailableError("cluster %q: its response exceeds %d bytes: select fewer objects", cluster,
			r.limits.PageBytes)}
	case code != http.StatusOK:
		return nil, responseError(cluster, code, body)
	}
	return body, nil
}

// tooLargeError is the error for a response that exceeds the limit.
type tooLargeError struct{ *apierrors.StatusError }

// responseError returns a cluster's error response as a Status.
func responseError(cluster string, code int, body []byte) *apierrors.StatusError {
	message := fanout.StatusMessage(body)
	if message == "" {
		return fanout.NewStatusError(int32(code), metav1.StatusReasonUnknown, "cluster %q returns %d %s", cluster, code, http.StatusText(code))
	}
	status := metav1.Status{}
	_ = json.Unmarshal(body, &status) // it is a Status, because it has a message
	err := fanout.NewStatusError(int32(code), status.Reason, "cluster %q: %s", cluster, message)
	err.ErrStatus.Details = status.Details
	return err
}

// failsRequest reports whether one cluster's error concerns the whole request, because the request is
// invalid or its position in the list no longer exists.
func failsRequest(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsBadRequest(err) || apierrors.IsInvalid(err) ||
		apierrors.IsNotAcceptable(err)
}

// asStatus converts the error of a request to a cluster to a Status.
func asStatus(cluster string, err error) error {
	if isStatus(err) {
		return err
	}
	return fanout.NewUnavailableError("cluster %q: %v", cluster, err)
}

func isStatus(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}

// warn adds a warning about the cluster.
func (r *request) warn(cluster, format string, args ...any) {
	r.warnings.Add(cluster, fmt.Sprintf("cluster %q: ", cluster)+fmt.Sprintf(format, args...))
}

// reasonOf returns the error's message for a warning, without the cluster name at its beginning.
func reasonOf(cluster string, err error) string {
	return strings.TrimPrefix(err.Error(), fmt.Sprintf("cluster %q: ", cluster))
}

// idle returns the maximum time for which the cluster may send no data.
func (r *request) idle(cluster string) time.Duration {
	objects := r.kind.Snapshot().Cluster(cluster)
	isStale := false
	if objects != nil {
		state, _, _ := objects.State()
		isStale = state == objectcache.Stale
	}
	if !r.isStrict && (isStale || r.suspects.has(cluster)) {
		return r.limits.Suspect
	}
	return r.limits.Idle
}

// suspicion is how long a cluster remains a suspect after it did not respond.
const suspicion = 30 * time.Second

// suspects are the clusters that recently did not respond.
type suspects struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// record records whether the cluster responded to a request. An error response is a response, too.
func (s *suspects) record(cluster string, hasResponded bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if hasResponded {
		delete(s.until, cluster)
		return
	}
	if s.until == nil {
		s.until = map[string]time.Time{}
	}
	s.until[cluster] = time.Now().Add(suspicion)
}

func (s *suspects) has(cluster string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Before(s.until[cluster])
}
