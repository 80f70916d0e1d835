package opensearch_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// maxIDBytes is the maximum length of the ID of a document.
const maxIDBytes = 512

type action struct {
	ID      string `json:"_id"`
	Routing string `json:"routing"`
}

func (s *fakeServer) bulk(name string, query url.Values, body []byte) (int, any) {
	switch {
	case s.faults.Overloaded > 0:
		s.faults.Overloaded--
		return failureResponse(http.StatusTooManyRequests, "opensearch_rejected_execution_exception", "rejected execution of coordinating operation")
	case s.faults.MaxBody > 0 && len(body) > s.faults.MaxBody:
		return http.StatusRequestEntityTooLarge, "Request Entity Too Large"
	case s.faults.Poison != "" && bytes.Contains(body, []byte(s.faults.Poison)):
		return failureResponse(http.StatusBadRequest, "illegal_argument_exception", "Malformed action/metadata line")
	case !bytes.HasSuffix(body, []byte("\n")):
		return failureResponse(http.StatusBadRequest, "illegal_argument_exception", "The bulk request must be terminated by a newline [\\n]")
	case query.Get("filter_path") != "errors,items.*._id,items.*.status,items.*.error":
		return s.violation("bulk request with filter_path %q", query.Get("filter_path"))
	}
	var items []any
	hasErrors := false
	lines := bytes.Split(bytes.TrimSuffix(body, []byte("\n")), []byte("\n"))
	for len(lines) > 0 {
		verb, target, err := parseAction(lines[0])
		if err != nil {
			return s.violation("bulk line %q: %v", lines[0], err)
		}
		lines = lines[1:]
		var source []byte
		if verb == "index" {
			if len(lines) == 0 {
				return s.violation("the bulk request ends after the action of document %s", target.ID)
			}
			source, lines = lines[0], lines[1:]
			if err := checkDocument(name, target, source); err != nil {
				return s.violation("document %s: %v", target.ID, err)
			}
		}
		result, isError := s.write(name, verb, target, source)
		hasErrors = hasErrors || isError
		items = append(items, map[string]any{verb: result})
	}
	return http.StatusOK, map[string]any{"errors": hasErrors, "items": items}
}

func parseAction(line []byte) (verb string, target action, err error) {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	var actions map[string]action
	if err := decoder.Decode(&actions); err != nil {
		return "", target, err
	}
	if len(actions) != 1 {
		return "", target, fmt.Errorf("%d actions", len(actions))
	}
	for verb, target = range actions {
	}
	switch {
	case verb != "index" && verb != "delete":
		return "", target, fmt.Errorf("unexpected action %s", verb)
	case target.ID == "":
		return "", target, fmt.Errorf("no ID")
	}
	return verb, target, nil
}

// write stores or deletes a document, and returns the result of the item.
func (s *fakeServer) write(name, verb string, target action, source []byte) (result map[string]any, isError bool) {
	itemError := func(status int, kind, reason string) (map[string]any, bool) {
		return map[string]any{"_id": target.ID, "status": status, "error": map[string]any{"type": kind, "reason": reason}}, true
	}
	i := s.indexes[name]
	if i == nil {
		// As with action.auto_create_index=false.
		return itemError(http.StatusNotFound, "index_not_found_exception", "no such index ["+name+"]")
	}
	if s.faults.Item != nil {
		if e := s.faults.Item(target.ID); e != nil {
			return itemError(e.Status, e.Type, e.Reason)
		}
	}
	if len(target.ID) > maxIDBytes {
		return itemError(http.StatusBadRequest, "illegal_argument_exception", "id is too long")
	}
	old := i.documents[target.ID]
	if verb == "delete" {
		if old == nil {
			return map[string]any{"_id": target.ID, "status": http.StatusNotFound}, false
		}
		if old.isVisible {
			i.deleted[target.ID] = old
		}
		delete(i.documents, target.ID)
		s.written++
		return map[string]any{"_id": target.ID, "status": http.StatusOK}, false
	}
	if s.faults.Full {
		return itemError(http.StatusForbidden, "cluster_block_exception",
			"index ["+name+"] blocked by: [FORBIDDEN/12/index read-only / allow delete (api)];")
	}
	if old != nil && old.isVisible {
		i.deleted[target.ID] = old
	}
	i.documents[target.ID] = &fakeDocument{Routing: target.Routing, Source: slices.Clone(source)}
	s.written++
	return map[string]any{"_id": target.ID, "status": http.StatusCreated}, false
}

// searchDocument is the only accepted form of a document.
type searchDocument struct {
	APIVersion *string `json:"apiVersion"`
	Kind       *string `json:"kind"`
	Metadata   *struct {
		Name              *string           `json:"name"`
		Namespace         *string           `json:"namespace"`
		CreationTimestamp *time.Time        `json:"creationTimestamp"`
		DeletionTimestamp *time.Time        `json:"deletionTimestamp"`
		ResourceVersion   *string           `json:"resourceVersion"`
		Labels            map[string]string `json:"labels"`
		Annotations       map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec   *string `json:"spec"`
	Status *string `json:"status"`
}

// checkDocument returns an error if a document does not have the form of existing installations.
func checkDocument(index string, target action, source []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(source))
	decoder.DisallowUnknownFields()
	var d searchDocument
	if err := decoder.Decode(&d); err != nil {
		return err
	}
	switch {
	case d.APIVersion == nil || d.Kind == nil || d.Metadata == nil || d.Spec == nil || d.Status == nil:
		return fmt.Errorf("a field is missing in %s", source)
	case d.Metadata.Name == nil || d.Metadata.Namespace == nil || d.Metadata.ResourceVersion == nil:
		return fmt.Errorf("a field of metadata is missing in %s", source)
	case !json.Valid([]byte(*d.Spec)) || !json.Valid([]byte(*d.Status)):
		return fmt.Errorf("spec or status is no JSON text in %s", source)
	case !strings.HasPrefix(index, "kubernetes-"+strings.ToLower(*d.Kind)):
		return fmt.Errorf("kind %s is in index %s", *d.Kind, index)
	}
	cluster := d.Metadata.Annotations[clusterv1alpha1.CachedFromClusterAnnotation]
	if cluster == "" || !strings.HasPrefix(target.ID, cluster+"_") {
		return fmt.Errorf("the ID does not begin with the cluster %q of the annotation", cluster)
	}
	if want := "_" + cluster + "_" + *d.APIVersion + "_" + *d.Kind; !strings.HasSuffix(target.Routing, want) {
		return fmt.Errorf("the routing value %q does not end with %q", target.Routing, want)
	}
	return nil
}
