package proxying

import (
	"bytes"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

func TestProtobufBodiesBecomeJSON(t *testing.T) {
	t.Parallel()
	encoder := scheme.Codecs.EncoderForVersion(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), corev1.SchemeGroupVersion)
	encoded := &bytes.Buffer{}
	if err := encoder.Encode(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", ResourceVersion: "eyJtMSI6IjEifQ"}}, encoded); err != nil {
		t.Fatal(err)
	}
	got, _, err := toJSON(encoded.Bytes(), "application/vnd.kubernetes.protobuf")
	want := `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c","resourceVersion":"eyJtMSI6IjEifQ"}}`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
	for _, invalid := range []string{"", "k8s\x00", "k8s\x00\x01", "{}"} {
		if got, _, err := toJSON([]byte(invalid), "application/vnd.kubernetes.protobuf"); err == nil {
			t.Errorf("%q becomes %s", invalid, got)
		}
	}
}
