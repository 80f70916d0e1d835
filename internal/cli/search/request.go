package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
	"karmada.io/karmada/internal/cli/command"
)

// queryPath is the path to which queries are sent.
var queryPath = "/apis/" + searchv1alpha1.GroupVersion.String() + "/" + searchv1alpha1.SearchResource + "/query"

// addonName is the name of the addon that serves queries.
const addonName = "karmada-search"

// client returns a client of the control plane. For a watch, it has no timeout.
func (o *options) client(isWatch bool) (rest.Interface, error) {
	timeout := o.timeout.HTTPTimeout()
	if isWatch {
		timeout = 0 // it would end the watch
	}
	return o.NewFactory(&command.Target{}, timeout).RESTClient()
}

// readPage returns the page after the continue token, with at most limit objects.
func (o *options) readPage(ctx context.Context, client rest.Interface, limit int, token string) (*searchv1alpha1.SearchResultList, error) {
	request := client.Get().AbsPath(queryPath).SetHeader("Accept", "application/json").
		Param("q", o.query).Param("limit", strconv.Itoa(limit))
	if token != "" {
		request = request.Param("continue", token)
	}
	result := request.Do(ctx)
	// Error decodes the message of the server, Raw does not.
	if err := result.Error(); err != nil {
		return nil, o.explain(ctx, client, err)
	}
	content, err := result.Raw()
	if err != nil {
		return nil, fmt.Errorf("reading the response of %s: %w", addonName, err)
	}
	list := &searchv1alpha1.SearchResultList{}
	if err := json.Unmarshal(content, list); err != nil {
		return nil, fmt.Errorf("reading the response of %s: %w", addonName, err)
	}
	return list, nil
}

// watchEvent is one change of the matches.
type watchEvent struct {
	Type   watch.EventType `json:"type"`
	Object json.RawMessage `json:"object"`
}

// openWatch returns the stream of the matches and their changes.
func (o *options) openWatch(ctx context.Context, client rest.Interface) (io.ReadCloser, error) {
	stream, err := client.Get().AbsPath(queryPath).SetHeader("Accept", "application/json").
		Param("q", o.query).Param("watch", "true").Stream(ctx)
	if err != nil {
		return nil, o.explain(ctx, client, err)
	}
	return stream, nil
}

// column matches the position in the server's message about a syntax error.
var column = regexp.MustCompile(`\bcolumn (\d+)\b`)

// explain adds to err what the user can do.
func (o *options) explain(ctx context.Context, client rest.Interface, err error) error {
	var status apierrors.APIStatus
	switch {
	case apierrors.IsNotFound(err):
		return o.explainMissing(ctx, client)
	case apierrors.IsServiceUnavailable(err):
		return fmt.Errorf("%s does not respond: %w; \"kubectl get apiservice %s.%s\" shows the reason",
			addonName, err, searchv1alpha1.GroupVersion.Version, searchv1alpha1.GroupName)
	case apierrors.IsBadRequest(err) && errors.As(err, &status):
		if position := column.FindStringSubmatch(status.Status().Message); position != nil {
			number, _ := strconv.Atoi(position[1])
			return pointAt(o.query, min(number, len([]rune(o.query))+1), err)
		}
		return err
	default:
		return fmt.Errorf("searching: %w", err)
	}
}

// explainMissing returns an error that says why the control plane does not serve queries.
func (o *options) explainMissing(ctx context.Context, client rest.Interface) error {
	err := client.Get().AbsPath("/apis", searchv1alpha1.GroupVersion.String()).Do(ctx).Error()
	if err == nil {
		return fmt.Errorf("the %s of the control plane does not serve queries: update it, and start it without --disable-search", addonName)
	}
	return fmt.Errorf("the control plane has no %s: \"%s addons enable %s\" installs it", addonName, o.Program.Name, addonName)
}

// readEvent returns the next event of the stream, or the error that the server sent.
func readEvent(decoder *json.Decoder) (watch.EventType, *searchv1alpha1.SearchResult, error) {
	var event watchEvent
	if err := decoder.Decode(&event); err != nil {
		return "", nil, err
	}
	if event.Type == watch.Error {
		status := metav1.Status{}
		if err := json.Unmarshal(event.Object, &status); err != nil {
			return "", nil, fmt.Errorf("the watch ended: %s", event.Object)
		}
		return "", nil, fmt.Errorf("the watch ended: %w; start it again", apierrors.FromObject(&status))
	}
	result := &searchv1alpha1.SearchResult{}
	if err := json.Unmarshal(event.Object, result); err != nil {
		return "", nil, fmt.Errorf("reading a change from %s: %w", addonName, err)
	}
	return event.Type, result, nil
}
