package bounds

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"karmada.io/karmada/internal/domain/conditions"
)

// protobufMark begins each object in protobuf.
var protobufMark = []byte("k8s\x00")

// codec decodes JSON and protobuf into the Go types of a scheme, and weighs each text
// before that: two bytes of protobuf can become a Pod of more than a kilobyte.
type codec struct {
	runtime.NegotiatedSerializer
	ledger *Ledger
	limit  int64
	// kinds are the types of the scheme, largest is the size in bytes of the largest
	// Go type in them.
	kinds   map[string]*shape
	largest int64
}

// Codec returns the serializer of a client that reads a member into the types of a
// scheme, which should hold only those that are read.
func (c *Caches) Codec(scheme *runtime.Scheme) runtime.NegotiatedSerializer {
	made, known := &codec{
		NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion(),
		ledger:               c.Ledger, limit: c.Limits.DecodedBytes, kinds: map[string]*shape{},
	}, shapes{}
	for kind, as := range scheme.AllKnownTypes() {
		made.kinds[kind.Kind] = known.of(as)
	}
	for as := range known {
		made.largest = max(made.largest, int64(as.Size()))
	}
	return made
}

// SupportedMediaTypes implements runtime.NegotiatedSerializer. Only JSON and protobuf
// can be weighed.
func (c *codec) SupportedMediaTypes() []runtime.SerializerInfo {
	var supported []runtime.SerializerInfo
	for _, info := range c.NegotiatedSerializer.SupportedMediaTypes() {
		if info.MediaType == runtime.ContentTypeJSON || info.MediaType == runtime.ContentTypeProtobuf {
			supported = append(supported, info)
		}
	}
	return supported
}

// DecoderToVersion implements runtime.NegotiatedSerializer.
func (c *codec) DecoderToVersion(below runtime.Decoder, version runtime.GroupVersioner) runtime.Decoder {
	return &weighing{Decoder: c.NegotiatedSerializer.DecoderToVersion(below, version), codec: c}
}

type weighing struct {
	runtime.Decoder
	codec *codec
}

// Decode implements runtime.Decoder.
func (w *weighing) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if err := w.codec.check(data, into); err != nil {
		return nil, nil, err
	}
	return w.Decoder.Decode(data, defaults, into)
}

// check returns an error for a text that takes too much memory when it is decoded. into
// is nil for events, which cannot be asked for in smaller parts.
func (c *codec) check(data []byte, into runtime.Object) error {
	subject, weight, err := c.weigh(data, into)
	if err != nil || weight <= c.limit {
		return err
	}
	exceeded := ExceededError{Bound: Decoded, Subject: subject, Limit: c.limit, Measured: c.limit + 1, Unit: "bytes of memory"}
	if into == nil {
		return c.ledger.Record(exceeded)
	}
	return c.ledger.recordLost(exceeded)
}

func (c *codec) weigh(data []byte, into runtime.Object) (subject string, weight int64, err error) {
	subject = "an event"
	if into != nil {
		subject = reflect.TypeOf(into).Elem().Name()
	}
	if !bytes.HasPrefix(data, protobufMark) {
		return subject, c.weighJSON(data), nil
	}
	envelope := runtime.Unknown{}
	if err := envelope.Unmarshal(data[len(protobufMark):]); err != nil {
		return subject, 0, fmt.Errorf("reading the envelope of a protobuf object: %w", err)
	}
	as := c.kinds[envelope.Kind]
	if as == nil {
		return subject, 0, fmt.Errorf("the member answers with an object of kind %q: %w", conditions.Shorten(conditions.Printable(envelope.Kind), 128), errUnknownKind)
	}
	return subject, as.weigh(envelope.Raw), nil
}

var errUnknownKind = errors.New("no such kind was asked for")

// weighJSON takes each value for one of the largest type: null in an array becomes an
// element like any other.
func (c *codec) weighJSON(data []byte) int64 {
	counted := values{}
	for len(data) > 0 {
		n, _ := counted.read(data)
		data = data[n:]
	}
	return counted.count * c.largest
}
