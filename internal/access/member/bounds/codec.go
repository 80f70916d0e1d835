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

// protobufPrefix is the prefix of each object that is encoded in protobuf.
var protobufPrefix = []byte("k8s\x00")

// codec decodes JSON and protobuf into the Go types of a scheme. Before it decodes, it estimates
// the memory, because two bytes of protobuf can become a Pod of more than a kilobyte.
type codec struct {
	runtime.NegotiatedSerializer
	hits  *HitTracker
	limit int64
	// typesByKind contains the types of the scheme. largestType is the size, in bytes, of the
	// largest of these Go types.
	typesByKind map[string]*typeMemory
	largestType int64
}

// Codec returns the serializer for a client that decodes the responses of a member into the types of
// a scheme. The scheme should contain only the types that the client reads.
func (m *MemberBounds) Codec(scheme *runtime.Scheme) runtime.NegotiatedSerializer {
	newCodec, memories := &codec{
		NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion(),
		hits:                 m.Hits, limit: m.Limits.DecodedBytes, typesByKind: map[string]*typeMemory{},
	}, typeMemories{}
	for kind, goType := range scheme.AllKnownTypes() {
		newCodec.typesByKind[kind.Kind] = memories.forType(goType)
	}
	for goType := range memories {
		newCodec.largestType = max(newCodec.largestType, int64(goType.Size()))
	}
	return newCodec
}

// SupportedMediaTypes implements runtime.NegotiatedSerializer. It returns only JSON and protobuf,
// because the memory of other formats cannot be estimated.
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
	return &boundedDecoder{Decoder: c.NegotiatedSerializer.DecoderToVersion(below, version), codec: c}
}

type boundedDecoder struct {
	runtime.Decoder
	codec *codec
}

// Decode implements runtime.Decoder.
func (b *boundedDecoder) Decode(data []byte, defaults *schema.GroupVersionKind,
	into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if err := b.codec.limitDecodedMemory(data, into); err != nil {
		return nil, nil, err
	}
	return b.Decoder.Decode(data, defaults, into)
}

// limitDecodedMemory returns an error for encoded data that would take too much memory when decoded. into
// is nil for events, which cannot be requested in smaller parts.
func (c *codec) limitDecodedMemory(data []byte, into runtime.Object) error {
	subject, weight, err := c.estimate(data, into)
	if err != nil || weight <= c.limit {
		return err
	}
	exceeded := ExceededError{Bound: DecodedBytes, Subject: subject, Limit: c.limit, Measured: c.limit + 1, Unit: "bytes of memory"}
	if into == nil {
		return c.hits.Record(exceeded)
	}
	return c.hits.recordUnlessPageTooLarge(exceeded)
}

func (c *codec) estimate(data []byte, into runtime.Object) (subject string, weight int64, err error) {
	subject = "an event"
	if into != nil {
		subject = reflect.TypeOf(into).Elem().Name()
	}
	if !bytes.HasPrefix(data, protobufPrefix) {
		return subject, c.estimateJSON(data), nil
	}
	envelope := runtime.Unknown{}
	if err := envelope.Unmarshal(data[len(protobufPrefix):]); err != nil {
		return subject, 0, fmt.Errorf("reading the envelope of a protobuf object: %w", err)
	}
	shape := c.typesByKind[envelope.Kind]
	if shape == nil {
		return subject, 0, fmt.Errorf("the member responds with an object of kind %q: %w",
			conditions.Truncate(conditions.ToPrintable(envelope.Kind), 128), errUnexpectedKind)
	}
	return subject, shape.estimate(envelope.Raw), nil
}

var errUnexpectedKind = errors.New("this kind was not requested")

// estimateJSON returns an estimate of the memory for JSON data. It assumes the largest type for
// each value, because even a null in an array becomes a full element when decoded.
func (c *codec) estimateJSON(data []byte) int64 {
	counter := valueCounter{}
	for len(data) > 0 {
		n, _ := counter.scan(data)
		data = data[n:]
	}
	return counter.count * c.largestType
}
