package opensearch_test

import (
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
)

// Content types of requests.
const (
	jsonType   = "application/json"
	ndjsonType = "application/x-ndjson"
)

// operation is a kind of request.
type operation struct {
	// contentType is the type of the body. It is empty if there must be no body.
	contentType string
	// parameters are the allowed query parameters.
	parameters []string
	serve      func(s *fakeServer, target string, query url.Values, body []byte) (int, any)
}

// operations are all kinds of requests by method and endpoint.
var operations = map[string]operation{
	"GET ":                  {serve: (*fakeServer).info},
	"PUT ":                  {contentType: jsonType, serve: (*fakeServer).createIndex},
	"GET _settings":         {parameters: []string{"flat_settings"}, serve: (*fakeServer).getSettings},
	"GET _mapping":          {serve: (*fakeServer).getMapping},
	"POST _refresh":         {serve: (*fakeServer).refresh},
	"POST _bulk":            {contentType: ndjsonType, parameters: []string{"filter_path"}, serve: (*fakeServer).bulk},
	"POST _search":          {contentType: jsonType, parameters: []string{"scroll"}, serve: (*fakeServer).search},
	"POST _search/scroll":   {contentType: jsonType, serve: (*fakeServer).scroll},
	"DELETE _search/scroll": {contentType: jsonType, serve: (*fakeServer).clearScroll},
}

func (s *fakeServer) route(r *http.Request, body []byte) (int, any) {
	target, endpoint := splitPath(r.URL.Path)
	kind := r.Method + " " + endpoint
	s.requests[kind]++
	o, known := operations[kind]
	switch {
	case !known || kind == "GET " && target != "":
		return s.violation("unknown request %s %s", r.Method, r.URL.Path)
	case o.contentType == "" && len(body) > 0:
		return s.violation("%s %s has a body", r.Method, r.URL.Path)
	case o.contentType != "" && len(body) == 0:
		return s.violation("%s %s has no body", r.Method, r.URL.Path)
	}
	if got, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); o.contentType != "" && (err != nil || got != o.contentType) {
		return s.violation("%s %s has the content type %q instead of %s", r.Method, r.URL.Path, r.Header.Get("Content-Type"), o.contentType)
	}
	for parameter := range r.URL.Query() {
		if !slices.Contains(o.parameters, parameter) {
			return s.violation("%s %s has the unknown parameter %s", r.Method, r.URL.Path, parameter)
		}
	}
	return o.serve(s, s.resolve(target), r.URL.Query(), body)
}

// splitPath returns the index and the endpoint of a path.
func splitPath(path string) (target, endpoint string) {
	path = strings.TrimPrefix(path, "/")
	if strings.HasPrefix(path, "_") {
		return "", path
	}
	target, endpoint, _ = strings.Cut(path, "/")
	return target, endpoint
}

func (s *fakeServer) info(string, url.Values, []byte) (int, any) {
	return http.StatusOK, map[string]any{
		"name": "node-1", "cluster_name": "test", "cluster_uuid": s.uuid, "tagline": "The OpenSearch Project: https://opensearch.org/",
		"version": map[string]any{"distribution": "opensearch", "number": "2.19.0"},
	}
}

// wantedDefinition is the only accepted definition of an index.
const wantedDefinition = `{"settings":{"index":{"number_of_shards":1,"number_of_replicas":0}},"mappings":{"properties":{
"apiVersion":{"type":"text"},"kind":{"type":"text"},"metadata":{"properties":{
"annotations":{"type":"object","enabled":false},"creationTimestamp":{"type":"text"},"deletionTimestamp":{"type":"text"},
"labels":{"type":"object","enabled":false},"ownerReferences":{"type":"text"},
"name":{"type":"text","fields":{"keyword":{"type":"keyword","ignore_above":256}}},
"namespace":{"type":"text","fields":{"keyword":{"type":"keyword","ignore_above":256}}},
"resourceVersion":{"type":"text","fields":{"keyword":{"type":"keyword","ignore_above":256}}}}},
"spec":{"type":"object","enabled":false},"status":{"type":"object","enabled":false}}}}`

func (s *fakeServer) createIndex(name string, _ url.Values, body []byte) (int, any) {
	if name == "" || name != strings.ToLower(name) || strings.ContainsAny(name, `\/*?"<>| ,#:`) || strings.ContainsAny(name[:1], "_-+") {
		return failureResponse(http.StatusBadRequest, "invalid_index_name_exception", "Invalid index name ["+name+"]")
	}
	if s.indexes[name] != nil {
		return failureResponse(http.StatusBadRequest, "resource_already_exists_exception", "index ["+name+"] already exists")
	}
	var got, want map[string]any
	if err := json.Unmarshal(body, &got); err != nil {
		return s.violation("the definition of index %s is no JSON: %v", name, err)
	}
	if err := json.Unmarshal([]byte(wantedDefinition), &want); err != nil {
		return s.violation("definition: %v", err)
	}
	if !reflect.DeepEqual(got, want) {
		return s.violation("index %s has the definition %s", name, body)
	}
	s.addIndex(name, got["settings"].(map[string]any), got["mappings"].(map[string]any))
	return http.StatusOK, map[string]any{"acknowledged": true, "shards_acknowledged": true, "index": name}
}

// matching returns the indexes of a name or pattern.
func (s *fakeServer) matching(pattern string) map[string]*index {
	found := map[string]*index{}
	prefix, isPattern := strings.CutSuffix(pattern, "*")
	for name, i := range s.indexes {
		if name == pattern || isPattern && strings.HasPrefix(name, prefix) {
			found[name] = i
		}
	}
	return found
}

func (s *fakeServer) getSettings(pattern string, query url.Values, _ []byte) (int, any) {
	if query.Get("flat_settings") != "true" {
		return s.violation("settings are read without flat_settings")
	}
	found := s.matching(pattern)
	if len(found) == 0 && !strings.Contains(pattern, "*") {
		return indexMissing(pattern)
	}
	answer := map[string]any{}
	for name, i := range found {
		answer[name] = map[string]any{"settings": map[string]any{
			"index.uuid": i.uuid, "index.provided_name": name, "index.number_of_shards": "1", "index.number_of_replicas": "0",
		}}
	}
	return http.StatusOK, answer
}

func (s *fakeServer) getMapping(pattern string, _ url.Values, _ []byte) (int, any) {
	answer := map[string]any{}
	for name, i := range s.matching(pattern) {
		answer[name] = map[string]any{"mappings": i.mappings}
	}
	return http.StatusOK, answer
}

func (s *fakeServer) refresh(name string, _ url.Values, _ []byte) (int, any) {
	i := s.indexes[name]
	if i == nil {
		return indexMissing(name)
	}
	for _, document := range i.documents {
		document.isVisible = true
	}
	clear(i.deleted)
	return http.StatusOK, map[string]any{"_shards": map[string]any{"total": 1, "successful": 1, "failed": 0}}
}
