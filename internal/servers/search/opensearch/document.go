package opensearch

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"karmada.io/karmada/internal/servers/search/feed"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

const (
	indexPrefix = "kubernetes-"
	// separator separates the parts of document IDs and routing values. Clusters, groups, versions and kinds
	// do not contain it.
	separator = "_"
)

// indexBody has the settings and the mapping of each index.
const indexBody = `{
  "settings": {"index": {"number_of_shards": 1, "number_of_replicas": 0}},
  "mappings": {"properties": {
    "apiVersion": {"type": "text"},
    "kind": {"type": "text"},
    "metadata": {"properties": {
      "annotations": {"type": "object", "enabled": false},
      "creationTimestamp": {"type": "text"},
      "deletionTimestamp": {"type": "text"},
      "labels": {"type": "object", "enabled": false},
      "name": {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}},
      "namespace": {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}},
      "ownerReferences": {"type": "text"},
      "resourceVersion": {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}}
    }},
    "spec": {"type": "object", "enabled": false},
    "status": {"type": "object", "enabled": false}
  }}
}`

// indexOf returns the index of a kind.
func indexOf(kind schema.GroupVersionKind) string { return indexPrefix + strings.ToLower(kind.Kind) }

// documentID returns the ID of an object's document.
func documentID(id feed.ID) string { return id.Cluster + separator + string(id.UID) }

// parseDocumentID returns the cluster and UID of a document, or false if another program wrote it.
func parseDocumentID(text string) (cluster, uid string, ok bool) {
	return strings.Cut(text, separator)
}

// routing returns the routing value for the documents of a source.
func routing(owner string, source objectcache.Source) string {
	apiVersion, kind := source.Kind.ToAPIVersionAndKind()
	return strings.Join([]string{owner, source.Cluster, apiVersion, kind}, separator)
}

// parseRouting returns the source of a routing value, or false if the value belongs to another owner.
func parseRouting(owner, text string) (objectcache.Source, bool) {
	parts := strings.Split(text, separator)
	if len(parts) != 4 || parts[0] != owner || parts[1] == "" || parts[3] == "" {
		return objectcache.Source{}, false
	}
	return objectcache.Source{Cluster: parts[1], Kind: schema.FromAPIVersionAndKind(parts[2], parts[3])}, true
}

// cachedObject is the part of an object that is stored.
type cachedObject struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name              string            `json:"name"`
		Namespace         string            `json:"namespace"`
		CreationTimestamp json.RawMessage   `json:"creationTimestamp,omitempty"`
		DeletionTimestamp json.RawMessage   `json:"deletionTimestamp,omitempty"`
		ResourceVersion   string            `json:"resourceVersion"`
		Labels            map[string]string `json:"labels,omitempty"`
		Annotations       map[string]string `json:"annotations,omitempty"`
	} `json:"metadata"`
	Spec   json.RawMessage `json:"spec"`
	Status json.RawMessage `json:"status"`
}

// document is the stored form of an object. Spec and status are strings with JSON, so that their fields need no
// mapping.
type document struct {
	cachedObject
	Spec   string `json:"spec"`
	Status string `json:"status"`
}

// encoder encodes documents. It reuses its buffer.
type encoder struct{ buffer []byte }

// encode returns the document for an object.
func (e *encoder) encode(object *objectcache.Object) ([]byte, error) {
	text, err := object.AppendJSON(e.buffer[:0])
	e.buffer = text
	if err != nil {
		return nil, err
	}
	var d document
	if err := json.Unmarshal(text, &d.cachedObject); err != nil {
		return nil, fmt.Errorf("decoding the %s %s/%s of cluster %q: %w",
			object.Source().Kind.Kind, object.Namespace(), object.Name(), object.Source().Cluster, err)
	}
	if d.APIVersion == "v1" && d.Kind == "Secret" {
		delete(d.Metadata.Annotations, corev1.LastAppliedConfigAnnotation)
	}
	d.Spec, d.Status = textOf(d.cachedObject.Spec), textOf(d.cachedObject.Status)
	return json.Marshal(&d)
}

// textOf returns JSON as a string, or "null" if there is none.
func textOf(value json.RawMessage) string {
	if len(value) == 0 {
		return "null"
	}
	return string(value)
}
