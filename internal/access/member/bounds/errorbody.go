package bounds

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karmada.io/karmada/internal/domain/conditions"
)

// limitErrorBody replaces the body of an error by a limited and printable body, because messages of
// members are shown in conditions, events, logs and terminals.
func (l Limits) limitErrorBody(response *http.Response) error {
	if isProtobuf(response) {
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(response.Body, l.ErrorBytes), response.Body}
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, l.ErrorBytes+1))
	_ = response.Body.Close()
	if err != nil {
		return fmt.Errorf("reading an error of the member: %w", err)
	}
	body = l.cleanErrorBody(body, response)
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	response.Header.Del("Content-Length")
	return nil
}

// cleanErrorBody returns the body unchanged if it is short and printable. Otherwise it returns a
// shortened copy of the Status in the body, or a shortened text if the body contains no Status.
func (l Limits) cleanErrorBody(body []byte, response *http.Response) []byte {
	if len(body) <= l.MessageBytes && isPlainText(body) {
		return body
	}
	status := metav1.Status{}
	if int64(len(body)) > l.ErrorBytes || json.Unmarshal(body, &status) != nil || status.Kind != "Status" {
		return []byte(conditions.Truncate(conditions.ToPrintable(string(body[:min(len(body), l.MessageBytes)])), l.MessageBytes))
	}
	l.cleanStatus(&status)
	cleaned, err := json.Marshal(status)
	if err != nil {
		return []byte(http.StatusText(response.StatusCode))
	}
	return cleaned
}

// maxNameLength is the maximum length of the name of a Kubernetes object, in bytes.
const maxNameLength = 253

// validReason matches a valid reason of a Status.
var validReason = regexp.MustCompile(`^[A-Za-z]{1,64}$`)

func (l Limits) cleanStatus(status *metav1.Status) {
	shorten := func(text string, bytes int) string { return conditions.Truncate(conditions.ToPrintable(text), bytes) }
	status.Message = shorten(status.Message, l.MessageBytes)
	if !validReason.MatchString(string(status.Reason)) {
		status.Reason = ""
	}
	details := status.Details
	if details == nil {
		return
	}
	details.Name, details.Group, details.Kind = shorten(details.Name, maxNameLength), shorten(details.Group, maxNameLength),
		shorten(details.Kind, maxNameLength)
	details.UID = ""
	details.RetryAfterSeconds = min(max(0, details.RetryAfterSeconds), int32(l.RetryAfter.Seconds()))
	details.Causes = details.Causes[:min(len(details.Causes), l.Causes)]
	for i := range details.Causes {
		cause := &details.Causes[i]
		cause.Type = metav1.CauseType(shorten(string(cause.Type), maxNameLength))
		cause.Field, cause.Message = shorten(cause.Field, maxNameLength), shorten(cause.Message, maxNameLength)
	}
}

// isPlainText reports whether a body is printable ASCII without escape sequences. This is true for
// the bodies of most errors.
func isPlainText(body []byte) bool {
	for i, b := range body {
		switch {
		case b == '\\' && i+1 < len(body) && body[i+1] != '"' && body[i+1] != '\\' && body[i+1] != '/':
			return false
		case b >= ' ' && b <= '~', b == '\n', b == '\t', b == '\r':
		default:
			return false
		}
	}
	return true
}
