package opensearch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/opensearch-project/opensearch-go/v4/opensearchtransport"
)

// maxResponseBytes is the maximum size of a response. The page of a scan is smaller than 1 MiB.
const maxResponseBytes = 64 << 20

// unformedUUID is the UUID that a node reports before it joins a cluster.
const unformedUUID = "_na_"

// connections holds a sink's connection, and replaces it when the Secret changes.
type connections struct {
	sink *Sink

	// mu is held while a connection is opened, so code that must not block must not use it.
	mu      sync.Mutex
	current *connection
	// uuid is the OpenSearch cluster's UUID at the last connection, or nil.
	uuid atomic.Pointer[string]
}

// connection is a client of an OpenSearch cluster that has responded.
type connection struct {
	client    *opensearchtransport.Client
	transport *http.Transport
	backend   Backend
	secret    map[string][]byte
	// checked is the time when the server responded and the Secret was read.
	checked time.Time
}

// get returns the connection, and opens it if needed. It checks the Secret and the server if the last check is
// older than CheckEvery.
func (c *connections) get(ctx context.Context) (*connection, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != nil && time.Since(c.current.checked) < c.sink.limits.CheckEvery {
		return c.current, nil
	}
	secret, err := c.sink.readSecret(ctx)
	if err != nil {
		return nil, err
	}
	if c.current != nil && maps.EqualFunc(c.current.secret, secret, bytes.Equal) {
		if err := c.current.verifyServer(ctx, c.sink); err != nil {
			return nil, err
		}
		return c.current, nil
	}
	replacement, err := c.sink.connect(ctx, secret)
	if err != nil {
		return nil, err
	}
	if c.current != nil {
		c.current.close()
	}
	c.current = replacement
	return replacement, nil
}

// recheck makes the next get check the Secret and the server.
func (c *connections) recheck() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != nil {
		c.current.checked = time.Time{}
	}
}

func (c *connections) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != nil {
		c.current.close()
		c.current = nil
	}
}

// setUUID records the UUID of the OpenSearch cluster that responded. If another cluster responded before, all
// documents are lost.
func (c *connections) setUUID(uuid string) {
	if last := c.uuid.Swap(&uuid); last != nil && *last != uuid {
		c.sink.forgetIndexes()
	}
}

// lastUUID returns the UUID of the OpenSearch cluster, or "" before the first connection.
func (c *connections) lastUUID() string {
	if uuid := c.uuid.Load(); uuid != nil {
		return *uuid
	}
	return ""
}

func (s *Sink) readSecret(ctx context.Context) (map[string][]byte, error) {
	if s.backend.SecretName == "" || s.options.Secret == nil {
		return nil, nil
	}
	data, err := s.options.Secret(ctx, s.backend.SecretNamespace, s.backend.SecretName)
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s with the credentials of %s: %w", s.backend.secretName(), s.Name(), err)
	}
	return data, nil
}

// connect opens a connection, and requires that the server responds.
func (s *Sink) connect(ctx context.Context, secret map[string][]byte) (*connection, error) {
	urls, err := s.backend.parseAddresses()
	if err != nil {
		return nil, err
	}
	credentials, err := s.backend.newCredentials(secret)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: s.limits.RequestTimeout / 3}).DialContext,
		TLSClientConfig:     credentials.tls,
		TLSHandshakeTimeout: s.limits.RequestTimeout / 3,
		IdleConnTimeout:     90 * time.Second,
	}
	client, err := opensearchtransport.New(opensearchtransport.Config{
		URLs: urls, Username: credentials.username, Password: credentials.password,
		Transport: transport, RequestTimeout: s.limits.RequestTimeout,
		// Each address is tried once. The feed retries with backoff.
		DisableRetry: len(urls) == 1, MaxRetries: len(urls) - 1, EnableRetryOnTimeout: true,
		// Requests show the health of a node. The user may lack permissions for other checks.
		HealthCheck: opensearchtransport.NoOpHealthCheck, MaxRetryClusterHealth: -1, NodeStatsInterval: -1,
	})
	if err != nil {
		return nil, fmt.Errorf("creating the client of %s: %w", s.Name(), err)
	}
	c := &connection{client: client, transport: transport, backend: s.backend, secret: secret}
	if err := c.verifyServer(ctx, s); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// verifyServer requires that the info endpoint responds.
func (c *connection) verifyServer(ctx context.Context, s *Sink) error {
	var info struct {
		ClusterUUID string `json:"cluster_uuid"`
		Version     struct {
			Number string `json:"number"`
		} `json:"version"`
	}
	if err := c.do(ctx, http.MethodGet, "/", nil, &info); err != nil {
		return fmt.Errorf("connecting to %s: %w", s.Name(), err)
	}
	if info.Version.Number == "" {
		return fmt.Errorf("connecting to %s: the server is not OpenSearch, because its response has no version: check spec.backendStore.openSearch.addresses of the registry", s.Name())
	}
	if info.ClusterUUID == unformedUUID {
		return fmt.Errorf("connecting to %s: its nodes have not formed a cluster yet", s.Name())
	}
	s.connections.setUUID(info.ClusterUUID)
	c.checked = time.Now()
	return nil
}

func (c *connection) close() {
	_ = c.client.Close()
	c.transport.CloseIdleConnections()
}

// connectError is an error that occurred before the request was sent. It does not depend on the request.
type connectError struct{ error }

func (e *connectError) Unwrap() error { return e.error }

// request sends a request through the sink's connection. It decodes the response into result, unless result is
// nil.
func (s *Sink) request(ctx context.Context, method, path string, body []byte, result any) error {
	c, err := s.connections.get(ctx)
	if err != nil {
		return &connectError{err}
	}
	err = c.do(ctx, method, path, body, result)
	var rejected *responseError
	if isUnreachable := err != nil && !errors.As(err, &rejected); isUnreachable || err != nil && rejected.isUnauthorized() {
		s.connections.recheck()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.Name(), err)
	}
	return nil
}

// contentTypes has the content type of ordinary requests and, for true, of bulk requests.
var contentTypes = map[bool]string{false: "application/json", true: "application/x-ndjson"}

func (c *connection) do(ctx context.Context, method, path string, body []byte, result any) error {
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	request, err := http.NewRequestWithContext(ctx, method, path, reader)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if body != nil {
		request.Header.Set("Content-Type", contentTypes[bytes.HasSuffix(body, []byte("\n"))])
	}
	response, err := c.client.Stream(request)
	if err != nil {
		if response != nil && response.Body != nil {
			response.Body.Close()
		}
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, maxResponseBytes))
	if err != nil {
		return fmt.Errorf("%s %s: reading the response: %w", method, path, err)
	}
	if response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: %w", method, path, c.newResponseError(response.StatusCode, content))
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(content, result); err != nil {
		return fmt.Errorf("%s %s: the response is no JSON as expected: %w", method, path, err)
	}
	return nil
}
