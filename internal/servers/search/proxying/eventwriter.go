package proxying

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karmada.io/karmada/internal/access/fanout"
	"karmada.io/karmada/internal/domain/combinedversion"
	"karmada.io/karmada/internal/domain/jsonedit"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

// eventWriter writes the events of a watch. Each event is one line of JSON.
type eventWriter struct {
	*request
	buffer        bytes.Buffer
	text, scratch []byte
}

// start sends the header of the watch.
func (e *eventWriter) start() {
	e.w.Header().Set("Content-Type", fanout.JSON)
	e.w.WriteHeader(http.StatusOK)
}

// write writes an event of an object. An object whose cluster has no version yet keeps its plain version, so
// that an update with it is conditional.
func (e *eventWriter) write(eventType string, object *objectcache.Object, versions map[string]string) error {
	var err error
	if e.text, err = object.AppendJSON(e.text[:0]); err != nil {
		return err
	}
	body := e.text
	if _, known := versions[object.Source().Cluster]; known {
		if e.scratch, err = fanout.WithVersion(e.scratch[:0], body, combinedversion.New(versions)); err != nil {
			return err
		}
		body = e.scratch
	}
	if e.format.IsPartial {
		partial, err := fanout.ToPartial(nil, body)
		if err != nil {
			return err
		}
		body = partial
	}
	return e.writeRaw(eventType, body)
}

// writeRaw writes an event of a JSON document.
func (e *eventWriter) writeRaw(eventType string, object []byte) error {
	e.buffer.WriteString(`{"type":"`)
	e.buffer.WriteString(eventType)
	e.buffer.WriteString(`","object":`)
	e.buffer.Write(object)
	e.buffer.WriteString("}\n")
	if e.buffer.Len() >= fanout.FlushBytes {
		return e.flush()
	}
	return nil
}

// bookmark writes a bookmark.
func (e *eventWriter) bookmark(versions map[string]string, endsInitialEvents bool) error {
	kind, apiVersion := e.kind.GroupVersionKind().Kind, e.kind.GroupVersionKind().GroupVersion().String()
	if e.format.IsPartial {
		kind, apiVersion = "PartialObjectMetadata", "meta.k8s.io/v1"
	}
	object := append([]byte(`{"kind":`), jsonedit.Quote(kind)...)
	object = append(append(object, `,"apiVersion":`...), jsonedit.Quote(apiVersion)...)
	object = append(append(object, `,"metadata":{"resourceVersion":`...), jsonedit.Quote(combinedversion.New(versions).String())...)
	object = append(object, `,"creationTimestamp":null`...)
	if endsInitialEvents {
		object = append(object, `,"annotations":{"`+metav1.InitialEventsAnnotationKey+`":"true"}`...)
	}
	return e.writeRaw("BOOKMARK", append(object, "}}"...))
}

// expire ends the watch with the error that makes a client list again.
func (e *eventWriter) expire(message string) {
	e.fail(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired, Message: message,
	})
}

// fail ends the watch with an error.
func (e *eventWriter) fail(status metav1.Status) {
	object, err := json.Marshal(status)
	if err == nil && e.writeRaw("ERROR", object) == nil {
		_ = e.flush()
	}
}

// flush sends the events that were written.
func (e *eventWriter) flush() error {
	// The server has no timeout for a watch. A server without deadlines ignores this one.
	controller := http.NewResponseController(e.w)
	_ = controller.SetWriteDeadline(time.Now().Add(e.limits.ClientRead))
	if _, err := e.w.Write(e.buffer.Bytes()); err != nil {
		return err
	}
	e.buffer.Reset()
	if err := controller.Flush(); err != nil {
		return err
	}
	// Over HTTP/2, a deadline ends the stream even if nothing is written.
	_ = controller.SetWriteDeadline(time.Time{})
	return nil
}
