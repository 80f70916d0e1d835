package query

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
)

// writeTimeout is the default time within which the client must read an event.
const writeTimeout = 30 * time.Second

// eventWriter writes a watch's events, one on each line.
type eventWriter struct {
	w          http.ResponseWriter
	controller *http.ResponseController
	now        func() time.Time
	asTable    bool
	// timeout is the time within which the client must read an event.
	timeout time.Duration
	// hasColumns is true after a Table with columns was sent.
	hasColumns bool
}

// watchEvent is an event as it is sent to the client.
type watchEvent struct {
	Type   watch.EventType `json:"type"`
	Object any             `json:"object"`
}

func (h *Handler) newEventWriter(w http.ResponseWriter, asTable bool) *eventWriter {
	return &eventWriter{w: w, controller: http.NewResponseController(w), now: h.now, asTable: asTable, timeout: h.writeTimeout}
}

// open sends the header, which shows the client that the watch has started.
func (e *eventWriter) open() error {
	e.w.Header().Set("Content-Type", "application/json; charset=utf-8")
	e.w.WriteHeader(http.StatusOK)
	return e.controller.Flush()
}

// write sends one event.
func (e *eventWriter) write(eventType watch.EventType, item searchv1alpha1.SearchResult) error {
	if !e.asTable {
		return e.send(watchEvent{eventType, item})
	}
	table := tableOf(&searchv1alpha1.SearchResultList{Items: []searchv1alpha1.SearchResult{item}}, e.now(), !e.hasColumns)
	e.hasColumns = true
	return e.send(watchEvent{eventType, table})
}

// fail sends the error that ends the watch, unless the request has already ended.
func (e *eventWriter) fail(ctx context.Context, err error) {
	reason := watchError(err)
	if reason == nil || ctx.Err() != nil {
		return
	}
	status := reason.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	_ = e.send(watchEvent{watch.Error, status}) // the watch ends in any case
}

func (e *eventWriter) send(event watchEvent) error {
	line, err := json.Marshal(event)
	if err != nil {
		return err
	}
	// Ignore errors, because not every writer in the API server supports deadlines. Remove the deadline
	// after the write, because HTTP/2 ends a stream at its deadline even if nothing is written.
	_ = e.controller.SetWriteDeadline(time.Now().Add(e.timeout))
	defer func() { _ = e.controller.SetWriteDeadline(time.Time{}) }()
	if _, err := e.w.Write(append(line, '\n')); err != nil {
		return err
	}
	return e.controller.Flush()
}
