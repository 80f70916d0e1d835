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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
)

const (
	// parallelism is how many clusters one request asks at once.
	parallelism = 16
	// maxAnswers bounds what all clusters together may answer, in bytes.
	maxAnswers = 256 << 20
	// maxWarnings bounds the header; the rest is counted.
	maxWarnings = 10
)

var errTooMuch = errors.New("the clusters together answer with too much: select less")

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
	budget.Store(e.proxy.maxAnswers)
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
	ctx, end := under(ctx, said.way.member.life)
	defer end(nil)
	brief := *said.way
	brief.limits.silence = brief.limits.lookup
	target, err := location(cluster, path, &url.URL{RawQuery: query.Encode()})
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
		return said
	}
	said.err = refusal(cluster.Name, resp.Status, said)
	return said
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
