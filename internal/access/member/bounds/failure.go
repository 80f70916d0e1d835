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

// boundError replaces the body of an error by one that is bounded and printable:
// messages of members go into conditions, events, logs and onto terminals.
func (l Limits) boundError(response *http.Response) error {
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
	body = l.cleanError(body, response)
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	response.Header.Del("Content-Length")
	return nil
}

// cleanError returns the body as it is if it is short and printable, else the Status
// in it, shortened, or else its text, shortened.
func (l Limits) cleanError(body []byte, response *http.Response) []byte {
	if len(body) <= l.MessageBytes && plain(body) {
		return body
	}
	status := metav1.Status{}
	if int64(len(body)) > l.ErrorBytes || json.Unmarshal(body, &status) != nil || status.Kind != "Status" {
		return []byte(conditions.Shorten(conditions.Printable(string(body[:min(len(body), l.MessageBytes)])), l.MessageBytes))
	}
	l.cleanStatus(&status)
	cleaned, err := json.Marshal(status)
	if err != nil {
		return []byte(http.StatusText(response.StatusCode))
	}
	return cleaned
}

// maxName is how long a name of a Kubernetes object may be.
const maxName = 253

// reasonForm is that of a reason.
var reasonForm = regexp.MustCompile(`^[A-Za-z]{1,64}$`)

func (l Limits) cleanStatus(status *metav1.Status) {
	short := func(text string, bytes int) string { return conditions.Shorten(conditions.Printable(text), bytes) }
	status.Message = short(status.Message, l.MessageBytes)
	if !reasonForm.MatchString(string(status.Reason)) {
		status.Reason = ""
	}
	details := status.Details
	if details == nil {
		return
	}
	details.Name, details.Group, details.Kind = short(details.Name, maxName), short(details.Group, maxName), short(details.Kind, maxName)
	details.UID = ""
	details.RetryAfterSeconds = min(max(0, details.RetryAfterSeconds), int32(l.RetryAfter.Seconds()))
	details.Causes = details.Causes[:min(len(details.Causes), l.Causes)]
	for i := range details.Causes {
		cause := &details.Causes[i]
		cause.Type = metav1.CauseType(short(string(cause.Type), maxName))
		cause.Field, cause.Message = short(cause.Field, maxName), short(cause.Message, maxName)
	}
}

// plain reports whether a body is text in printable ASCII without escapes, which most
// errors are.
func plain(body []byte) bool {
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
