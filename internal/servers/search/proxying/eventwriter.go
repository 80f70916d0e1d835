package proxying

import (
	"bytes"
	"encoding/json"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"

	"karmada.io/karmada/internal/access/fanout"
	"karmada.io/karmada/internal/domain/combinedversion"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

// eventWriter writes a watch's events. Each event is one line of JSON.
type eventWriter struct {
	*request
	buffer        bytes.Buffer
	text, scratch []byte
}

// start sends the watch's header.
func (e *eventWriter) start() {
	e.w.Header().Set("Content-Type", fanout.JSON)
	e.w.WriteHeader(http.StatusOK)
}

// write writes an event for an object. If the object's cluster has no version yet, the object keeps its
// plain version, so that an update with this version is conditional.
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

// writeRaw writes an event for an object in JSON.
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

// bookmark writes a bookmark with the given versions.
func (e *eventWriter) bookmark(versions map[string]string, endsInitialEvents bool) error {
	object := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: combinedversion.New(versions).String()}}
	object.SetGroupVersionKind(e.kind.GroupVersionKind())
	if e.format.IsPartial {
		object.TypeMeta = metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"}
	}
	if endsInitialEvents {
		object.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	return e.writeObject("BOOKMARK", object)
}

// expire ends the watch with the error that makes clients list again.
func (e *eventWriter) expire(message string) {
	e.fail(apierrors.NewResourceExpired(message))
}

// fail ends the watch with an error.
func (e *eventWriter) fail(err error) {
	status := responsewriters.ErrorToAPIStatus(err)
	status.Kind, status.APIVersion = "Status", "v1"
	if e.writeObject("ERROR", status) == nil {
		_ = e.flush()
	}
}

func (e *eventWriter) writeObject(eventType string, object any) error {
	encoded, err := json.Marshal(object)
	if err != nil {
		return err
	}
	return e.writeRaw(eventType, encoded)
}

// flush sends the events that were written.
func (e *eventWriter) flush() error {
	// The server has no timeout for a watch. Writers that do not support deadlines ignore this one.
	controller := http.NewResponseController(e.w)
	_ = controller.SetWriteDeadline(time.Now().Add(e.limits.ClientRead))
	if _, err := e.w.Write(e.buffer.Bytes()); err != nil {
		return err
	}
	e.buffer.Reset()
	if err := controller.Flush(); err != nil {
		return err
	}
	// Remove the deadline, because over HTTP/2 a deadline ends the stream even if nothing is written.
	_ = controller.SetWriteDeadline(time.Time{})
	return nil
}
