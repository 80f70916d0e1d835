package proxying

import (
	"encoding/json"
	"fmt"

	"k8s.io/client-go/kubernetes/scheme"
)

// protobufMediaType is the media type in which the clients of client-go send built-in kinds.
const protobufMediaType = "application/vnd.kubernetes.protobuf"

// protobufToJSON converts the body of a write. It returns an error if the body is no object of a
// built-in kind.
func protobufToJSON(body []byte) ([]byte, error) {
	object, kind, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("decoding a protobuf body: %w", err)
	}
	object.GetObjectKind().SetGroupVersionKind(*kind)
	return json.Marshal(object)
}
