package bounds

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

func podScheme() *kruntime.Scheme {
	scheme := kruntime.NewScheme()
	scheme.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Node{}, &corev1.NodeList{}, &corev1.Pod{}, &corev1.PodList{})
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	return scheme
}

// newDecoder returns the decoder that a client uses for a media type.
func newDecoder(t testing.TB, caches *MemberBounds, mediaType string) kruntime.Decoder {
	t.Helper()
	codec := caches.Codec(podScheme())
	info, ok := kruntime.SerializerInfoForMediaType(codec.SupportedMediaTypes(), mediaType)
	if !ok {
		t.Fatalf("%s is not supported", mediaType)
	}
	return codec.DecoderToVersion(info.Serializer, corev1.SchemeGroupVersion)
}

// protobufObject returns an object in protobuf.
func protobufObject(kind string, raw []byte) []byte {
	envelope := kruntime.Unknown{TypeMeta: kruntime.TypeMeta{APIVersion: "v1", Kind: kind}, Raw: raw}
	text, err := envelope.Marshal()
	if err != nil {
		panic(err)
	}
	return append(bytes.Clone(protobufPrefix), text...)
}

// protobufField returns a length-delimited field.
func protobufField(number uint64, inner []byte) []byte {
	text := binary.AppendUvarint(nil, number<<3|wireBytes)
	return append(binary.AppendUvarint(text, uint64(len(inner))), inner...)
}

func TestDecodedMemoryBound(t *testing.T) {
	const size = 1 << 20
	emptyItems := bytes.Repeat([]byte{0x12, 0}, size)
	// The field number has more than 32 bits, and its lower 32 bits contain 2. The length has more
	// than 64 bits. The generated decoders drop the higher bits of both numbers.
	odd := append(binary.AppendUvarint(nil, (1<<32|2)<<3|wireBytes), 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02)
	pod := protobufField(2, protobufField(2, nil))
	for name, tc := range map[string]struct {
		kind, mediaType string
		text            []byte
	}{
		"Pods of two bytes":                             {"PodList", kruntime.ContentTypeProtobuf, protobufObject("PodList", emptyItems)},
		"nodes of two bytes":                            {"NodeList", kruntime.ContentTypeProtobuf, protobufObject("NodeList", emptyItems)},
		"Pods of two bytes after a group":               {"PodList", kruntime.ContentTypeProtobuf, protobufObject("PodList", append([]byte{0x7b, 0x7c}, emptyItems...))},
		"Pods with an overlong field number and length": {"PodList", kruntime.ContentTypeProtobuf, protobufObject("PodList", bytes.Repeat(odd, size/16))},
		"Pods followed by an invalid field":             {"PodList", kruntime.ContentTypeProtobuf, protobufObject("PodList", append(bytes.Clone(emptyItems), 0xff))},
		"containers of two bytes":                       {"", kruntime.ContentTypeProtobuf, protobufObject("Pod", protobufField(2, emptyItems))},
		"Pods with a container":                         {"PodList", kruntime.ContentTypeProtobuf, protobufObject("PodList", bytes.Repeat(protobufField(2, pod), size/8))},
		"nulls":                                         {"PodList", kruntime.ContentTypeJSON, []byte(`{"kind":"PodList","apiVersion":"v1","items":[` + strings.Repeat("null,", size) + `null]}`)},
		"empty objects":                                 {"PodList", kruntime.ContentTypeJSON, []byte(`{"kind":"PodList","apiVersion":"v1","items":[` + strings.Repeat("{},", size) + `{}]}`)},
		"empty containers":                              {"", kruntime.ContentTypeJSON, []byte(`{"kind":"Pod","apiVersion":"v1","spec":{"containers":[` + strings.Repeat("{},", size) + `{}]}}`)},
	} {
		t.Run(name, func(t *testing.T) {
			tracker := NewHitTracker("m1", time.Now)
			decoder := newDecoder(t, &MemberBounds{Limits: DefaultLimits(), Hits: tracker, Now: time.Now}, tc.mediaType)
			var into kruntime.Object
			switch tc.kind {
			case "PodList":
				into = &corev1.PodList{}
			case "NodeList":
				into = &corev1.NodeList{}
			}
			_, _, err := decoder.Decode(tc.text, nil, into)
			var exceeded *ExceededError
			if !errors.As(err, &exceeded) || exceeded.Bound != DecodedBytes || exceeded.Cluster != "m1" {
				t.Errorf("err = %v, want the bound %s", err, DecodedBytes)
			}
			// No hit is recorded for a list, because the list can be requested again with fewer
			// objects.
			if want := into == nil; len(tracker.Recent()) == 1 != want {
				t.Errorf("recorded %v, want %v", tracker.Recent(), want)
			}
		})
	}
}

func TestDecoderRejectsUnexpectedKind(t *testing.T) {
	decoder := newDecoder(t, &MemberBounds{Limits: DefaultLimits(), Hits: NewHitTracker("m1", time.Now)}, kruntime.ContentTypeProtobuf)
	for kind, want := range map[string]error{"Pod": nil, "Status": nil, "Secret": errUnexpectedKind, "": errUnexpectedKind} {
		if _, _, err := decoder.Decode(protobufObject(kind, nil), nil, nil); !errors.Is(err, want) {
			t.Errorf("kind %q: err = %v, want %v", kind, err, want)
		}
	}
}

// TestMemoryEstimateCoversDecodedSize compares the estimate with the memory that the decoder
// takes.
func TestMemoryEstimateCoversDecodedSize(t *testing.T) {
	list := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
	for i := range 250 {
		pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("web-%d", i), Labels: map[string]string{"app": "web", "tier": "front"}}}
		for j := range 3 {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
				Name: fmt.Sprintf("c-%d", j), Image: "registry.example.com/web:1", Env: make([]corev1.EnvVar, 20),
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
			})
		}
		list.Items = append(list.Items, pod)
	}
	var text bytes.Buffer
	scheme := podScheme()
	if err := protobuf.NewSerializer(scheme, scheme).Encode(list, &text); err != nil {
		t.Fatal(err)
	}
	codec, ok := (&MemberBounds{Limits: DefaultLimits(), Hits: NewHitTracker("m1", time.Now)}).Codec(scheme).(*codec)
	if !ok {
		t.Fatal("no codec")
	}
	_, weight, err := codec.estimate(text.Bytes(), &corev1.PodList{})
	if err != nil {
		t.Fatal(err)
	}
	before := liveHeapBytes()
	decoded := &corev1.PodList{}
	if _, _, err := newDecoder(t, &MemberBounds{Limits: DefaultLimits(), Hits: NewHitTracker("m1", time.Now)}, kruntime.ContentTypeProtobuf).Decode(text.Bytes(), nil, decoded); err != nil {
		t.Fatalf("a page of ordinary Pods: %v", err)
	}
	taken := liveHeapBytes() - before
	if len(decoded.Items) != len(list.Items) {
		t.Errorf("%d of %d Pods", len(decoded.Items), len(list.Items))
	}
	if weight < taken || weight > 4*taken {
		t.Errorf("the estimate is %d KiB, the decoded size is %d KiB", weight>>10, taken>>10)
	}
	runtime.KeepAlive(decoded)
	runtime.KeepAlive(list)
}

func liveHeapBytes() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc) // far below 2⁶³
}
