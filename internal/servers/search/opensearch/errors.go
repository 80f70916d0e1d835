package opensearch

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// Error types of OpenSearch.
const (
	typeIndexNotFound = "index_not_found_exception"
	typeIndexExists   = "resource_already_exists_exception"
	typeClusterBlock  = "cluster_block_exception"
)

// maxReasonBytes limits the length of an error's reason, which can contain a document.
const maxReasonBytes = 300

// errorCause is the cause of an error in a response of OpenSearch.
type errorCause struct {
	Type   string `json:"type"`
	Reason string `json:"reason"`
}

// UnmarshalJSON also accepts a string, which proxies and some errors contain.
func (e *errorCause) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &e.Reason)
	}
	type plain errorCause
	return json.Unmarshal(data, (*plain)(e))
}

// responseError is an error that OpenSearch returned for a request or for an item of a bulk request.
type responseError struct {
	status int
	cause  errorCause
	secret string
}

// newResponseError returns the error in a response.
func (c *connection) newResponseError(status int, content []byte) *responseError {
	var body struct {
		Error errorCause `json:"error"`
	}
	if json.Unmarshal(content, &body) != nil || body.Error == (errorCause{}) {
		body.Error = errorCause{Reason: string(content[:min(len(content), maxReasonBytes)])}
	}
	return &responseError{status: status, cause: body.Error, secret: c.backend.secretName()}
}

func (e *responseError) Error() string {
	reason := e.cause.Reason
	if len(reason) > maxReasonBytes {
		reason = reason[:maxReasonBytes] + "..."
	}
	text := fmt.Sprintf("status %d: %s %s", e.status, e.cause.Type, reason)
	if remedy := e.remedy(); remedy != "" {
		text += ": " + remedy
	}
	return text
}

// remedy returns what a user can do, or "" if that is unknown.
func (e *responseError) remedy() string {
	switch {
	case e.isBlocked():
		return "the index is read-only, usually because the disk is full: free disk space or remove the block of the index"
	case e.status == http.StatusUnauthorized:
		return fmt.Sprintf("check the keys username and password of Secret %s", e.secret)
	case e.status == http.StatusForbidden:
		return fmt.Sprintf("give the user of Secret %s the permissions to create, write and search the indexes kubernetes-*", e.secret)
	case e.status == http.StatusTooManyRequests:
		return "OpenSearch is overloaded or has too little memory"
	default:
		return ""
	}
}

func (e *responseError) isUnauthorized() bool { return e.status == http.StatusUnauthorized }

// isBlocked reports whether the index accepts no writes until a user or OpenSearch removes a block.
func (e *responseError) isBlocked() bool { return e.cause.Type == typeClusterBlock }

// isIndexMissing reports whether the index does not exist.
func (e *responseError) isIndexMissing() bool {
	return e.status == http.StatusNotFound && e.cause.Type == typeIndexNotFound
}

// isOverload reports whether the same request can succeed after a backoff.
func (e *responseError) isOverload() bool {
	switch e.status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return !e.isBlocked()
	default:
		return false
	}
}

// isPermanent reports whether the same request for one document can never succeed.
func (e *responseError) isPermanent() bool {
	return e.status == http.StatusBadRequest || e.status == http.StatusRequestEntityTooLarge
}
