package proxying

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"karmada.io/karmada/internal/domain/clusterjson"

	"karmada.io/karmada/internal/access/memberproxy"
	"karmada.io/karmada/internal/domain/combinedversion"
	"karmada.io/karmada/internal/domain/rawjson"
)

const (
	// rewatchDelay is the delay before a watch of a member that ended begins again. It doubles with
	// each failure up to maxRewatchDelay.
	rewatchDelay    = time.Second
	maxRewatchDelay = 30 * time.Second
	// membersPeriod is how often a watch of tables looks for clusters that joined or left.
	membersPeriod = 5 * time.Second
	// initialPeriod is the time within which a member sends its initial state. Its order is not that of
	// the versions, so a watch that ends earlier begins from the start.
	initialPeriod = 10 * time.Second
)

// tableEvent is an event of the watch of a member, or the error of this watch.
type tableEvent struct {
	cluster   string
	eventType string
	object    json.RawMessage
}

// watchTables merges watches of the members whose events are tables.
func (r *request) watchTables(ctx context.Context) error {
	if r.options.SendInitialEvents != nil {
		return apierrors.NewBadRequest("sendInitialEvents is not supported for tables: list first, and watch from the resourceVersion of the list")
	}
	var watches sync.WaitGroup
	defer watches.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	version := combinedversion.Parse(r.options.ResourceVersion)
	versions := map[string]string{}
	for cluster, own := range version.Clusters() {
		versions[cluster] = own
	}
	// A cluster that accepts its watch late must not wait for a reader.
	clusters := r.participants(r.kind.Snapshot())
	events, opened := make(chan tableEvent), make(chan openResult, len(clusters))
	for _, p := range clusters {
		w := &tableWatch{request: r, participant: p.withoutObjects(), version: version.For(p.cluster), events: events}
		watches.Go(func() { w.run(ctx, opened) })
	}
	if err := r.awaitOpened(ctx, clusters, opened); err != nil {
		return err
	}
	r.warnings.write(r.w)
	out := &eventWriter{request: r}
	out.start()
	if out.flush() != nil {
		return nil
	}
	members := time.NewTicker(membersPeriod)
	defer members.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-members.C:
			// The client begins again, and then watches the clusters that joined.
			if !r.hasSameClusters(clusters) {
				return nil
			}
		case event := <-events:
			if !r.writeTable(out, event, versions) || out.flush() != nil {
				return nil
			}
		}
	}
}

// hasSameClusters reports whether the request still concerns these clusters.
func (r *request) hasSameClusters(clusters []*participant) bool {
	return slices.EqualFunc(clusters, r.participants(r.kind.Snapshot()), func(a, b *participant) bool { return a.cluster == b.cluster })
}

// awaitOpened waits until each cluster accepts or refuses its watch, or until the time for this ends. It
// fails if none accepts, and in strict mode if one does not.
func (r *request) awaitOpened(ctx context.Context, clusters []*participant, opened <-chan openResult) error {
	deadline := time.NewTimer(r.limits.Idle + r.limits.Lookup)
	defer deadline.Stop()
	pending := map[string]bool{}
	for _, p := range clusters {
		pending[p.cluster] = true
	}
	var firstErr error
	accepted, isLate := 0, false
	for len(pending) > 0 && !isLate {
		select {
		case <-ctx.Done():
			return newUnavailable("the watch ended before all clusters answered")
		case <-deadline.C:
			isLate = true
		case result := <-opened:
			delete(pending, result.cluster)
			switch err := result.err; {
			case err == nil:
				accepted++
			case r.isStrict || failsRequest(err):
				return err
			default:
				firstErr = cmp.Or(firstErr, err)
				r.warnings.add(result.cluster, "its objects are omitted: "+reasonOf(result.cluster, err))
			}
		}
	}
	for cluster := range pending {
		err := newUnavailable("cluster %q: it did not accept the watch in time", cluster)
		if r.isStrict {
			return err
		}
		firstErr = cmp.Or[error](firstErr, err)
		r.warnings.add(cluster, "it did not accept the watch in time: its objects come later")
	}
	if accepted == 0 && firstErr != nil {
		return firstErr
	}
	return nil
}

// openResult reports whether a cluster accepted its watch.
type openResult struct {
	cluster string
	err     error
}

// writeTable writes an event of a member. It reports whether the watch goes on.
func (r *request) writeTable(out *eventWriter, event tableEvent, versions map[string]string) bool {
	if event.eventType == "ERROR" {
		_ = out.writeRaw(event.eventType, event.object)
		_ = out.flush()
		return false
	}
	if own, err := rawjson.GetString(event.object, "metadata", "resourceVersion"); err == nil && own != "" {
		versions[event.cluster] = own
	}
	body, err := clusterjson.WithVersion(nil, event.object, combinedversion.New(versions))
	if err == nil {
		body, err = clusterjson.RewriteTable(body, event.cluster)
	}
	if err != nil {
		out.expire(fmt.Sprintf("cluster %q: reading an event of its watch: %v: list again", event.cluster, err))
		return false
	}
	return out.writeRaw(event.eventType, body) == nil
}

// tableWatch is the watch of one cluster.
type tableWatch struct {
	*request
	*participant
	version string
	events  chan<- tableEvent
}

// run sends the events of the cluster until ctx ends. It reports once whether the first watch was
// accepted.
func (t *tableWatch) run(ctx context.Context, opened chan<- openResult) {
	delay := rewatchDelay
	for reported := false; ctx.Err() == nil; {
		response, err := t.open(ctx)
		if !reported {
			reported = true
			select {
			case opened <- openResult{t.cluster, err}:
			case <-ctx.Done():
			}
		}
		if err == nil {
			began, fromStart := time.Now(), t.version == ""
			t.copyEvents(ctx, response.Body)
			_ = response.Body.Close()
			if fromStart && time.Since(began) < initialPeriod {
				t.version = ""
			}
			if time.Since(began) > maxRewatchDelay {
				delay = rewatchDelay
			}
		}
		if err != nil && failsRequest(err) {
			t.send(ctx, tableEvent{t.cluster, "ERROR", encodeError(err)})
			return
		}
		select {
		case <-time.After(delay):
		case <-ctx.Done():
		}
		delay = min(2*delay, maxRewatchDelay)
	}
}

// open starts a watch of the member.
func (t *tableWatch) open(ctx context.Context) (*http.Response, error) {
	ctx, cancel := context.WithCancel(ctx)
	query := t.req.URL.Query()
	query.Set("watch", strconv.FormatBool(true))
	query.Del("resourceVersion")
	if t.only != nil {
		// The namespace of a row is in its object.
		query.Del("includeObject")
	}
	if t.version != "" {
		query.Set("resourceVersion", t.version)
	}
	response, err := t.Handler.options.Reads.Do(ctx, t.cluster, t.caller, memberproxy.Request{
		Method: http.MethodGet, Path: t.collectionPath(t.participant.namespace), Query: query,
		Header: http.Header{"Accept": {t.format.accept}}, Idle: t.idle(t.cluster),
	})
	if err != nil {
		cancel()
		return nil, asStatus(t.cluster, err)
	}
	if response.StatusCode != http.StatusOK {
		// The body of an error has no idle timeout of its own.
		defer time.AfterFunc(t.limits.Lookup, cancel).Stop()
		defer cancel()
		defer response.Body.Close()
		body, _ := io.ReadAll(io.LimitReader(response.Body, chunk))
		return nil, responseError(t.cluster, response, body)
	}
	response.Body = memberproxy.OnClose(response.Body, cancel)
	return response, nil
}

// copyEvents sends the events of one watch of the member until it ends. The watch begins again at the
// last version, whatever ended it.
func (t *tableWatch) copyEvents(ctx context.Context, body io.Reader) {
	bounded := &boundedReader{Reader: body, limit: t.limits.PageBytes}
	decoder := json.NewDecoder(bounded)
	for {
		bounded.read = 0
		var event struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if err := decoder.Decode(&event); err != nil {
			return
		}
		if len(event.Object) == 0 || event.Object[0] != '{' {
			return
		}
		if event.Type != "ERROR" {
			if version, err := rawjson.GetString(event.Object, "metadata", "resourceVersion"); err == nil && version != "" {
				t.version = version
			}
			if !t.includesRow(event.Object) {
				continue
			}
		}
		if !t.send(ctx, tableEvent{t.cluster, eventTypeOf(event.Type), event.Object}) {
			return
		}
	}
}

// includesRow reports whether the registries let the proxy show the row of an event.
func (t *tableWatch) includesRow(table []byte) bool {
	rows, err := rawjson.Get(table, "rows")
	if t.only == nil || err != nil || len(rows) == 0 || rows[0] != '[' {
		return true
	}
	included := true
	_ = rawjson.EachElement(rows, func(row []byte) error {
		namespace, err := rawjson.GetString(row, "object", "metadata", "namespace")
		included = included && err == nil && t.includes(namespace)
		return nil
	})
	return included
}

func (t *tableWatch) send(ctx context.Context, event tableEvent) bool {
	select {
	case t.events <- event:
		return true
	case <-ctx.Done():
		return false
	}
}

// eventTypeOf returns a known type of event. Another text of a member is not forwarded.
func eventTypeOf(given string) string {
	switch given {
	case "ADDED", "MODIFIED", "DELETED", "BOOKMARK":
		return given
	}
	return "ERROR"
}

// boundedReader returns an error if more than limit bytes are read for one event.
type boundedReader struct {
	io.Reader
	limit, read int64
}

// Read implements io.Reader.
func (b *boundedReader) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if b.read += int64(n); b.read > b.limit {
		return 0, fmt.Errorf("an event exceeds %d bytes", b.limit)
	}
	return n, err
}

// encodeError returns an error as a raw Status.
func encodeError(err error) json.RawMessage {
	status := newUnavailable("%v", err).ErrStatus
	if api := asAPIStatus(err); api != nil {
		status = api.Status()
	}
	status.Kind, status.APIVersion = "Status", "v1"
	encoded, encodeErr := json.Marshal(status)
	if encodeErr != nil {
		return json.RawMessage(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":500}`)
	}
	return encoded
}
