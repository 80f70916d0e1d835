package bounds

import (
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"karmada.io/karmada/internal/access/reconnect"
	"karmada.io/karmada/internal/domain/conditions"
)

// NewTransport returns a transport that limits the responses of the transport next. It must wrap the
// transports that add credentials.
func NewTransport(next http.RoundTripper, limits Limits, hits *HitTracker) http.RoundTripper {
	limitHTTPTransport(next, limits.HeaderBytes)
	return &transport{next: next, limits: limits, hits: hits, largeSlots: make(chan struct{}, maxLargeAnswers)}
}

// maxStreamBuffer is the maximum number of unread bytes of one response or watch. The default of
// net/http, 4 MiB, is too much, because a member has many watches.
const maxStreamBuffer = 1 << 20

// limitHTTPTransport sets limits on an HTTP transport that has no connections yet.
func limitHTTPTransport(next http.RoundTripper, limit int64) {
	for {
		switch below := next.(type) {
		case *http.Transport:
			// http.DefaultTransport is not changed, because the whole process shares it.
			if below != http.DefaultTransport && below.MaxResponseHeaderBytes == 0 {
				below.MaxResponseHeaderBytes = limit
				if below.HTTP2 == nil {
					below.HTTP2 = &http.HTTP2Config{}
				}
				below.HTTP2.MaxReceiveBufferPerStream = maxStreamBuffer
			}
			return
		case utilnet.RoundTripperWrapper:
			next = below.WrappedRoundTripper()
		default:
			return
		}
	}
}

const (
	// largeBytes and largeValues are the numbers of bytes and of JSON values above which a response
	// or an event is large.
	largeBytes  = 512 << 10
	largeValues = 4 << 10
	// maxLargeAnswers is the number of large responses of one member that are read and decoded
	// concurrently.
	maxLargeAnswers = 1
)

type transport struct {
	next   http.RoundTripper
	limits Limits
	hits   *HitTracker
	// largeSlots is a semaphore that limits how many large responses are read concurrently.
	largeSlots chan struct{}
}

// WrappedRoundTripper implements net.RoundTripperWrapper.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if reconnect.IsWatch(request) {
		return t.roundTripWatch(request)
	}
	response, err := t.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if err := t.validateResponse(request, response); err != nil {
		return nil, err
	}
	if response.StatusCode < http.StatusBadRequest {
		response.Body = t.limitBody(request, response)
	}
	return response, nil
}

// roundTripWatch sends a watch and ends it after its requested timeout, because a member that
// ignores the timeout could otherwise keep a cache stale forever.
func (t *transport) roundTripWatch(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeoutCause(request.Context(), t.maxWatchTime(request.URL), errWatchTooLong)
	response, err := t.next.RoundTrip(request.WithContext(ctx))
	if err == nil {
		err = t.validateResponse(request, response)
	}
	if err != nil {
		cancel()
		return nil, err
	}
	if response.StatusCode < http.StatusBadRequest {
		response.Body = t.limitWatchBody(request, response, ctx, cancel)
		return response, nil
	}
	// The whole body of an error was already read, so the context is not needed.
	cancel()
	return response, nil
}

func (t *transport) maxWatchTime(requested *url.URL) time.Duration {
	seconds, err := strconv.ParseInt(requested.Query().Get("timeoutSeconds"), 10, 64)
	if err != nil || seconds <= 0 || time.Duration(seconds)*time.Second > t.limits.WatchTime {
		return t.limits.WatchTime
	}
	return time.Duration(seconds)*time.Second + t.limits.WatchGrace
}

// validateResponse rejects redirects and limits the body of an error. If it returns an error, it has
// closed the body.
func (t *transport) validateResponse(request *http.Request, response *http.Response) error {
	code := response.StatusCode
	if code >= http.StatusMultipleChoices && code < http.StatusBadRequest && code != http.StatusNotModified {
		_ = response.Body.Close()
		return t.hits.Record(ExceededError{
			Bound: Redirect, Subject: subjectOf(request.URL),
			Detail: fmt.Sprintf("the member responds with %d and a redirect to %q; redirects of members are not followed", code, redirectHost(response)),
		})
	}
	if after := response.Header.Get("Retry-After"); after != "" {
		seconds, err := strconv.Atoi(after)
		if limit := int(t.limits.RetryAfter / time.Second); err != nil || seconds < 0 || seconds > limit {
			response.Header.Set("Retry-After", strconv.Itoa(limit))
		}
	}
	if code >= http.StatusBadRequest {
		return t.limits.limitErrorBody(response)
	}
	return nil
}

// redirectHost returns the host in the target of a redirect.
func redirectHost(response *http.Response) string {
	location, err := response.Location()
	if err != nil {
		return ""
	}
	return conditions.Truncate(conditions.ToPrintable(location.Host), 128)
}

func (t *transport) limitBody(request *http.Request, response *http.Response) io.ReadCloser {
	if response.Body == nil || response.Body == http.NoBody {
		return response.Body
	}
	record := t.hits.Record
	if pageAttemptFrom(request.Context()) != nil {
		record = t.hits.recordUnlessPageTooLarge
	}
	return &slotBody{ctx: request.Context(), slots: t.largeSlots, bodyMeter: &bodyMeter{
		ReadCloser: response.Body, subject: request.URL, record: record,
		expectsObject: len(apiPath(request.URL)) > 0, allowsProtobuf: strings.Contains(request.Header.Get("Accept"), runtime.ContentTypeProtobuf),
		bytesBound: AnswerBytes, bytesAllowed: t.limits.AnswerBytes, valuesAllowed: t.limits.JSONValues,
	}}
}

// isProtobuf reports whether clients decode the response as protobuf.
func isProtobuf(response *http.Response) bool {
	mediaType, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	return mediaType == runtime.ContentTypeProtobuf
}

// apiPath returns the parts of the path of a URL, beginning with "api" or "apis". The result is
// empty if the path has no such part.
func apiPath(requested *url.URL) []string {
	path := strings.Split(strings.Trim(requested.Path, "/"), "/")
	for len(path) > 0 && path[0] != "api" && path[0] != "apis" {
		path = path[1:]
	}
	return path
}

// subjectOf returns the resource that a URL requests, such as "deployments.v1.apps". If the URL
// requests no resource, it returns the path.
func subjectOf(requested *url.URL) string {
	path, prefix := apiPath(requested), 2
	if len(path) > 0 && path[0] == "apis" {
		prefix = 3
	}
	if len(path) <= prefix {
		return conditions.Truncate(conditions.ToPrintable(requested.Path), 128)
	}
	rest := path[prefix:]
	if len(rest) > 2 && rest[0] == "namespaces" {
		rest = rest[2:]
	}
	version := path[prefix-1]
	if prefix == 3 {
		version += "." + path[1]
	}
	return conditions.Truncate(conditions.ToPrintable(rest[0]+"."+version), 128)
}
