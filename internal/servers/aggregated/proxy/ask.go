package proxy

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
	// parallelism is how many clusters one request asks at once.
	parallelism = 16
	// maxWarnings bounds the header; the rest is counted.
	maxWarnings = 10
)

// question is what all clusters are asked by a GET.
type question struct {
	path   string
	query  url.Values
	accept string
	// limit is how many bytes the answer of a cluster may take, time how long it may
	// take, body included.
	limit int64
	time  time.Duration
	// keep says that the bodies of the answers are needed.
	keep bool
}

// answer is what one cluster says.
type answer struct {
	cluster string
	way     *way
	header  http.Header
	code    int
	body    []byte
	// grant is the room that the body takes.
	grant *grant
	err   error
}

// drop forgets the body and gives its room back.
func (a *answer) drop() {
	a.body = nil
	a.grant.release()
}

func dropAll(answers []answer) {
	for i := range answers {
		answers[i].drop()
	}
}

// ask puts a question to every cluster and returns the answers in the order of the
// clusters' names. It fails only if the clusters are not known, or if there is no room
// for what they answer. The caller drops all answers.
func (e *everywhere) ask(ctx context.Context, put question) ([]answer, error) {
	clusters, err := e.proxy.from.Clusters(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	slices.SortFunc(clusters, func(a, b clusterv1alpha1.Cluster) int { return strings.Compare(a.Name, b.Name) })
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	answers := make([]answer, len(clusters))
	places := make(chan struct{}, parallelism)
	var left atomic.Int64
	left.Store(e.proxy.room.request)
	var asking sync.WaitGroup
	for i := range clusters {
		places <- struct{}{}
		asking.Go(func() {
			defer func() { <-places }()
			said := &answers[i]
			*said = e.askOne(ctx, &clusters[i], put, &left)
			if said.err == nil && said.code == http.StatusOK && put.keep {
				return
			}
			said.drop()
			if errors.Is(said.err, errNoRoom) {
				end(errNoRoom)
			}
		})
	}
	asking.Wait()
	if errors.Is(context.Cause(ctx), errNoRoom) {
		dropAll(answers)
		return nil, noRoom(e.proxy.room.all)
	}
	return answers, nil
}

// askOne asks one cluster. A fixed time bounds the whole of it: a member that sends a
// byte now and then is never silent.
func (e *everywhere) askOne(ctx context.Context, cluster *clusterv1alpha1.Cluster, put question, left *atomic.Int64) answer {
	said := answer{cluster: cluster.Name}
	ctx, stop := context.WithTimeoutCause(ctx, put.time, errSlow)
	defer stop()
	if said.way, said.err = e.proxy.way(ctx, cluster, e.caller); said.err != nil {
		return said
	}
	ctx, end := under(ctx, said.way.member.life)
	defer end(nil)
	brief := *said.way
	brief.limits.silence, brief.limits.answer = brief.limits.lookup, put.time
	target, err := location(cluster, put.path, &url.URL{RawQuery: put.query.Encode()})
	if err != nil {
		said.err = err
		return said
	}
	leave, err := said.way.enter(&http.Request{Method: http.MethodGet, URL: target}, target, false)
	if err != nil {
		said.err = err
		return said
	}
	defer leave()
	req := (&http.Request{Method: http.MethodGet, URL: target, Host: target.Host, Header: http.Header{"Accept": {put.accept}}}).WithContext(ctx)
	resp, err := brief.plain(req)
	if err != nil {
		said.err = err
		return said
	}
	defer resp.Body.Close()
	said.code, said.header = resp.StatusCode, resp.Header
	said.grant = &grant{
		cluster: cluster.Name, room: e.proxy.room, limit: put.limit, request: left,
		member: said.way.member.answers, all: e.proxy.answers,
	}
	var body io.Reader = resp.Body
	if said.code != http.StatusOK {
		body = io.LimitReader(body, maxRefusal)
	}
	if said.body, err = io.ReadAll(granted{body, ctx, said.grant}); err != nil {
		said.err = unread(ctx, &brief, err)
		return said
	}
	said.err = refusal(cluster.Name, resp.Status, said)
	return said
}

// unread is why an answer could not be read.
func unread(ctx context.Context, w *way, err error) error {
	var left *leftOutError
	switch {
	case errors.Is(err, errNoRoom), errors.As(err, &left):
		return err
	case errors.Is(context.Cause(ctx), errSlow):
		err = explain(ctx, w.cluster, w.limits, err)
	}
	return fmt.Errorf("cluster %q is left out: reading its answer: %w", w.cluster.Name, err)
}

// refusal is the error of a cluster that could not answer. To have nothing, or
// nothing for the caller, is an answer.
func refusal(cluster, status string, said answer) error {
	switch said.code {
	case http.StatusOK, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed:
		return nil
	}
	var why metav1.Status
	if err := json.Unmarshal(said.body, &why); err == nil && why.Message != "" {
		status += ": " + conditions.Clip(conditions.Printable(why.Message))
	}
	return fmt.Errorf("cluster %q is left out: it answers %s", cluster, status)
}

// warn tells the client which clusters are left out because they could not be
// asked, or could not answer.
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
		// A header is one line.
		text = strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "")
		if warning, err := utilnet.NewWarningHeader(299, "-", text); err == nil {
			w.Header().Add("Warning", warning)
		}
		if i == maxWarnings {
			return
		}
	}
}
