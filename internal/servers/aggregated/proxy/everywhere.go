package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/authentication/user"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

const (
	// parallelism is how many clusters one request asks at once.
	parallelism = 16
	// maxAnswers bounds what all clusters together may answer, in bytes.
	maxAnswers = 256 << 20
	// maxWarnings bounds the header; the rest is counted.
	maxWarnings = 10

	metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
)

// everywhere answers one request to all clusters.
type everywhere struct {
	proxy     *Proxy
	path      string
	caller    user.Info
	responder rest.Responder
}

func (e *everywhere) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	path := "/" + strings.Trim(e.path, "/")
	info, err := requests.NewRequestInfo(&http.Request{Method: req.Method, URL: &url.URL{Path: path, RawQuery: req.URL.RawQuery}})
	switch {
	case err != nil:
		e.responder.Error(apierrors.NewBadRequest(fmt.Sprintf("reading path %q: %v", path, err)))
	case !info.IsResourceRequest:
		if !redirectToSlash(strings.TrimSuffix(e.path, "/")+trailing(req.URL), w, req) {
			e.proxy.karmada.serve(w, req, e.path, e.caller, e.responder)
		}
	case info.Name != "":
		e.forwardToHolder(w, req, info)
	case info.Verb == "list":
		e.list(w, req)
	default:
		e.responder.Error(apierrors.NewMethodNotSupported(resourceOf(info), info.Verb))
	}
}

// answer is what one cluster says.
type answer struct {
	cluster string
	way     *way
	header  http.Header
	code    int
	body    []byte
	err     error
}

// ask sends a GET to every cluster and returns the answers in the order of the
// clusters' names. It fails only if the clusters are not known.
func (e *everywhere) ask(ctx context.Context, path string, query url.Values, accept string) ([]answer, error) {
	clusters, err := e.proxy.from.Clusters(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	slices.SortFunc(clusters, func(a, b clusterv1alpha1.Cluster) int { return strings.Compare(a.Name, b.Name) })
	answers := make([]answer, len(clusters))
	places := make(chan struct{}, parallelism)
	var budget atomic.Int64
	budget.Store(maxAnswers)
	var asking sync.WaitGroup
	for i := range clusters {
		places <- struct{}{}
		asking.Go(func() {
			defer func() { <-places }()
			answers[i] = e.askOne(ctx, &clusters[i], path, query, accept, &budget)
		})
	}
	asking.Wait()
	return answers, nil
}

func (e *everywhere) askOne(ctx context.Context, cluster *clusterv1alpha1.Cluster, path string, query url.Values, accept string, budget *atomic.Int64) answer {
	said := answer{cluster: cluster.Name}
	if said.way, said.err = e.proxy.way(ctx, cluster, e.caller); said.err != nil {
		return said
	}
	leave, ok := enter(said.way.member.requests)
	if !ok {
		said.err = crowded(cluster, maxRequests, "requests")
		return said
	}
	defer leave()
	ctx, end := under(ctx, said.way.member.life)
	defer end(nil)
	brief := *said.way
	brief.limits.silence = brief.limits.lookup
	target, err := location(cluster, path, &url.URL{RawQuery: query.Encode()})
	if err != nil {
		said.err = err
		return said
	}
	req := (&http.Request{Method: http.MethodGet, URL: target, Host: target.Host, Header: http.Header{"Accept": {accept}}}).WithContext(ctx)
	resp, err := brief.plain(req)
	if err != nil {
		said.err = err
		return said
	}
	defer resp.Body.Close()
	said.code, said.header = resp.StatusCode, resp.Header
	if said.body, err = io.ReadAll(budgeted{resp.Body, budget}); err != nil {
		said.err = fmt.Errorf("cluster %q is left out: reading its answer: %w", cluster.Name, err)
	}
	return said
}

// budgeted is a reader whose bytes are taken from a budget.
type budgeted struct {
	io.Reader
	left *atomic.Int64
}

func (b budgeted) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if b.left.Add(-int64(n)) < 0 {
		return 0, errTooMuch
	}
	return n, err
}

// warn tells the client which clusters are left out because they could not be
// asked. Those that answer that they have nothing, or nothing for the caller, are
// no news.
func warn(w http.ResponseWriter, answers []answer) {
	var silent []error
	for _, said := range answers {
		if said.err != nil {
			silent = append(silent, said.err)
		}
	}
	for i, err := range silent {
		text := err.Error()
		if i == maxWarnings {
			text = fmt.Sprintf("%d more clusters are left out", len(silent)-i)
		}
		if warning, err := utilnet.NewWarningHeader(299, "-", text); err == nil {
			w.Header().Add("Warning", warning)
		}
		if i == maxWarnings {
			return
		}
	}
}

// forwardToHolder passes a request on to the one cluster that has the object.
func (e *everywhere) forwardToHolder(w http.ResponseWriter, req *http.Request, info *genericrequest.RequestInfo) {
	answers, err := e.ask(req.Context(), objectPath(e.path, info), nil, metadataOnly)
	if err != nil {
		e.responder.Error(err)
		return
	}
	var names []string
	var holder *way
	for _, said := range answers {
		if said.err == nil && said.code == http.StatusOK {
			names, holder = append(names, said.cluster), said.way
		}
	}
	switch len(names) {
	case 0:
		warn(w, answers)
		e.responder.Error(failure(http.StatusNotFound, metav1.StatusReasonNotFound, "resource not found or don't have permission to get it"))
	case 1:
		(&passage{way: holder, path: e.path, responder: e.responder}).ServeHTTP(w, req)
	default:
		e.responder.Error(failure(http.StatusConflict, metav1.StatusReasonConflict,
			"conflict resource, exist in more than one cluster: %s", strings.Join(names, ",")))
	}
}

// objectPath is the path that tells whether there is an object. Of the subresources
// only these can be read without doing anything.
func objectPath(path string, info *genericrequest.RequestInfo) string {
	if info.Subresource == "" || info.Subresource == "status" || info.Subresource == "scale" {
		return path
	}
	parts := []string{"", info.APIPrefix}
	if info.APIGroup != "" {
		parts = append(parts, info.APIGroup)
	}
	parts = append(parts, info.APIVersion)
	if info.Namespace != "" && info.Resource != "namespaces" {
		parts = append(parts, "namespaces", info.Namespace)
	}
	return strings.Join(append(parts, info.Resource, info.Name), "/")
}

// list concatenates what all clusters have. There are no pages: a token for the
// next one would be good in one cluster only.
func (e *everywhere) list(w http.ResponseWriter, req *http.Request) {
	query := req.URL.Query()
	query.Del("limit")
	query.Del("continue")
	answers, err := e.ask(req.Context(), e.path, query, jsonOf(req.Header.Values("Accept")))
	if err != nil {
		e.responder.Error(err)
		return
	}
	var merged list
	var header http.Header
	for i := range answers {
		said := &answers[i]
		if said.err != nil || said.code != http.StatusOK {
			continue
		}
		if said.err = merged.add(said.cluster, said.body); said.err == nil && header == nil {
			header = said.header
		}
		said.body = nil
	}
	warn(w, answers)
	if header == nil {
		e.responder.Error(failure(http.StatusNotFound, metav1.StatusReasonNotFound, "not found"))
		return
	}
	body, err := merged.encode()
	if err != nil {
		e.responder.Error(fmt.Errorf("encoding the list of all clusters: %w", err))
		return
	}
	for _, name := range append(hopHeaders, "Content-Length", "Content-Encoding", "Warning") {
		header.Del(name)
	}
	maps.Copy(w.Header(), header)
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(body)
}

// jsonOf are the media types of an Accept header that lists can be merged in.
func jsonOf(accept []string) string {
	var kept []string
	for part := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		if part = strings.TrimSpace(part); strings.HasPrefix(part, "application/json") {
			kept = append(kept, part)
		}
	}
	if len(kept) == 0 {
		return "application/json"
	}
	return strings.Join(kept, ",")
}

var errTooMuch = errors.New("the clusters together answer with too much: select less")

func resourceOf(info *genericrequest.RequestInfo) schema.GroupResource {
	return schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
}
