package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"k8s.io/client-go/rest"
)

// searchClient sends requests to karmada-search with the client certificate of the control plane.
type searchClient struct {
	server string
	tls    *tls.Config
	http   *http.Client
}

func newSearchClient(o options, server string) (*searchClient, error) {
	config, err := clientConfig(o.karmadaKubeconfig, o.karmadaContext)
	if err != nil {
		return nil, err
	}
	// The program uses a certificate that it signed itself.
	config.Insecure, config.CAData, config.CAFile = true, nil, ""
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("reading the client certificate in %s: %w", o.karmadaKubeconfig, err)
	}
	return &searchClient{server: server, tls: tlsConfig, http: newConnection(tlsConfig)}, nil
}

// newConnection returns a client that shares no connection with other clients.
func newConnection(config *tls.Config) *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config.Clone(), ForceAttemptHTTP2: true}}
}

// open sends a request, and returns the body of a successful response.
func (c *searchClient) open(ctx context.Context, client *http.Client, method, path string, query url.Values,
	body []byte) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.server+path+"?"+query.Encode(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	request.Header.Set("Accept", "application/json")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		defer response.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10)) // the status says enough
		return nil, fmt.Errorf("%s %s: %w: %s: %s", method, path, errUnexpectedResponse, response.Status, text)
	}
	if warnings := response.Header.Values("Warning"); len(warnings) > 0 {
		defer response.Body.Close()
		return nil, fmt.Errorf("%s %s: %w: %s", method, path, errUnexpectedResponse, warnings[0])
	}
	return response.Body, nil
}

func (c *searchClient) get(ctx context.Context, path string, query url.Values) ([]byte, error) {
	return c.read(ctx, http.MethodGet, path, query, nil)
}

func (c *searchClient) read(ctx context.Context, method, path string, query url.Values, body []byte) ([]byte, error) {
	response, err := c.open(ctx, c.http, method, path, query, body)
	if err != nil {
		return nil, err
	}
	defer response.Close()
	text, err := io.ReadAll(response)
	if err != nil {
		return nil, fmt.Errorf("reading the response of %s: %w", path, err)
	}
	return text, nil
}

func (c *searchClient) create(ctx context.Context, path string, object any) error {
	text, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("encoding the object for %s: %w", path, err)
	}
	_, err = c.read(ctx, http.MethodPost, path, nil, text)
	return err
}

func (c *searchClient) delete(ctx context.Context, path string) error {
	_, err := c.read(ctx, http.MethodDelete, path, nil, nil)
	return err
}

func (c *searchClient) metrics(ctx context.Context, names ...string) (map[string]float64, error) {
	values, err := readMetrics(ctx, c.http, c.server+"/metrics", names...)
	if err != nil {
		return nil, fmt.Errorf("reading the metrics of karmada-search: %w", err)
	}
	return values, nil
}

// proxyPath is the path of the global proxy.
const proxyPath = searchAPI + "/proxying/karmada/proxy"

// listedPods is the result of a list in one or more pages.
type listedPods struct {
	count   int
	version string
	// took is the time of all requests. It excludes the time in which this program decodes the pages.
	took time.Duration
}

// listPods lists the Pods of a namespace of all members.
func (c *searchClient) listPods(ctx context.Context, namespace string, query url.Values) (listedPods, error) {
	listed, query := listedPods{}, cloneValues(query)
	for {
		start := time.Now()
		text, err := c.get(ctx, proxyPath+"/api/v1/namespaces/"+namespace+"/pods", query)
		listed.took += time.Since(start)
		if err != nil {
			return listed, err
		}
		page := listPage{}
		if err := json.Unmarshal(text, &page); err != nil {
			return listed, fmt.Errorf("decoding a page: %w", err)
		}
		listed.count += len(page.Items)
		listed.version = page.Metadata.ResourceVersion
		if page.Metadata.Continue == "" {
			return listed, nil
		}
		query.Set("continue", page.Metadata.Continue)
	}
}

// listPage is a page of a list, or of the results of a query.
type listPage struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
		Continue        string `json:"continue"`
	} `json:"metadata"`
	Items []struct{} `json:"items"`
}

func cloneValues(values url.Values) url.Values {
	clone := url.Values{}
	for name, value := range values {
		clone[name] = value
	}
	return clone
}

// search returns the number of objects on the first page of a query, and the time until the response was
// complete.
func (c *searchClient) search(ctx context.Context, query string, limit int) (found int, took time.Duration, err error) {
	start := time.Now()
	text, err := c.get(ctx, searchAPI+"/search/query", url.Values{"q": {query}, "limit": {strconv.Itoa(limit)}})
	took = time.Since(start)
	if err != nil {
		return 0, took, err
	}
	page := listPage{}
	if err := json.Unmarshal(text, &page); err != nil {
		return 0, took, fmt.Errorf("decoding the results: %w", err)
	}
	return len(page.Items), took, nil
}
