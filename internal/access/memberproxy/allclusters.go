package memberproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/fanout"
	"karmada.io/karmada/internal/domain/conditions"
)

// listStyle specifies how objects in a list from all clusters name their clusters.
var listStyle = fanout.Style{Annotation: clusterv1alpha1.QueryFromClusterAnnotation}

// heldBytes is the number of bytes up to which a list from all clusters is held back, so that errors
// and warnings can still be added.
const heldBytes = 1 << 20

// allClustersHandler serves one request that is sent to all clusters.
type allClustersHandler struct {
	proxy     *Proxy
	path      string
	caller    user.Info
	responder rest.Responder
}

func (h *allClustersHandler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	info, err := fanout.ParseRequest(req, "/"+strings.Trim(h.path, "/"))
	switch {
	case err != nil:
	case !info.IsResourceRequest:
		if !redirectToSlash(h.path, w, req) {
			h.proxy.karmada.forward(w, req, h.path, h.caller, h.responder)
		}
	case info.Verb == "list":
		// Handle this case before the name, because a field selector may set the name, but the request
		// is still a list.
		err = h.list(w, req, info)
	case info.Name != "" && info.Verb != "watch":
		err = h.forwardToHolder(w, req, info)
	default:
		err = apierrors.NewMethodNotSupported(fanout.GroupResource(info), info.Verb)
	}
	if err != nil {
		h.responder.Error(err)
	}
}

// list merges the lists of all clusters. It ignores a continue token and a resourceVersion other than
// 0, because both are valid in one cluster only. The resourceVersion 0 means any version.
func (h *allClustersHandler) list(w http.ResponseWriter, req *http.Request, info *genericrequest.RequestInfo) error {
	query := req.URL.Query()
	query.Del("limit")
	query.Del("continue")
	if query.Get("resourceVersion") != "0" {
		query.Del("resourceVersion")
		query.Del("resourceVersionMatch")
	}
	format, _ := fanout.NegotiateFormat(req.Header.Values("Accept")) // after an error, format is JSON
	responses, err := h.fanOut(req.Context(), info, h.proxy.memory.member, h.proxy.timeouts.list, Request{
		Path: h.path, Query: query, Header: http.Header{"Accept": {format.Accept}},
	})
	if err != nil {
		return err
	}
	defer discardAll(responses)
	pages := parsePages(responses)
	unknown := warningsOf(responses)
	if len(pages) == 0 {
		unknown.WriteTo(w.Header())
		return newNoListError(info, unknown)
	}
	// Limit the time, because a client that does not read would occupy memory that other requests need.
	connection := http.NewResponseController(w)
	_ = connection.SetWriteDeadline(time.Now().Add(h.proxy.timeouts.clientRead))
	out := &fanout.ListWriter{Style: listStyle, Response: w, Warnings: unknown, HeldBytes: heldBytes}
	for _, page := range pages {
		if _, err := out.WritePage(page, nil); err != nil {
			return out.Abort(err)
		}
	}
	// The list is complete, so it has no continue token.
	if err := out.Abort(out.Finish(pages[0].ResourceVersion, "")); err != nil {
		return err
	}
	_ = connection.SetWriteDeadline(time.Time{})
	return nil
}

// parsePages parses the lists in the responses. It sets the error of each response that cannot be
// merged.
func parsePages(responses []clusterResponse) (pages []*fanout.Page) {
	for i := range responses {
		r := &responses[i]
		if r.err != nil || r.code != http.StatusOK {
			continue
		}
		page, err := listStyle.ParsePage(r.cluster, r.body)
		if err == nil && len(pages) > 0 && page.IsTable() != pages[0].IsTable() {
			err = fanout.ErrMixedFormats
		}
		if err != nil {
			r.discard()
			r.err = fmt.Errorf("reading its list: %w", err)
			continue
		}
		pages = append(pages, page)
	}
	return pages
}

// newNoListError returns the error for a list that no cluster returned. unknown contains the warnings
// of the clusters that may have objects.
func newNoListError(info *genericrequest.RequestInfo, unknown fanout.Warnings) error {
	clusters := unknown.Clusters()
	if len(clusters) == 0 {
		return fanout.NewStatusError(http.StatusNotFound, metav1.StatusReasonNotFound, "not found")
	}
	return fanout.NewUnavailableError(
		"cannot list %s: no cluster returns a list, and it is unknown whether clusters [%s] have objects: %s: to address one cluster, use %s, or karmadactl with --cluster",
		fanout.GroupResource(info), conditions.LimitMessage(strings.Join(clusters, ", ")), unknown[clusters[0]], fanout.OneClusterPath)
}

// forwardToHolder forwards a request to the only cluster that has the object. A write needs every
// cluster's response, because a cluster that does not respond may have the object, too.
func (h *allClustersHandler) forwardToHolder(w http.ResponseWriter, req *http.Request, info *genericrequest.RequestInfo) error {
	// Look up the object without the subresource, because reading a subresource can have side effects.
	responses, err := h.fanOut(req.Context(), info, h.proxy.memory.lookup, h.proxy.timeouts.lookup, Request{
		Path: fanout.ResourcePath(info, fanout.ObjectNamespace(info), info.Name), Header: http.Header{"Accept": {fanout.JSON}},
	})
	if err != nil {
		return err
	}
	var found *client
	var object *metav1.PartialObjectMetadata
	var holders []string
	for i := range responses {
		r := &responses[i]
		if r.err == nil && r.code == http.StatusOK {
			var returned *metav1.PartialObjectMetadata
			if returned, r.err = fanout.ParseRequestedObject(info, r.body); r.err == nil {
				found, object, holders = r.client, returned, append(holders, r.cluster)
			}
		}
	}
	discardAll(responses)
	isRead, unknown := fanout.IsRead(req, info), warningsOf(responses)
	switch clusters := unknown.Clusters(); {
	case len(holders) > 1:
		return fanout.NewStatusError(http.StatusConflict, metav1.StatusReasonConflict,
			"conflict resource, exist in more than one cluster: %s", strings.Join(holders, ","))
	case len(clusters) > 0 && (found == nil || !isRead):
		return fanout.NewUnknownObjectError(info, clusters, unknown[clusters[0]])
	case found == nil:
		return fanout.NewStatusError(http.StatusNotFound, metav1.StatusReasonNotFound, "resource not found or don't have permission to get it")
	}
	if !isRead {
		if err := h.proxy.requireDelivery(req.Context(), info, holders[0], object); err != nil {
			return err
		}
	}
	unknown.WriteTo(w.Header())
	(&forwarder{client: found, path: h.path, responder: h.responder}).ServeHTTP(w, req)
	return nil
}

type clusterResponse struct {
	cluster string
	client  *client
	code    int
	body    []byte
	// memory is the memory reservation for the body.
	memory memoryReservation
	// err is set if it is unknown what the cluster has.
	err error
}

// discard deletes the body and releases its memory reservation.
func (c *clusterResponse) discard() {
	c.body = nil
	c.memory.release()
}

func discardAll(responses []clusterResponse) {
	for i := range responses {
		responses[i].discard()
	}
}

// warningsOf returns warnings for the clusters of which it is unknown what they have.
func warningsOf(responses []clusterResponse) fanout.Warnings {
	unknown := fanout.Warnings{}
	for _, r := range responses {
		var status apierrors.APIStatus
		switch {
		case errors.As(r.err, &status):
			unknown.Add(r.cluster, status.Status().Message) // the message already names the cluster
		case r.err != nil:
			unknown.Add(r.cluster, fmt.Sprintf("cluster %q is omitted: %v", r.cluster, r.err))
		}
	}
	return unknown
}

// fanOut sends a GET request to every cluster and returns the responses, sorted by cluster name. It
// returns an error only if the clusters cannot be listed, or if the memory for responses is exhausted.
// The caller must discard all responses. maxBytes and timeout limit each response, including its body.
func (h *allClustersHandler) fanOut(
	ctx context.Context, info *genericrequest.RequestInfo, maxBytes int64, timeout time.Duration, request Request,
) ([]clusterResponse, error) {
	clusters, err := h.proxy.sources.Clusters(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	slices.SortFunc(clusters, func(a, b clusterv1alpha1.Cluster) int { return strings.Compare(a.Name, b.Name) })
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	request.Method, request.Idle = http.MethodGet, h.proxy.timeouts.lookup
	responses := make([]clusterResponse, len(clusters))
	memory := semaphore.NewWeighted(h.proxy.memory.request)
	fanout.InParallel(len(clusters), func(i int) {
		r := &responses[i]
		r.cluster = clusters[i].Name
		if r.client, r.err = h.proxy.newClient(ctx, &clusters[i], h.caller); r.err == nil {
			r.memory = h.proxy.newReservation(r.client, maxBytes, memory)
			r.err = r.read(ctx, timeout, request)
		}
		if r.err == nil {
			r.err = validateResponse(&clusters[i], info, r)
		}
		if r.err != nil {
			r.discard()
		}
		if errors.Is(r.err, errMemoryExhausted) {
			cancel(errMemoryExhausted)
		}
	})
	if errors.Is(context.Cause(ctx), errMemoryExhausted) {
		discardAll(responses)
		return nil, newMemoryExhaustedError(h.proxy.memory.all)
	}
	return responses, nil
}

// read sends the request to the cluster and reads the response. The timeout applies to the whole
// response, because a member that sends a byte from time to time never exceeds the idle timeout.
func (c *clusterResponse) read(ctx context.Context, timeout time.Duration, request Request) error {
	ctx, stop := context.WithTimeoutCause(ctx, timeout, slowError{timeout})
	defer stop()
	resp, err := c.client.do(ctx, request)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	c.code = resp.StatusCode
	reader := &reservingReader{Reader: resp.Body, ctx: ctx, reservation: &c.memory}
	if c.code != http.StatusOK {
		reader.Reader = io.LimitReader(resp.Body, maxErrorBody)
	}
	c.body, err = io.ReadAll(reader)
	switch {
	case reader.err != nil:
		return reader.err
	case err != nil && errors.As(context.Cause(ctx), &slowError{}):
		return explainError(ctx, c.client.cluster, request.Idle, err)
	case err != nil:
		return fmt.Errorf("reading its response: %w", err)
	}
	return nil
}

// validateResponse returns an error for an error response that does not prove that the caller finds
// nothing in the cluster.
//
// A group version that status.apiEnablements does not list is certain not to be served only if that
// list is complete. The list is empty or partial while the cluster's discovery fails, for example
// behind a gateway that returns 404.
func validateResponse(cluster *clusterv1alpha1.Cluster, info *genericrequest.RequestInfo, r *clusterResponse) error {
	switch {
	case r.code == http.StatusOK, fanout.IsStatusAbout(info, r.code, r.body), r.code == http.StatusNotFound && !mayServe(cluster, info):
		return nil
	case r.code == http.StatusForbidden, r.code == http.StatusNotFound, r.code == http.StatusMethodNotAllowed:
		return fmt.Errorf("its response with code %d is not that of an API server about the request", r.code)
	}
	status := fmt.Sprintf("%d %s", r.code, http.StatusText(r.code))
	if message := fanout.StatusMessage(r.body); message != "" {
		status += ": " + message
	}
	return fmt.Errorf("it returns %s", status)
}

// mayServe reports whether a cluster may serve the requested resource.
func mayServe(cluster *clusterv1alpha1.Cluster, info *genericrequest.RequestInfo) bool {
	version := schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion}.String()
	for _, api := range cluster.Status.APIEnablements {
		if api.GroupVersion == version {
			return slices.ContainsFunc(api.Resources, func(served clusterv1alpha1.APIResource) bool { return served.Name == info.Resource })
		}
	}
	return !conditions.HasStatus(cluster.Status.Conditions, clusterv1alpha1.ClusterConditionCompleteAPIEnablements, metav1.ConditionTrue)
}
