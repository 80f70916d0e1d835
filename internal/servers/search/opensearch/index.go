package opensearch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
)

// indexCheckEvery is the time for which an existing index is not looked up again.
const indexCheckEvery = 10 * time.Second

// ensureIndex creates an index unless it exists.
func (s *Sink) ensureIndex(ctx context.Context, index string) error {
	exists, err := s.findIndex(ctx, index)
	if err != nil || exists {
		return err
	}
	err = s.request(ctx, http.MethodPut, "/"+url.PathEscape(index), []byte(indexBody), nil)
	var rejected *responseError
	isConflict := errors.As(err, &rejected) && rejected.cause.Type == typeIndexExists
	if err != nil && !isConflict {
		return fmt.Errorf("creating index %s: %w", index, err)
	}
	exists, err = s.findIndex(ctx, index)
	if err == nil && !exists {
		return fmt.Errorf("index %s of %s does not exist after its creation", index, s.Name())
	}
	return err
}

// findIndex reports whether an index exists.
func (s *Sink) findIndex(ctx context.Context, index string) (bool, error) {
	s.mu.Lock()
	state := s.indexes[index]
	isKnown := state != nil && time.Since(state.checked) < indexCheckEvery
	s.mu.Unlock()
	if isKnown {
		return true, nil
	}
	uuid, err := s.indexUUID(ctx, index)
	if err != nil {
		return false, err
	}
	s.recordIndex(index, uuid)
	return uuid != "", nil
}

// indexUUID returns the UUID of an index, or of the index behind an alias, or "" if there is none.
func (s *Sink) indexUUID(ctx context.Context, name string) (string, error) {
	var settings map[string]struct {
		Settings map[string]any `json:"settings"`
	}
	err := s.request(ctx, http.MethodGet, "/"+url.PathEscape(name)+"/_settings?flat_settings=true", nil, &settings)
	var rejected *responseError
	if errors.As(err, &rejected) && rejected.isIndexMissing() {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("looking up index %s: %w", name, err)
	}
	for index, one := range settings {
		if index == name || len(settings) == 1 {
			uuid, _ := one.Settings["index.uuid"].(string)
			return uuid, nil
		}
	}
	return "", nil
}

// recordIndex records the UUID of an index, which is "" if the index does not exist. If the index was replaced
// or deleted, it notifies the feed, because all documents are lost.
func (s *Sink) recordIndex(index, uuid string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.indexes[index]
	isLost := state != nil && state.uuid != uuid
	if isLost {
		delete(s.indexes, index)
		s.notify()
	}
	switch {
	case uuid == "":
	case state == nil || isLost:
		s.indexes[index] = &indexState{uuid: uuid, checked: time.Now(), routings: sets.New[string]()}
	default:
		state.checked = time.Now()
	}
}

// verifyIndexes detects indexes that were replaced or deleted.
func (s *Sink) verifyIndexes(ctx context.Context) error {
	s.mu.Lock()
	known := make([]string, 0, len(s.indexes))
	for index := range s.indexes {
		known = append(known, index)
	}
	s.mu.Unlock()
	if len(known) == 0 {
		_, err := s.connections.get(ctx)
		return err
	}
	for _, index := range known {
		// A list of all indexes would lack the names of aliases.
		uuid, err := s.indexUUID(ctx, index)
		if err != nil {
			return err
		}
		s.recordIndex(index, uuid)
	}
	return nil
}

// forgetIndexes forgets all indexes, because another OpenSearch cluster responds.
func (s *Sink) forgetIndexes() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.indexes = map[string]*indexState{}
	s.notify()
}

// expireIndex makes the next use of an index look it up again.
func (s *Sink) expireIndex(index string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state := s.indexes[index]; state != nil {
		state.checked = time.Time{}
	}
}

// updateIndex calls update with the state of an index, if it has been observed.
func (s *Sink) updateIndex(index string, update func(*indexState)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state := s.indexes[index]; state != nil {
		update(state)
	}
}
