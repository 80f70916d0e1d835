package v1alpha1

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

func TestInternalVersionRoundTrip(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	scheme.AddKnownTypes(InternalGroupVersion, &Cluster{}, &ClusterList{})
	codecs := serializer.NewCodecFactory(scheme)
	codec := codecs.CodecForVersions(
		codecs.LegacyCodec(GroupVersion), codecs.UniversalDeserializer(), GroupVersion, InternalGroupVersion)
	stored := `{"kind":"Cluster","apiVersion":"cluster.karmada.io/v1alpha1","metadata":{"name":"m1"},` +
		`"spec":{"syncMode":"Pull"},"status":{}}`

	inMemory, _, err := codec.Decode([]byte(stored), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := &Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}, Spec: ClusterSpec{SyncMode: Pull}}
	if diff := cmp.Diff(runtime.Object(want), inMemory); diff != "" {
		t.Errorf("object in memory (-want +got):\n%s", diff)
	}

	encoded, err := runtime.Encode(codec, inMemory)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(stored, strings.TrimSpace(string(encoded))); diff != "" {
		t.Errorf("stored object (-want +got):\n%s", diff)
	}
}
