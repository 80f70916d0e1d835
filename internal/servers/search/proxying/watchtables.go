package proxying

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"karmada.io/karmada/internal/access/fanout"
	"karmada.io/karmada/internal/access/memberproxy"
	"karmada.io/karmada/internal/domain/combinedversion"
	"karmada.io/karmada/internal/domain/jsonedit"
)

const (
	// rewatchDelay is the delay before a member's watch that has ended is opened again. It doubles with
	// each attempt, up to maxRewatchDelay.
	rewatchDelay    = time.Second
	maxRewatchDelay = 30 * time.Second
	// membersPeriod is how often a watch of tables checks whether clusters have joined or left.
	membersPeriod = 5 * time.Second
	// initialPeriod is how long a member may take to send its initial state. The initial state is not
	// sent in the order of versions, so a watch that ends earlier must begin from the start.
	initialPeriod = 10 * time.Second
)

// watchEvent is an event in a member's watch, or the error that ends the watch.
type watchEvent struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`

	cluster string
	err     error
}

// watchTables merges the members' watches whose events contain tables.
func (r *request) watchTables(ctx context.Context) error {
	if r.options.SendInitialEvents != nil {
		return apierrors.NewBadRequest("sendInitialEvents is not supported for tables: list first, and watch from the resourceVersion of the list")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	version := combinedversion.Parse(r.options.ResourceVersion)
	var watches []*tableWatch
	for _, p := range r.participants(r.kind.Snapshot()) {
		watches = append(watches, &tableWatch{request: r, participant: p.withoutObjects(), version: version.For(p.cluster)})
	}
	defer func() {
		for _, w := range watches {
			if w.body != nil {
				_ = w.body.Close()
			}
		}
	}()
	if err := r.openWatches(ctx, watches); err != nil {
		return err
	}
	events := make(chan watchEvent)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	for _, w := range watches {
		running.Go(func() { w.run(ctx, events) })
	}
	r.warnings.WriteTo(r.w.Header())
	out := &eventWriter{request: r}
	out.start()
	if out.flush() != nil {
		return nil
	}
	versions := map[string]string{}
	maps.Copy(versions, version.Clusters())
	members := time.NewTicker(membersPeriod)
	defer members.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-members.C:
			// End the watch. The client then starts a new one, which includes the clusters that joined.
			if !slices.EqualFunc(watches, r.participants(r.kind.Snapshot()),
				func(w *tableWatch, p *participant) bool { return w.cluster == p.cluster }) {
				return nil
			}
		case event := <-events:
			if !out.writeTable(event, versions) || out.flush() != nil {
				return nil
			}
		}
	}
}

// openWatches opens all members' watches. It returns an error if no member accepts its watch and, in
// strict mode, if any member does not accept it.
func (r *request) openWatches(ctx context.Context, watches []*tableWatch) error {
	errs := make([]error, len(watches))
	fanout.InParallel(len(watches), func(i int) { errs[i] = watches[i].open(ctx) })
	isAccepted := false
	for i, err := range errs {
		switch cluster := watches[i].cluster; {
		case err == nil:
			isAccepted = true
		case r.isStrict || failsRequest(err):
			return err
		default:
			r.warn(cluster, "its objects are omitted until it accepts the watch: %s", reasonOf(cluster, err))
		}
	}
	if err := cmp.Or(errs...); !isAccepted && err != nil {
		return err
	}
	return nil
}

// writeTable writes a member's event. It reports whether the watch continues.
func (e *eventWriter) writeTable(event watchEvent, versions map[string]string) bool {
	switch {
	case event.err != nil:
		e.fail(event.err)
		return false
	case event.Type == "ERROR":
		_ = e.writeRaw(event.Type, event.Object)
		_ = e.flush()
		return false
	}
	own, err := jsonedit.GetString(event.Object, "metadata", "resourceVersion")
	if err == nil && own != "" {
		versions[event.cluster] = own
	}
	body, err := fanout.WithVersion(nil, event.Object, combinedversion.New(versions))
	if err == nil {
		body, err = style.RewriteTable(event.cluster, body)
	}
	if err != nil {
		e.expire(fmt.Sprintf("cluster %q: reading an event of its watch: %v: list again", event.cluster, err))
		return false
	}
	return e.writeRaw(event.Type, body) == nil
}

type tableWatch struct {
	*request
	*participant
	// version is the last event's version.
	version string
	// body contains the open watch's events. It is nil if no watch is open.
	body io.ReadCloser
}

// run sends the cluster's events until ctx ends or the request fails. It reopens a watch that ended.
func (t *tableWatch) run(ctx context.Context, events chan<- watchEvent) {
	for delay := rewatchDelay; ; delay = min(2*delay, maxRewatchDelay) {
		if t.body != nil {
			began, isFromStart := time.Now(), t.version == ""
			t.copyEvents(ctx, events)
			_ = t.body.Close()
			if isFromStart && time.Since(began) < initialPeriod {
				t.version = ""
			}
			if time.Since(began) > maxRewatchDelay {
				delay = rewatchDelay
			}
		}
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return
		}
		if err := t.open(ctx); err != nil && failsRequest(err) {
			t.send(ctx, events, watchEvent{cluster: t.cluster, err: err})
			return
		}
	}
}

// open opens a watch in the member.
func (t *tableWatch) open(ctx context.Context) error {
	t.body = nil
	query := t.memberQuery(t.participant)
	query.Set("watch", "true")
	if t.version != "" {
		query.Set("resourceVersion", t.version)
	}
	ctx, cancel := context.WithCancel(ctx)
	response, err := t.Handler.options.Reads.Do(ctx, t.cluster, t.caller, memberproxy.Request{
		Method: http.MethodGet, Path: t.collectionPath(t.participant), Query: query, Header: http.Header{"Accept": {t.format.Accept}},
		Idle: t.idle(t.cluster),
	})
	if err != nil {
		cancel()
		return asStatus(t.cluster, err)
	}
	if response.StatusCode == http.StatusOK {
		t.body = memberproxy.OnClose(response.Body, cancel)
		return nil
	}
	// An error response's body has no idle timeout of its own.
	defer time.AfterFunc(t.limits.Lookup, cancel).Stop()
	defer cancel()
	defer response.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(response.Body, fanout.FlushBytes))
	return responseError(t.cluster, response.StatusCode, body)
}

// copyEvents sends the open watch's events until the watch ends. The next watch begins at the last
// version, regardless of why this one ended.
func (t *tableWatch) copyEvents(ctx context.Context, events chan<- watchEvent) {
	bounded := &io.LimitedReader{R: t.body}
	decoder := json.NewDecoder(bounded)
	for {
		// An event that exceeds the limit ends the watch.
		bounded.N = t.limits.PageBytes
		event := watchEvent{cluster: t.cluster}
		if decoder.Decode(&event) != nil || !bytes.HasPrefix(event.Object, []byte("{")) {
			return
		}
		switch event.Type {
		case "ADDED", "MODIFIED", "DELETED", "BOOKMARK":
			if version, err := jsonedit.GetString(event.Object, "metadata", "resourceVersion"); err == nil && version != "" {
				t.version = version
			}
			if !t.includesRows(event.Object) {
				continue
			}
		default:
			event.Type = "ERROR"
		}
		if !t.send(ctx, events, event) {
			return
		}
	}
}

// includesRows reports whether the registries permit the proxy to show the rows in an event.
func (t *tableWatch) includesRows(table []byte) bool {
	rows, err := jsonedit.Get(table, "rows")
	if t.only == nil || err != nil || !bytes.HasPrefix(rows, []byte("[")) {
		return true
	}
	isIncluded := true
	_ = jsonedit.EachElement(rows, func(row []byte) error {
		namespace, err := jsonedit.GetString(row, "object", "metadata", "namespace")
		isIncluded = isIncluded && err == nil && t.includes(namespace)
		return nil
	})
	return isIncluded
}

func (t *tableWatch) send(ctx context.Context, events chan<- watchEvent, event watchEvent) bool {
	select {
	case events <- event:
		return true
	case <-ctx.Done():
		return false
	}
}
