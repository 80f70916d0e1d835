package fanout

import (
	"mime"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The media types of merged responses.
const (
	JSON = "application/json"
	YAML = "application/yaml"
)

// Format is a merged response's format.
type Format struct {
	// Accept is the Accept header of the requests to members. All its media types are JSON.
	Accept string
	// IsTable and IsPartial mean that the client prefers a table or PartialObjectMetadata, respectively.
	IsTable, IsPartial bool
	// IsYAML means that the client accepts YAML, but not JSON.
	IsYAML bool
}

// NegotiateFormat returns the format for the values of an Accept header. Kubernetes clients list the
// media types in the order of their preference. If no media type is supported, NegotiateFormat returns
// a NotAcceptable error, together with the format of a plain JSON response.
func NegotiateFormat(accept []string) (Format, error) {
	var format Format
	var kept []string
	for part := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		mediaType, params, err := mime.ParseMediaType(part)
		switch {
		case err != nil:
		case mediaType == JSON || mediaType == "*/*" || mediaType == "application/*":
			if len(kept) == 0 {
				format.IsTable = params["as"] == "Table"
				format.IsPartial = strings.HasPrefix(params["as"], "PartialObjectMetadata")
			}
			delete(params, "q")
			kept = append(kept, mime.FormatMediaType(JSON, params))
		case mediaType == YAML || mediaType == "text/yaml":
			format.IsYAML = true
		}
	}
	if len(kept) > 0 {
		format.Accept, format.IsYAML = strings.Join(kept, ","), false
		return format, nil
	}
	format.Accept = JSON
	if format.IsYAML || strings.Trim(strings.Join(accept, ""), " ,") == "" {
		return format, nil
	}
	return format, NewNotAcceptableError()
}

// NewNotAcceptableError returns the error for a client that accepts none of the supported media types.
func NewNotAcceptableError() error {
	return NewStatusError(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable,
		"the global proxy supports only the media types %s and %s (not for watches)", JSON, YAML)
}
