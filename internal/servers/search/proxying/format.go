package proxying

import (
	"mime"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	jsonMediaType = "application/json"
	yamlMediaType = "application/yaml"
)

// format is the format of a response.
type format struct {
	// accept is the Accept header that is sent to members. Its media types are JSON.
	accept string
	// isTable means that the client prefers a table. isPartial means that it prefers the metadata.
	isTable, isPartial bool
	// isYAML means that the client accepts YAML and no JSON.
	isYAML bool
}

// negotiate returns the format that an Accept header asks for. Clients of Kubernetes list the media
// types in the order of their preference.
func negotiate(accept []string) (format, error) {
	var result format
	var kept []string
	yaml := false
	for part := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		mediaType, params, err := mime.ParseMediaType(part)
		switch {
		case err != nil:
		case mediaType == jsonMediaType || mediaType == "*/*" || mediaType == "application/*":
			if len(kept) == 0 {
				result.isTable = params["as"] == "Table"
				result.isPartial = strings.HasPrefix(params["as"], "PartialObjectMetadata")
			}
			delete(params, "q")
			kept = append(kept, mime.FormatMediaType(jsonMediaType, params))
		case mediaType == yamlMediaType || mediaType == "text/yaml":
			yaml = true
		}
	}
	switch {
	case len(kept) > 0:
		result.accept = strings.Join(kept, ",")
	case yaml:
		result.isYAML, result.accept = true, jsonMediaType
	case strings.Trim(strings.Join(accept, ""), " ,") == "":
		result.accept = jsonMediaType
	default:
		return result, notAcceptable()
	}
	return result, nil
}

func notAcceptable() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable,
		Message: "the global proxy offers only these media types: " + jsonMediaType + ", " + yamlMediaType + " (not for watches)",
	}}
}
