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

// Transport bounds what comes through another transport. It belongs outside of what
// adds credentials.
func Transport(next http.RoundTripper, limits Limits, ledger *Ledger) http.RoundTripper {
	boundHeaders(next, limits.HeaderBytes)
	return &transport{next: next, limits: limits, ledger: ledger, large: make(chan struct{}, largeAnswers)}
}

// streamBuffer is how many bytes of one answer or watch wait to be read. The library's
// 4 MiB for each watch of a member add up.
const streamBuffer = 1 << 20

// boundHeaders changes a transport that has no connections yet.
func boundHeaders(next http.RoundTripper, limit int64) {
	for {
		switch below := next.(type) {
		case *http.Transport:
			// The default transport belongs to the process.
			if below != http.DefaultTransport && below.MaxResponseHeaderBytes == 0 {
				below.MaxResponseHeaderBytes = limit
				if below.HTTP2 == nil {
					below.HTTP2 = &http.HTTP2Config{}
				}
				below.HTTP2.MaxReceiveBufferPerStream = streamBuffer
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
	// largeBytes and largeValues are what makes an answer or an event a large one, in
	// bytes and in values.
	largeBytes  = 512 << 10
	largeValues = 4 << 10
	// largeAnswers is how many large answers of one member are read and decoded at once.
	largeAnswers = 1
)

type transport struct {
	next   http.RoundTripper
	limits Limits
	ledger *Ledger
	// large holds a place for each large answer that is being read.
	large chan struct{}
}

// WrappedRoundTripper implements net.RoundTripperWrapper.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if reconnect.Watches(request) {
		return t.watch(request)
	}
	response, err := t.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if err := t.head(request, response); err != nil {
		return nil, err
	}
	if response.StatusCode < http.StatusBadRequest {
		response.Body = t.answer(request, response)
	}
	return response, nil
}

// watch sends a watch, which ends by itself at the time that it was asked to: a member
// that forgets the time would keep a cache as it was for ever.
func (t *transport) watch(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeoutCause(request.Context(), t.watchTime(request.URL), errWatchTime)
	response, err := t.next.RoundTrip(request.WithContext(ctx))
	if err == nil {
		err = t.head(request, response)
	}
	if err != nil {
		cancel()
		return nil, err
	}
	if response.StatusCode < http.StatusBadRequest {
		response.Body = t.events(request, response, ctx, cancel)
		return response, nil
	}
	// The body of an error was read whole.
	cancel()
	return response, nil
}

func (t *transport) watchTime(asked *url.URL) time.Duration {
	seconds, err := strconv.ParseInt(asked.Query().Get("timeoutSeconds"), 10, 64)
	if err != nil || seconds <= 0 || time.Duration(seconds)*time.Second > t.limits.WatchTime {
		return t.limits.WatchTime
	}
	return time.Duration(seconds)*time.Second + t.limits.WatchGrace
}

// head refuses redirects and brings errors into a bounded form. The body is closed if
// it returns an error.
func (t *transport) head(request *http.Request, response *http.Response) error {
	code := response.StatusCode
	if code >= http.StatusMultipleChoices && code < http.StatusBadRequest && code != http.StatusNotModified {
		_ = response.Body.Close()
		return t.ledger.Record(ExceededError{
			Bound: Redirect, Subject: subjectOf(request.URL),
			Detail: fmt.Sprintf("it answers %d with a redirect to %q, and no redirect of a member is followed", code, host(response)),
		})
	}
	if after := response.Header.Get("Retry-After"); after != "" {
		seconds, err := strconv.Atoi(after)
		if limit := int(t.limits.RetryAfter / time.Second); err != nil || seconds < 0 || seconds > limit {
			response.Header.Set("Retry-After", strconv.Itoa(limit))
		}
	}
	if code >= http.StatusBadRequest {
		return t.limits.boundError(response)
	}
	return nil
}

// host is where a redirect leads to.
func host(response *http.Response) string {
	location, err := response.Location()
	if err != nil {
		return ""
	}
	return conditions.Shorten(conditions.Printable(location.Host), 128)
}

func (t *transport) answer(request *http.Request, response *http.Response) io.ReadCloser {
	if response.Body == nil || response.Body == http.NoBody {
		return response.Body
	}
	record := t.ledger.Record
	if attemptOf(request.Context()) != nil {
		record = t.ledger.recordLost
	}
	return &turn{ctx: request.Context(), places: t.large, meter: &meter{
		ReadCloser: response.Body, subject: request.URL, record: record,
		object: len(apiPath(request.URL)) > 0, protobuf: strings.Contains(request.Header.Get("Accept"), runtime.ContentTypeProtobuf),
		size: AnswerBytes, bytesAllowed: t.limits.AnswerBytes, valuesAllowed: t.limits.Values,
	}}
}

// isProtobuf reports whether clients take an answer for protobuf.
func isProtobuf(response *http.Response) bool {
	mediaType, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	return mediaType == runtime.ContentTypeProtobuf
}

// apiPath is the path that a URL asks an API server for from "api" or "apis" on; it is
// empty if there is no such part.
func apiPath(asked *url.URL) []string {
	path := strings.Split(strings.Trim(asked.Path, "/"), "/")
	for len(path) > 0 && path[0] != "api" && path[0] != "apis" {
		path = path[1:]
	}
	return path
}

// subjectOf names what a URL asks for: "deployments.v1.apps", or its path if it asks
// for no resource.
func subjectOf(asked *url.URL) string {
	path, prefix := apiPath(asked), 2
	if len(path) > 0 && path[0] == "apis" {
		prefix = 3
	}
	if len(path) <= prefix {
		return conditions.Shorten(conditions.Printable(asked.Path), 128)
	}
	rest := path[prefix:]
	if len(rest) > 2 && rest[0] == "namespaces" {
		rest = rest[2:]
	}
	version := path[prefix-1]
	if prefix == 3 {
		version += "." + path[1]
	}
	return conditions.Shorten(conditions.Printable(rest[0]+"."+version), 128)
}
