package hook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"unicode"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/interpreter/webhook"
)

const (
	// maxResponseBytes limits the body of a response. An object has at most 1.5 MiB, and a patch is
	// encoded in base64.
	maxResponseBytes = 4 << 20
	// maxExplanationBytes limits how much is read of the body of a failed response.
	maxExplanationBytes = 16 << 10
	// maxExcerptBytes limits the part of such a body within an error.
	maxExcerptBytes = 300
)

var (
	errOwnDeadline = errors.New("the timeout of the webhook")
	errTooLong     = fmt.Errorf("the response has more than %d MiB: return a smaller patch or status", maxResponseBytes>>20)
)

// call sends a request to the webhook.
func (e *endpoint) call(ctx context.Context, body []byte) (*configv1alpha1.ResourceInterpreterContext, error) {
	limited, cancel := context.WithTimeoutCause(ctx, e.hook.Timeout, errOwnDeadline)
	defer cancel()
	to, err := e.location.find(limited)
	if err != nil {
		return nil, err
	}
	transport, err := e.caller.transports.get(e.hook.Client.CABundle, to.serverName)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.location.describe(to), err)
	}
	var isConnected atomic.Bool
	traced := httptrace.WithClientTrace(limited, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { isConnected.Store(true) }})
	response, err := e.send(traced, transport, to, body)
	if err == nil {
		return response, nil
	}
	if !isConnected.Load() {
		e.location.forget()
	}
	if limited.Err() != nil {
		err = e.deadlineError(ctx, limited, isConnected.Load())
	}
	return nil, fmt.Errorf("%s: %w", e.location.describe(to), err)
}

func (e *endpoint) send(ctx context.Context, transport http.RoundTripper, to *target,
	body []byte) (*configv1alpha1.ResourceInterpreterContext, error) {
	request, err := e.newRequest(ctx, to, body)
	if err != nil {
		return nil, err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, describe(err, len(e.hook.Client.CABundle) > 0)
	}
	defer func() { _ = response.Body.Close() }() // the response is read or given up
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return nil, describeStatus(response)
	}
	content, err := io.ReadAll(io.LimitReader(response.Body, maxResponseBytes+1))
	switch {
	case err != nil:
		return nil, describe(err, true)
	case len(content) > maxResponseBytes:
		return nil, errTooLong
	}
	return webhook.Decode(content)
}

func (e *endpoint) newRequest(ctx context.Context, to *target, body []byte) (*http.Request, error) {
	address := *to.url
	if e.hook.SendsTimeout {
		query := address.Query()
		query.Set("timeout", e.hook.Timeout.String())
		address.RawQuery = query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("creating the request: %w", err)
	}
	if to.serverName != "" {
		request.Host = to.serverName
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "karmada")
	// A key without a value is not sent. It tells the transport that it may repeat the request if the
	// server closes an unused connection at the same time.
	request.Header["Idempotency-Key"] = nil
	return request, nil
}

// deadlineError is a call that did not end in time.
type deadlineError struct{ text string }

func (d *deadlineError) Error() string { return d.text }

func isDeadline(err error) bool {
	var deadline *deadlineError
	return errors.As(err, &deadline)
}

// deadlineError returns the error of a call whose context ended. If the caller canceled the call,
// the webhook did not exceed a deadline.
func (e *endpoint) deadlineError(caller, limited context.Context, isConnected bool) error {
	missing, remedy := "connection", "check that the address is right, and that no firewall drops packets to it"
	if isConnected {
		missing, remedy = "response", "make the webhook faster, or raise its timeoutSeconds (up to 30)"
	}
	const pause = ". After this, calls of the webhook are paused for up to 1 minute"
	switch {
	case errors.Is(context.Cause(limited), errOwnDeadline):
		return &deadlineError{fmt.Sprintf("no %s within %s: %s%s", missing, e.hook.Timeout, remedy, pause)}
	case errors.Is(caller.Err(), context.DeadlineExceeded):
		return &deadlineError{fmt.Sprintf("no %s before the deadline of the caller: %s%s", missing, remedy, pause)}
	}
	return context.Cause(limited)
}

// describeStatus returns the error for a response whose HTTP status is no success.
func describeStatus(response *http.Response) error {
	status := fmt.Sprintf("%d %s", response.StatusCode, http.StatusText(response.StatusCode))
	if response.StatusCode >= 300 && response.StatusCode < 400 {
		return fmt.Errorf("the server responded with %s to %q, and redirects are not followed: set the final address in clientConfig",
			status, describeLocation(response.Header.Get("Location")))
	}
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if kind == "text/html" {
		return fmt.Errorf("the server responded with %s with an HTML page: check that the address is that of the webhook, and that the proxy in front of it reaches it", status)
	}
	// The text explains the status. If it cannot be read, the status remains.
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxExplanationBytes))
	explanation := string(text)
	if decoded, err := webhook.Decode(text); err == nil && decoded.Response != nil && decoded.Response.Status != nil {
		explanation = decoded.Response.Status.Message
	}
	if explanation = excerpt(explanation); explanation != "" {
		status += ", " + explanation
	}
	return fmt.Errorf("the server responded with %s: check the address and the logs of the webhook", status)
}

// describeLocation returns the address of a redirect without its query, which often differs from call to
// call.
func describeLocation(location string) string {
	address, _, _ := strings.Cut(location, "?")
	return excerpt(address)
}

// excerpt returns the begin of a text of a server in one line.
func excerpt(text string) string {
	line := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(text, " "))
	return conditions.Truncate(strings.Join(strings.Fields(line), " "), maxExcerptBytes)
}
