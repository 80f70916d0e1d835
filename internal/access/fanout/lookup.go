package fanout

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	kjson "sigs.k8s.io/json"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
)

// OneClusterPath is the proxy path of one cluster, for messages.
var OneClusterPath = "/apis/" + clusterv1alpha1.GroupVersion.String() + "/clusters/NAME/proxy"

// IsRead reports whether a request for a named object only reads. Streams into an object write, even if
// they begin with a GET request.
func IsRead(req *http.Request, info *genericrequest.RequestInfo) bool {
	switch info.Subresource {
	case "attach", "exec", "portforward", "proxy":
		return false
	}
	return info.Verb == "get" && req.Header.Get("Upgrade") == ""
}

// ParseIdentity returns the kind and the metadata of an object. Fields that the document does not have are
// empty. A field that occurs twice is an error, because decoders disagree about which one counts.
func ParseIdentity(document []byte) (*metav1.PartialObjectMetadata, error) {
	object := &metav1.PartialObjectMetadata{}
	duplicates, err := kjson.UnmarshalStrict(document, object, kjson.DisallowDuplicateFields)
	return object, errors.Join(append(duplicates, err)...)
}

// ParseRequestedObject parses the object in a member's response. It returns an error unless it is the
// requested object.
func ParseRequestedObject(info *genericrequest.RequestInfo, body []byte) (*metav1.PartialObjectMetadata, error) {
	object, err := ParseIdentity(body)
	version := schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion}
	if err == nil && (object.GroupVersionKind().GroupVersion() != version || object.Kind == "" ||
		object.Namespace != ObjectNamespace(info) || object.Name != info.Name) {
		err = errors.New("it is another object")
	}
	if err != nil {
		return nil, fmt.Errorf("its response is not the requested object: %w", err)
	}
	return object, nil
}

// IsStatusAbout reports whether an error response is an API server's Status which says that the caller
// does not find the requested object, or any object of the requested list.
func IsStatusAbout(info *genericrequest.RequestInfo, code int, body []byte) bool {
	var status metav1.Status
	isStatus := json.Unmarshal(body, &status) == nil && status.Kind == "Status"
	switch code {
	case http.StatusForbidden, http.StatusMethodNotAllowed:
		return isStatus
	case http.StatusNotFound:
		return isStatus && status.Details != nil && status.Details.Name == info.Name
	}
	return false
}

// NewUnknownObjectError returns the error for an object that may be in clusters that do not respond. reason
// is the first cluster's problem.
func NewUnknownObjectError(info *genericrequest.RequestInfo, clusters []string, reason string) error {
	// Without RetryAfterSeconds, clients do not repeat a request that fails until the cluster responds.
	return NewUnavailableError(
		"cannot %s %s: it is unknown whether clusters [%s] have it: %s: to address one cluster, use %s, or karmadactl with --cluster",
		info.Verb, DescribeObject(info), conditions.LimitMessage(strings.Join(clusters, ", ")), reason, OneClusterPath)
}

// DescribeObject returns a description of the requested object for messages.
func DescribeObject(info *genericrequest.RequestInfo) string {
	object := fmt.Sprintf("%s %q", GroupResource(info), info.Name)
	if namespace := ObjectNamespace(info); namespace != "" {
		object += fmt.Sprintf(" in namespace %q", namespace)
	}
	return object
}

// ObjectNamespace returns the namespace of the requested object. It differs from the namespace of the
// request only for a Namespace, whose request has its name as the namespace.
func ObjectNamespace(info *genericrequest.RequestInfo) string {
	if info.Resource == "namespaces" && info.APIGroup == "" {
		return ""
	}
	return info.Namespace
}

// GroupResource returns the requested resource.
func GroupResource(info *genericrequest.RequestInfo) schema.GroupResource {
	return schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
}

// StatusMessage returns the message of a Status, shortened and without control characters, or an empty
// string if body is not a Status with a message.
func StatusMessage(body []byte) string {
	var status metav1.Status
	if json.Unmarshal(body, &status) != nil {
		return ""
	}
	return conditions.LimitMessage(conditions.ToPrintable(status.Message))
}
