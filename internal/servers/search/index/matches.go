package index

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/json"

	"karmada.io/karmada/internal/domain/searchquery"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

// Match is an object that matches a query.
type Match struct {
	Object *objectcache.Object
	// Content is the decoded object. The receiver may modify it.
	Content map[string]any
	// Reasons describe the object's fields that match.
	Reasons []searchquery.Matched
}

const (
	// firstChunkSize and maxChunkSize are the numbers of candidates that are decoded in parallel before
	// their matches are yielded. The first chunk is smaller, so that the first match is found early.
	firstChunkSize = 16
	maxChunkSize   = 128
	// maxDecoders is the maximum number of goroutines that decode one search's candidates.
	maxDecoders = 4
)

// Matches calls yield for each object after the given cursor that matches the query, in order, until
// yield returns false. Ages are relative to now. If an object cannot be decoded, Matches returns an
// error.
func Matches(ctx context.Context, s Searcher, q *searchquery.Query, after Cursor, now time.Time, yield func(Match) bool) error {
	v := verifier{q: q, now: now, yield: yield}
	size := firstChunkSize
	var failure error
	err := s.Candidates(ctx, q, after, func(object *objectcache.Object) bool {
		if !canMatchAt(q, object, now) {
			return true
		}
		if v.chunk = append(v.chunk, object); len(v.chunk) < size {
			return true
		}
		size = min(2*size, maxChunkSize)
		var more bool
		more, failure = v.flush(ctx)
		return more && failure == nil
	})
	if err != nil || failure != nil || v.isStopped {
		return cmp.Or(failure, err)
	}
	_, err = v.flush(ctx)
	return err
}

// canMatchAt reports whether the object can match the query at the given time, without decoding the
// object.
func canMatchAt(q *searchquery.Query, object *objectcache.Object, now time.Time) bool {
	known := knownOfObject(object)
	known.HasAge, known.Created, known.Now = true, object.Created(), now
	return q.CanMatch(known)
}

// verifier decodes candidates and compares them with the query.
type verifier struct {
	q     *searchquery.Query
	now   time.Time
	yield func(Match) bool
	chunk []*objectcache.Object
	// isStopped is true after yield returned false.
	isStopped bool
}

// verification is the result of decoding and comparing one candidate.
type verification struct {
	match   Match
	isMatch bool
	err     error
}

// flush verifies the chunk's candidates and yields the matches in order. It returns more=false if the
// search must end.
func (v *verifier) flush(ctx context.Context) (more bool, err error) {
	results := make([]verification, len(v.chunk))
	var next atomic.Int64
	work := func() {
		var buffer []byte
		for i := int(next.Add(1)) - 1; i < len(v.chunk) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
			results[i], buffer = v.verify(v.chunk[i], buffer)
		}
	}
	var workers sync.WaitGroup
	for range min(len(v.chunk)/4, maxDecoders, runtime.GOMAXPROCS(0)) - 1 {
		workers.Go(work)
	}
	work()
	workers.Wait()
	v.chunk = v.chunk[:0]
	if err := ctx.Err(); err != nil {
		return false, err
	}
	for _, result := range results {
		if result.err != nil {
			return false, result.err
		}
		if result.isMatch && !v.yield(result.match) {
			v.isStopped = true
			return false, nil
		}
	}
	return true, nil
}

func (v *verifier) verify(object *objectcache.Object, buffer []byte) (verification, []byte) {
	content, buffer, err := Decode(object, buffer)
	if err != nil {
		return verification{err: err}, buffer
	}
	reasons, isMatch := v.q.Match(&searchquery.Document{Cluster: object.Source().Cluster, Object: content, Now: v.now})
	return verification{match: Match{Object: object, Content: content, Reasons: reasons}, isMatch: isMatch}, buffer
}

// Decode returns the object's content. It overwrites buffer, and returns it for the next call. It takes
// half as long as Object.Decode, because it does not support lists.
func Decode(object *objectcache.Object, buffer []byte) (map[string]any, []byte, error) {
	buffer, err := object.AppendJSON(buffer[:0])
	if err != nil {
		return nil, buffer, err
	}
	var content map[string]any
	if err := json.Unmarshal(buffer, &content); err != nil {
		return nil, buffer, fmt.Errorf("decoding the cached %s %s/%s of cluster %q: %w",
			object.Source().Kind.Kind, object.Namespace(), object.Name(), object.Source().Cluster, err)
	}
	return content, buffer, nil
}
