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

// OneClusterPath is the path of one cluster's proxy, for messages.
var OneClusterPath = "/apis/" + clusterv1alpha1.GroupVersion.String() + "/clusters/NAME/proxy"

// IsRead reports whether a request for a named object only reads. Streams into an object, such as exec,
// count as writes even if they begin with a GET request.
func IsRead(req *http.Request, info *genericrequest.RequestInfo) bool {
	switch info.Subresource {
	case "attach", "exec", "portforward", "proxy":
		return false
	}
	return info.Verb == "get" && req.Header.Get("Upgrade") == ""
}

// ParseIdentity returns an object's kind and metadata. Fields that the document does not have are
// empty. If a field occurs twice, ParseIdentity returns an error, because decoders disagree about which
// of the two counts.
func ParseIdentity(document []byte) (*metav1.PartialObjectMetadata, error) {
	object := &metav1.PartialObjectMetadata{}
	duplicates, err := kjson.UnmarshalStrict(document, object, kjson.DisallowDuplicateFields)
	return object, errors.Join(append(duplicates, err)...)
}

// ParseRequestedObject parses the object in a member's response. It returns an error if this is not the
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

// IsStatusAbout reports whether an error response is an API server's Status that says that the caller
// finds neither the requested object nor, for a list request, any object.
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

// NewUnknownObjectError returns the error for an object that may be in clusters that do not respond.
// reason describes the first cluster's problem.
func NewUnknownObjectError(info *genericrequest.RequestInfo, clusters []string, reason string) error {
	// Do not set RetryAfterSeconds, because clients would repeat a request that fails until the cluster
	// responds.
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

// ObjectNamespace returns the requested object's namespace. It differs from the request's namespace
// only if the requested object is a Namespace, because such a request has the object's name as its
// namespace.
func ObjectNamespace(info *genericrequest.RequestInfo) string {
	if info.Resource == "namespaces" && info.APIGroup == "" {
		return ""
	}
	return info.Namespace
}

// GroupResource returns the requested group and resource.
func GroupResource(info *genericrequest.RequestInfo) schema.GroupResource {
	return schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
}

// StatusMessage returns a Status's message, shortened and without control characters. It returns an
// empty string if body is not a Status with a message.
func StatusMessage(body []byte) string {
	var status metav1.Status
	if json.Unmarshal(body, &status) != nil {
		return ""
	}
	return conditions.LimitMessage(conditions.ToPrintable(status.Message))
}
