package memberproxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
)

const (
	// fanoutParallelism is the number of clusters that one request calls concurrently.
	fanoutParallelism = 16
	// maxWarnings limits the number of Warning headers. The last header contains the number of
	// omitted warnings.
	maxWarnings = 10
)

// fanoutRequest is a GET request that is sent to all clusters.
type fanoutRequest struct {
	path   string
	query  url.Values
	accept string
	// maxBytes limits the size of the response of each cluster. timeout limits the time until the
	// response is complete, including its body.
	maxBytes int64
	timeout  time.Duration
	// keepBody means that the caller needs the bodies of the responses.
	keepBody bool
}

// clusterResponse is the response of one cluster.
type clusterResponse struct {
	cluster string
	client  *memberClient
	header  http.Header
	code    int
	body    []byte
	// memory is the memory reservation for the body.
	memory *memoryReservation
	err    error
}

// discard deletes the body and releases its memory.
func (c *clusterResponse) discard() {
	c.body = nil
	c.memory.release()
}

func discardAll(responses []clusterResponse) {
	for i := range responses {
		responses[i].discard()
	}
}

// fanOut sends a request to every cluster and returns the responses, sorted by the names of the
// clusters. It returns an error only if the clusters cannot be listed, or if the memory for
// responses is exhausted. The caller must discard all responses.
func (e *allClustersHandler) fanOut(ctx context.Context, request fanoutRequest) ([]clusterResponse, error) {
	clusters, err := e.proxy.sources.Clusters(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	slices.SortFunc(clusters, func(a, b clusterv1alpha1.Cluster) int { return strings.Compare(a.Name, b.Name) })
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	responses := make([]clusterResponse, len(clusters))
	slots := make(chan struct{}, fanoutParallelism)
	var remaining atomic.Int64
	remaining.Store(e.proxy.memory.request)
	var requests sync.WaitGroup
	for i := range clusters {
		slots <- struct{}{}
		requests.Go(func() {
			defer func() { <-slots }()
			response := &responses[i]
			*response = e.sendTo(ctx, &clusters[i], request, &remaining)
			if response.err == nil && request.keepBody {
				return
			}
			response.discard()
			if errors.Is(response.err, errMemoryExhausted) {
				cancel(errMemoryExhausted)
			}
		})
	}
	requests.Wait()
	if errors.Is(context.Cause(ctx), errMemoryExhausted) {
		discardAll(responses)
		return nil, memoryExhausted(e.proxy.memory.all)
	}
	return responses, nil
}

// sendTo sends the request to one cluster. The timeout applies to the whole response, because a
// member that sends a byte from time to time never exceeds the idle timeout.
func (e *allClustersHandler) sendTo(ctx context.Context, cluster *clusterv1alpha1.Cluster, request fanoutRequest, remaining *atomic.Int64) clusterResponse {
	response := clusterResponse{cluster: cluster.Name}
	ctx, stop := context.WithTimeoutCause(ctx, request.timeout, errSlow)
	defer stop()
	if response.client, response.err = e.proxy.newMemberClient(ctx, cluster, e.caller); response.err != nil {
		return response
	}
	ctx, end := withLinkedCancel(ctx, response.client.member.ctx)
	defer end(nil)
	client := *response.client
	client.timeouts.idle, client.timeouts.list = client.timeouts.lookup, request.timeout
	target, err := targetURL(cluster, request.path, &url.URL{RawQuery: request.query.Encode()})
	if err != nil {
		response.err = err
		return response
	}
	release, err := response.client.acquireSlots(&http.Request{Method: http.MethodGet, URL: target}, target, false)
	if err != nil {
		response.err = err
		return response
	}
	defer release()
	req := (&http.Request{Method: http.MethodGet, URL: target, Host: target.Host, Header: http.Header{"Accept": {request.accept}}}).WithContext(ctx)
	resp, err := client.sendPlain(req)
	if err != nil {
		response.err = err
		return response
	}
	defer resp.Body.Close()
	response.code, response.header = resp.StatusCode, resp.Header
	response.memory = &memoryReservation{
		cluster: cluster.Name, limits: e.proxy.memory, limit: request.maxBytes, request: remaining,
		member: response.client.member.responseMemory, all: e.proxy.responseMemory,
	}
	var body io.Reader = resp.Body
	if response.code != http.StatusOK {
		body = io.LimitReader(body, maxErrorBody)
	}
	if response.body, err = io.ReadAll(reservingReader{body, ctx, response.memory}); err != nil {
		response.err = readError(ctx, &client, err)
		return response
	}
	response.err = responseError(cluster.Name, resp.Status, response)
	return response
}

// readError explains why a response could not be read.
func readError(ctx context.Context, w *memberClient, err error) error {
	var skipped *omittedError
	switch {
	case errors.Is(err, errMemoryExhausted), errors.As(err, &skipped):
		return err
	case errors.Is(context.Cause(ctx), errSlow):
		err = explainError(ctx, w.cluster, w.timeouts, err)
	}
	return fmt.Errorf("cluster %q is omitted: reading its response: %w", w.cluster.Name, err)
}

// responseError returns the error for an unexpected status. The response that an object is
// missing, or is forbidden for the caller, is not an error.
func responseError(cluster, status string, response clusterResponse) error {
	switch response.code {
	case http.StatusOK, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed:
		return nil
	}
	var body metav1.Status
	if err := json.Unmarshal(response.body, &body); err == nil && body.Message != "" {
		status += ": " + conditions.LimitMessage(conditions.ToPrintable(body.Message))
	}
	return fmt.Errorf("cluster %q is omitted: it returns %s", cluster, status)
}

// addWarnings adds Warning headers that name the clusters whose responses are omitted because
// of an error.
func addWarnings(w http.ResponseWriter, responses []clusterResponse) {
	var failures []error
	for _, response := range responses {
		if response.err != nil {
			failures = append(failures, response.err)
		}
	}
	for i, err := range failures {
		text := err.Error()
		if i == maxWarnings {
			text = fmt.Sprintf("%d more clusters are omitted", len(failures)-i)
		}
		// The value of a header must be a single line.
		text = strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "")
		if warning, err := utilnet.NewWarningHeader(299, "-", text); err == nil {
			w.Header().Add("Warning", warning)
		}
		if i == maxWarnings {
			return
		}
	}
}
