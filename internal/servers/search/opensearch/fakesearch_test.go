package opensearch_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sort"
	"strings"
)

// scroll is an open scan. Its documents are those at its begin.
type scroll struct {
	hits []any
	size int
	// total is the number of hits at the begin.
	total int
}

type searchRequest struct {
	Size           int             `json:"size"`
	Sort           []string        `json:"sort"`
	TrackTotalHits bool            `json:"track_total_hits"`
	Query          json.RawMessage `json:"query"`
	Source         []string        `json:"_source"`
}

func (s *fakeServer) search(name string, query url.Values, body []byte) (int, any) {
	var request searchRequest
	if err := decodeStrict(body, &request); err != nil {
		return s.violation("search %s: %v", body, err)
	}
	matches, err := parseQuery(request.Query)
	switch {
	case err != nil:
		return s.violation("query %s: %v", request.Query, err)
	case query.Get("scroll") == "" || request.Size < 1 || request.Size > 10000 || !slices.Equal(request.Sort, []string{"_doc"}) || !request.TrackTotalHits:
		return s.violation("search %s is no scan", body)
	}
	i := s.indexes[name]
	if i == nil {
		return indexMissing(name)
	}
	open := &scroll{size: request.Size}
	for _, id := range sortedIDs(i) {
		document := i.deleted[id]
		if document == nil {
			document = i.documents[id]
		}
		if !document.isVisible || !matches(document.Routing) {
			continue
		}
		hit := map[string]any{"_index": name, "_id": id, "_source": filterSource(document.Source, request.Source)}
		if document.Routing != "" {
			hit["_routing"] = document.Routing
		}
		open.hits = append(open.hits, hit)
	}
	open.total = len(open.hits)
	s.nextUUID++
	id := fmt.Sprintf("scroll-%d", s.nextUUID)
	s.scrolls[id] = open
	return http.StatusOK, s.nextPage(id)
}

func sortedIDs(i *index) []string {
	var ids []string
	for id := range i.documents {
		ids = append(ids, id)
	}
	for id := range i.deleted {
		if i.documents[id] == nil {
			ids = append(ids, id)
		}
	}
	sort.Strings(ids)
	return ids
}

func (s *fakeServer) nextPage(id string) any {
	open := s.scrolls[id]
	count := min(open.size, len(open.hits))
	hits := append([]any{}, open.hits[:count]...)
	open.hits = open.hits[count:]
	if s.faults.LoseHits > 0 {
		s.faults.LoseHits--
		hits = []any{}
	}
	return map[string]any{
		"_scroll_id": id, "timed_out": false, "_shards": map[string]any{"total": 1, "successful": 1, "failed": 0},
		"hits": map[string]any{"total": map[string]any{"value": open.total, "relation": "eq"}, "hits": hits},
	}
}

func (s *fakeServer) scroll(_ string, _ url.Values, body []byte) (int, any) {
	var request struct {
		Scroll string `json:"scroll"`
		ID     string `json:"scroll_id"`
	}
	if err := decodeStrict(body, &request); err != nil || request.Scroll == "" {
		return s.violation("scroll %s: %v", body, err)
	}
	if s.scrolls[request.ID] == nil {
		return failureResponse(http.StatusNotFound, "search_context_missing_exception", "No search context found for id ["+request.ID+"]")
	}
	return http.StatusOK, s.nextPage(request.ID)
}

func (s *fakeServer) clearScroll(_ string, _ url.Values, body []byte) (int, any) {
	var request struct {
		IDs []string `json:"scroll_id"`
	}
	if err := decodeStrict(body, &request); err != nil || len(request.IDs) == 0 {
		return s.violation("clear scroll %s: %v", body, err)
	}
	for _, id := range request.IDs {
		delete(s.scrolls, id)
	}
	return http.StatusOK, map[string]any{"succeeded": true, "num_freed": len(request.IDs)}
}

func decodeStrict(body []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

// parseQuery returns the condition on routing values of a query.
func parseQuery(query json.RawMessage) (func(routing string) bool, error) {
	var q struct {
		Term map[string]string `json:"term"`
		Bool *struct {
			MustNot []struct {
				Terms map[string][]string `json:"terms"`
			} `json:"must_not"`
		} `json:"bool"`
	}
	if err := decodeStrict(query, &q); err != nil {
		return nil, err
	}
	switch wanted, isTerm := q.Term["_routing"]; {
	case isTerm && len(q.Term) == 1 && q.Bool == nil:
		return func(routing string) bool { return routing == wanted }, nil
	case q.Term == nil && q.Bool != nil && len(q.Bool.MustNot) == 1 && q.Bool.MustNot[0].Terms["_routing"] != nil:
		excluded := q.Bool.MustNot[0].Terms["_routing"]
		return func(routing string) bool { return !slices.Contains(excluded, routing) }, nil
	default:
		return nil, fmt.Errorf("unknown form")
	}
}

// filterSource returns the listed fields of a document. Names of fields can contain dots.
func filterSource(source json.RawMessage, fields []string) map[string]any {
	var decoded map[string]any
	if json.Unmarshal(source, &decoded) != nil {
		return nil
	}
	return filterObject(decoded, "", fields)
}

func filterObject(object map[string]any, prefix string, fields []string) map[string]any {
	filtered := map[string]any{}
	for key, value := range object {
		path := prefix + key
		if slices.Contains(fields, path) {
			filtered[key] = value
			continue
		}
		child, isObject := value.(map[string]any)
		if !isObject || !slices.ContainsFunc(fields, func(field string) bool { return strings.HasPrefix(field, path+".") }) {
			continue
		}
		filtered[key] = filterObject(child, path+".", fields)
	}
	return filtered
}
