package opensearch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/servers/search/feed"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

// scrollTime is the time for which OpenSearch keeps a scan open between two pages.
const scrollTime = "5m"

// hit is one document of a scan.
type hit struct {
	ID      string `json:"_id"`
	Routing string `json:"_routing"`
	Source  struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			ResourceVersion string            `json:"resourceVersion"`
			Annotations     map[string]string `json:"annotations"`
		} `json:"metadata"`
	} `json:"_source"`
}

// page is one page of a scan.
type page struct {
	ScrollID string `json:"_scroll_id"`
	TimedOut bool   `json:"timed_out"`
	Shards   struct {
		Failed int `json:"failed"`
	} `json:"_shards"`
	Hits struct {
		Total struct {
			Value int `json:"value"`
		} `json:"total"`
		Hits []hit `json:"hits"`
	} `json:"hits"`
}

// Stored implements feed.Sink. If a document has not replaced the existing installation's document yet, its
// resourceVersion is empty, so that the feed stores it again. Stored omits other documents of existing
// installations, because their owner is unknown.
func (s *Sink) Stored(ctx context.Context, source objectcache.Source, yield func(id feed.ID, resourceVersion string) error) error {
	index, key := indexOf(source.Kind), routing(s.options.Owner, source)
	exists, err := s.prepareScan(ctx, index)
	if err != nil || !exists {
		return err
	}
	count, legacy := 0, sets.Set[string]{}
	s.updateIndex(index, func(state *indexState) { legacy = state.legacy[key].Clone() })
	query := map[string]any{"term": map[string]any{"_routing": key}}
	err = s.scan(ctx, index, query, []string{"metadata.resourceVersion"}, func(h *hit) error {
		cluster, uid, ok := parseDocumentID(h.ID)
		if !ok || cluster != source.Cluster {
			return nil
		}
		count++
		version := h.Source.Metadata.ResourceVersion
		if legacy.Has(uid) {
			version = ""
		}
		return yield(feed.ID{Cluster: cluster, UID: types.UID(uid)}, version)
	})
	if err != nil {
		return err
	}
	s.updateIndex(index, func(state *indexState) {
		if count == 0 {
			state.routings.Delete(key)
		} else {
			state.routings.Insert(key)
		}
	})
	return nil
}

// prepareScan makes all documents of an index visible, and searches once for an existing installation's
// documents. It reports whether the index exists.
func (s *Sink) prepareScan(ctx context.Context, index string) (exists bool, err error) {
	if exists, err := s.findIndex(ctx, index); err != nil || !exists {
		return false, err
	}
	if err := s.request(ctx, http.MethodPost, "/"+url.PathEscape(index)+"/_refresh", nil, nil); err != nil {
		var rejected *responseError
		if errors.As(err, &rejected) && rejected.isIndexMissing() {
			s.recordIndex(index, "")
			return false, nil
		}
		return false, fmt.Errorf("refreshing index %s: %w", index, err)
	}
	isScanned := false
	s.updateIndex(index, func(state *indexState) { isScanned = state.isScanned })
	if isScanned {
		return true, nil
	}
	_, err = s.scanOthers(ctx, index)
	return true, err
}

// Sources implements feed.Sink: it returns the sources whose documents this owner wrote.
func (s *Sink) Sources(ctx context.Context) ([]objectcache.Source, error) {
	indexes, err := s.listIndexes(ctx)
	if err != nil {
		return nil, err
	}
	found := sets.New[objectcache.Source]()
	for _, index := range indexes {
		if exists, err := s.prepareScan(ctx, index); err != nil || !exists {
			if err != nil {
				return nil, err
			}
			continue
		}
		routings, err := s.scanOthers(ctx, index)
		if err != nil {
			return nil, err
		}
		s.updateIndex(index, func(state *indexState) { routings = routings.Union(state.routings) })
		for text := range routings {
			if source, ok := parseRouting(s.options.Owner, text); ok && !s.isForeign(source.Cluster, s.connections.lastUUID()) {
				found.Insert(source)
			}
		}
	}
	return found.UnsortedList(), nil
}

// listIndexes returns the indexes with the mapping of this package. Other indexes can have the same prefix.
func (s *Sink) listIndexes(ctx context.Context) ([]string, error) {
	var mappings map[string]struct {
		Mappings struct {
			Properties map[string]struct {
				Enabled *bool `json:"enabled"`
			} `json:"properties"`
		} `json:"mappings"`
	}
	if err := s.request(ctx, http.MethodGet, "/"+indexPrefix+"*/_mapping", nil, &mappings); err != nil {
		return nil, fmt.Errorf("listing indexes: %w", err)
	}
	var indexes []string
	for index, one := range mappings {
		spec, status := one.Mappings.Properties["spec"].Enabled, one.Mappings.Properties["status"].Enabled
		if spec != nil && !*spec && status != nil && !*status {
			indexes = append(indexes, index)
		}
	}
	return indexes, nil
}

// scanOthers reads the documents that do not belong to an observed source. It records the documents of an existing
// installation, and returns the routing values of the others.
func (s *Sink) scanOthers(ctx context.Context, index string) (sets.Set[string], error) {
	var known []string
	s.updateIndex(index, func(state *indexState) { known = state.routings.UnsortedList() })
	query := map[string]any{"bool": map[string]any{"must_not": []any{
		map[string]any{"terms": map[string]any{"_routing": append([]string{}, known...)}},
	}}}
	fields := []string{"apiVersion", "kind", "metadata.annotations." + clusterv1alpha1.CachedFromClusterAnnotation}
	routings, legacy := sets.New[string](), map[string]sets.Set[string]{}
	err := s.scan(ctx, index, query, fields, func(h *hit) error {
		if h.Routing != "" {
			routings.Insert(h.Routing)
			return nil
		}
		cluster := h.Source.Metadata.Annotations[clusterv1alpha1.CachedFromClusterAnnotation]
		if _, _, isOurs := parseDocumentID(h.ID); isOurs || cluster == "" {
			return nil
		}
		kind := schema.FromAPIVersionAndKind(h.Source.APIVersion, h.Source.Kind)
		key := routing(s.options.Owner, objectcache.Source{Cluster: cluster, Kind: kind})
		if legacy[key] == nil {
			legacy[key] = sets.New[string]()
		}
		legacy[key].Insert(h.ID)
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.updateIndex(index, func(state *indexState) { state.legacy, state.isScanned = legacy, true })
	return routings, nil
}

// scan calls yield for each document that matches a query.
func (s *Sink) scan(ctx context.Context, index string, query map[string]any, fields []string, yield func(*hit) error) error {
	body, err := json.Marshal(map[string]any{
		"size": s.limits.PageSize, "sort": []string{"_doc"}, "track_total_hits": true, "query": query, "_source": fields,
	})
	if err != nil {
		return fmt.Errorf("encoding a query: %w", err)
	}
	var p page
	if err := s.request(ctx, http.MethodPost, "/"+url.PathEscape(index)+"/_search?scroll="+scrollTime, body, &p); err != nil {
		return fmt.Errorf("scanning index %s: %w", index, err)
	}
	defer func() { s.endScan(ctx, p.ScrollID) }()
	for read := 0; ; {
		if p.TimedOut || p.Shards.Failed > 0 {
			return fmt.Errorf("scanning index %s of %s: the response is incomplete, %d shards failed", index, s.Name(), p.Shards.Failed)
		}
		for i := range p.Hits.Hits {
			if err := yield(&p.Hits.Hits[i]); err != nil {
				return err
			}
		}
		read += len(p.Hits.Hits)
		switch {
		case read >= p.Hits.Total.Value:
			return nil
		case len(p.Hits.Hits) == 0:
			// A page can be lost with its connection.
			return fmt.Errorf("scanning index %s of %s: read %d of %d documents", index, s.Name(), read, p.Hits.Total.Value)
		}
		if p, err = s.nextPage(ctx, p.ScrollID); err != nil {
			return fmt.Errorf("scanning index %s: %w", index, err)
		}
	}
}

func (s *Sink) nextPage(ctx context.Context, scrollID string) (page, error) {
	next := page{}
	body, err := json.Marshal(map[string]string{"scroll": scrollTime, "scroll_id": scrollID})
	if err == nil {
		err = s.request(ctx, http.MethodPost, "/_search/scroll", body, &next)
	}
	if next.ScrollID == "" {
		next.ScrollID = scrollID
	}
	return next, err
}

// endScan makes OpenSearch free the memory of a scan. After an error, OpenSearch frees it when scrollTime ends.
func (s *Sink) endScan(ctx context.Context, scrollID string) {
	body, err := json.Marshal(map[string][]string{"scroll_id": {scrollID}})
	if err == nil && scrollID != "" && ctx.Err() == nil {
		_ = s.request(ctx, http.MethodDelete, "/_search/scroll", body, nil)
	}
}
