package interpreter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
)

// maxBodyBytes is the maximum size of a request body.
const maxBodyBytes = 1 << 20

// contextKind is the kind of requests and responses.
var contextKind = configv1alpha1.GroupVersion.WithKind("ResourceInterpreterContext")

// Webhook serves a Handler over HTTP. Karmada calls it with HTTPS only, so that it must be served
// with TLS.
//
// It decodes the request, calls the handler, and completes its response. A request that is not a
// ResourceInterpreterContext in JSON (content type application/json, at most 1 MiB) gets the HTTP
// status 400 or 413. All other responses have the HTTP status 200, because the response itself says
// whether the operation succeeded.
type Webhook struct {
	handler Handler
}

var _ http.Handler = (*Webhook)(nil)

// NewWebhook returns a Webhook for a handler.
func NewWebhook(handler Handler) *Webhook { return &Webhook{handler: handler} }

// ServeHTTP implements http.Handler.
func (w *Webhook) ServeHTTP(writer http.ResponseWriter, httpRequest *http.Request) {
	request, code, err := readRequest(writer, httpRequest)
	if err != nil {
		write(writer, code, Errored(int32(code), err))
		return
	}
	ctx := httpRequest.Context()
	if timeout, found := sentTimeout(httpRequest); found {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	write(writer, http.StatusOK, w.handler.Handle(ctx, Request{*request}).complete(request))
}

// readRequest returns the request, or an error with its HTTP status.
func readRequest(writer http.ResponseWriter, httpRequest *http.Request) (*configv1alpha1.ResourceInterpreterRequest, int, error) {
	contentType := httpRequest.Header.Get("Content-Type")
	if kind, _, err := mime.ParseMediaType(contentType); err != nil || kind != "application/json" {
		return nil, http.StatusBadRequest, fmt.Errorf("contentType=%q, expected application/json", contentType)
	}
	body, err := io.ReadAll(http.MaxBytesReader(writer, httpRequest.Body, maxBodyBytes))
	var tooLong *http.MaxBytesError
	switch {
	case errors.As(err, &tooLong):
		return nil, http.StatusRequestEntityTooLarge, fmt.Errorf("the request has more than %d bytes", tooLong.Limit)
	case err != nil:
		return nil, http.StatusBadRequest, fmt.Errorf("reading the request: %w", err)
	}
	var received configv1alpha1.ResourceInterpreterContext
	if err := json.Unmarshal(body, &received); err != nil {
		return nil, http.StatusBadRequest, fmt.Errorf("decoding the request: %w", err)
	}
	if received.Kind != "" && received.GroupVersionKind() != contextKind {
		return nil, http.StatusBadRequest, fmt.Errorf("the request is a %s, expected %s", received.GroupVersionKind(), contextKind)
	}
	if received.Request == nil {
		return nil, http.StatusBadRequest, errors.New("the ResourceInterpreterContext has no request")
	}
	return received.Request, 0, nil
}

// sentTimeout returns the timeout of the call, if Karmada sends it.
func sentTimeout(httpRequest *http.Request) (timeout time.Duration, found bool) {
	timeout, err := time.ParseDuration(httpRequest.URL.Query().Get("timeout"))
	return timeout, err == nil && timeout > 0
}

// write ignores write errors, because they only mean that the caller disconnected.
func write(writer http.ResponseWriter, code int, response Response) {
	sent := configv1alpha1.ResourceInterpreterContext{Response: &response.ResourceInterpreterResponse}
	sent.SetGroupVersionKind(contextKind)
	body, err := json.Marshal(sent)
	if err != nil {
		failed := Errored(http.StatusInternalServerError, fmt.Errorf("encoding the response: %w", err))
		failed.UID = response.UID
		sent.Response = &failed.ResourceInterpreterResponse
		// A response of texts and numbers can always be encoded.
		body, _ = json.Marshal(sent)
	}
	writer.Header().Set("Content-Type", "application/json")
	writer.WriteHeader(code)
	_, _ = writer.Write(body)
}
