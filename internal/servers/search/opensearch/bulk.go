package opensearch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"karmada.io/karmada/internal/servers/search/feed"
)

// bulkAttempts is the number of times that an item is sent while OpenSearch is overloaded.
const bulkAttempts = 5

// bulkItem is one operation of a bulk request.
type bulkItem struct {
	change feed.Change
	id     string
	// body has the lines of the operation.
	body []byte
	// isRejected is true if OpenSearch, or the encoding, rejected the item.
	isRejected bool
}

// reject records that an item can never be stored.
func (s *Sink) reject(item *bulkItem, reason error) {
	item.isRejected = true
	s.rejections.add(item, reason)
}

// maxIDBytes is the maximum length of a document's ID in OpenSearch.
const maxIDBytes = 512

// bulkAction is the line of a bulk request that identifies a document.
type bulkAction struct {
	Index  *bulkTarget `json:"index,omitempty"`
	Delete *bulkTarget `json:"delete,omitempty"`
}

type bulkTarget struct {
	ID      string `json:"_id"`
	Routing string `json:"routing,omitempty"`
}

// bulkResult is the result of one item.
type bulkResult struct {
	ID     string      `json:"_id"`
	Status int         `json:"status"`
	Error  *errorCause `json:"error"`
}

// Apply implements feed.Sink. Rejections counts the documents that OpenSearch rejects for their content.
func (s *Sink) Apply(ctx context.Context, changes []feed.Change) error {
	byIndex := map[string][]feed.Change{}
	for _, change := range changes {
		index := indexOf(change.Source.Kind)
		byIndex[index] = append(byIndex[index], change)
	}
	for index, changes := range byIndex {
		if err := s.applyIndex(ctx, index, changes); err != nil {
			return fmt.Errorf("writing to index %s: %w", index, err)
		}
	}
	return nil
}

func (s *Sink) applyIndex(ctx context.Context, index string, changes []feed.Change) error {
	exists, err := s.prepareIndex(ctx, index, changes)
	if err != nil || !exists {
		return err
	}
	var encoder encoder
	for len(changes) > 0 {
		items, count := s.encodeItems(&encoder, changes)
		if err := s.sendItems(ctx, index, items); err != nil {
			return err
		}
		if err := s.deleteLegacy(ctx, index, items); err != nil {
			return err
		}
		changes = changes[count:]
	}
	return nil
}

// prepareIndex creates the index if the changes store documents, and reports whether it exists.
func (s *Sink) prepareIndex(ctx context.Context, index string, changes []feed.Change) (exists bool, err error) {
	hasDocuments := false
	for _, change := range changes {
		hasDocuments = hasDocuments || change.Object != nil
	}
	if !hasDocuments {
		return s.findIndex(ctx, index)
	}
	if err := s.ensureIndex(ctx, index); err != nil {
		return false, err
	}
	s.updateIndex(index, func(state *indexState) {
		for _, change := range changes {
			if change.Object != nil {
				state.routings.Insert(routing(s.options.Owner, change.Source))
			}
		}
	})
	return true, nil
}

// encodeItems returns the items of the first changes, up to BulkBytes, and the number of these changes. It
// rejects an object that cannot be encoded, because this object must not block other objects.
func (s *Sink) encodeItems(encoder *encoder, changes []feed.Change) (items []*bulkItem, count int) {
	size := 0
	for count < len(changes) && (count == 0 || size < s.limits.BulkBytes) {
		item, err := s.newItem(encoder, changes[count])
		if err != nil {
			s.reject(item, err)
			count++
			continue
		}
		if len(items) > 0 && size+len(item.body) > s.limits.BulkBytes {
			break
		}
		size += len(item.body)
		items = append(items, item)
		count++
	}
	return items, count
}

// newItem returns the item for a change. If it returns an error, the item has no body.
func (s *Sink) newItem(encoder *encoder, change feed.Change) (*bulkItem, error) {
	target := &bulkTarget{ID: documentID(change.ID), Routing: routing(s.options.Owner, change.Source)}
	item := &bulkItem{change: change, id: target.ID}
	var err error
	if change.Object == nil {
		item.body, err = encodeLines(bulkAction{Delete: target}, nil)
		return item, err
	}
	if len(item.id) > maxIDBytes {
		return item, fmt.Errorf("the ID of the document, which consists of cluster and UID, has %d bytes, but OpenSearch accepts at most %d",
			len(item.id), maxIDBytes)
	}
	document, err := encoder.encode(change.Object)
	if err != nil {
		return item, err
	}
	item.body, err = encodeLines(bulkAction{Index: target}, document)
	return item, err
}

// encodeLines returns the lines of one item.
func encodeLines(action bulkAction, document []byte) ([]byte, error) {
	line, err := json.Marshal(action)
	if err != nil {
		return nil, fmt.Errorf("encoding a bulk item: %w", err)
	}
	line = append(line, '\n')
	if document != nil {
		line = append(append(line, document...), '\n')
	}
	return line, nil
}

// deleteLegacy deletes an existing installation's documents that stored documents have replaced.
func (s *Sink) deleteLegacy(ctx context.Context, index string, stored []*bulkItem) error {
	var items []*bulkItem
	s.updateIndex(index, func(state *indexState) {
		for _, item := range stored {
			// Only a document whose object was just stored is known to be replaced.
			if item.isRejected || item.change.Object == nil {
				continue
			}
			uid := string(item.change.ID.UID)
			if state.legacy[routing(s.options.Owner, item.change.Source)].Has(uid) {
				items = append(items, &bulkItem{change: item.change, id: uid})
			}
		}
	})
	if len(items) == 0 {
		return nil
	}
	for i := range items {
		var err error
		if items[i].body, err = encodeLines(bulkAction{Delete: &bulkTarget{ID: items[i].id}}, nil); err != nil {
			return err
		}
	}
	if err := s.sendItems(ctx, index, items); err != nil {
		return fmt.Errorf("deleting the documents of an existing installation: %w", err)
	}
	s.updateIndex(index, func(state *indexState) {
		for _, item := range items {
			state.legacy[routing(s.options.Owner, item.change.Source)].Delete(item.id)
		}
	})
	return nil
}

// sendItems sends items. While OpenSearch is overloaded, it sends the remaining items again.
func (s *Sink) sendItems(ctx context.Context, index string, items []*bulkItem) error {
	if len(items) == 0 {
		return nil
	}
	for attempt := 1; ; attempt++ {
		remaining, err := s.sendOnce(ctx, index, items)
		if err == nil && len(remaining) == 0 {
			return nil
		}
		var rejected *responseError
		var connecting *connectError
		switch {
		case errors.As(err, &rejected) && rejected.isPermanent() && !errors.As(err, &connecting):
			return s.sendHalves(ctx, index, items, rejected)
		case !errors.As(err, &rejected) || !rejected.isOverload() || attempt == bulkAttempts:
			return err
		}
		items = remaining
		if err := sleep(ctx, s.limits.RetryMin<<(attempt-1)); err != nil {
			return err
		}
	}
}

// sendHalves splits a request that OpenSearch rejects as a whole, because it is too large or because one of the
// documents is invalid. It rejects a single document.
func (s *Sink) sendHalves(ctx context.Context, index string, items []*bulkItem, reason *responseError) error {
	if len(items) == 1 {
		s.reject(items[0], reason)
		return nil
	}
	half := len(items) / 2
	if err := s.sendItems(ctx, index, items[:half]); err != nil {
		return err
	}
	return s.sendItems(ctx, index, items[half:])
}

// sleep waits for a random time between half of delay and delay.
func sleep(ctx context.Context, delay time.Duration) error {
	timer := time.NewTimer(delay/2 + rand.N(delay/2+1))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// sendOnce sends one bulk request. It returns the items that must be sent again, with the reason as error.
// After any error other than an overload, all items must be written again later.
func (s *Sink) sendOnce(ctx context.Context, index string, items []*bulkItem) (remaining []*bulkItem, err error) {
	size := 0
	for _, item := range items {
		size += len(item.body)
	}
	body := make([]byte, 0, size)
	for _, item := range items {
		body = append(body, item.body...)
	}
	var response struct {
		Errors bool                    `json:"errors"`
		Items  []map[string]bulkResult `json:"items"`
	}
	path := "/" + url.PathEscape(index) + "/_bulk?filter_path=errors,items.*._id,items.*.status,items.*.error"
	if err := s.request(ctx, http.MethodPost, path, body, &response); err != nil {
		return items, err
	}
	if len(response.Items) != len(items) {
		return nil, fmt.Errorf("%s: the bulk response has %d items instead of %d", s.Name(), len(response.Items), len(items))
	}
	for i, results := range response.Items {
		for _, result := range results {
			if result.ID != items[i].id {
				return nil, fmt.Errorf("%s: item %d of the bulk response is for document %q instead of %q", s.Name(), i, result.ID, items[i].id)
			}
			isRetried, itemErr := s.handleResult(index, items[i], result)
			if isRetried {
				remaining = append(remaining, items[i])
			}
			// An error other than an overload ends the attempts, so it takes precedence.
			if err == nil || itemErr != nil && !isRetried {
				err = itemErr
			}
		}
	}
	return remaining, err
}

// handleResult handles the result of one item. It reports whether the item must be sent again.
func (s *Sink) handleResult(index string, item *bulkItem, result bulkResult) (isRetried bool, err error) {
	if result.Status < http.StatusMultipleChoices || result.Status == http.StatusNotFound && item.isDeletion() && result.Error == nil {
		s.rejections.remove(item)
		return false, nil
	}
	rejected := &responseError{status: result.Status, secret: s.backend.secretName()}
	if result.Error != nil {
		rejected.cause = *result.Error
	}
	switch {
	case rejected.isPermanent():
		s.reject(item, rejected)
		return false, nil
	case rejected.isIndexMissing():
		s.expireIndex(index)
	}
	return rejected.isOverload(), fmt.Errorf("%s: document %s: %w", s.Name(), item.id, rejected)
}

func (b *bulkItem) isDeletion() bool {
	return b.change.Object == nil || b.id == string(b.change.ID.UID)
}
