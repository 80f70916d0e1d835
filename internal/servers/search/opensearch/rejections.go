package opensearch

import (
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
)

// maxRejections is the maximum number of rejections in memory.
const maxRejections = 1000

// rejections holds the documents that OpenSearch rejected for their content or size, and the objects that cannot
// be encoded. They are only sent again if they change or when the feed compares. It is safe for concurrent use.
type rejections struct {
	mu sync.Mutex
	// reasons has the reasons by document ID.
	reasons map[string]string
	// omitted is the number of rejections beyond the limit.
	omitted int
}

func (r *rejections) add(item *bulkItem, reason error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, exists := r.reasons[item.id]; !exists && len(r.reasons) >= maxRejections {
		r.omitted++
		return
	}
	if r.reasons == nil {
		r.reasons = map[string]string{}
	}
	name := "the document " + item.id
	if object := item.change.Object; object != nil {
		name = fmt.Sprintf("%s %s/%s of cluster %q", object.Source().Kind.Kind, object.Namespace(), object.Name(), object.Source().Cluster)
	}
	r.reasons[item.id] = name + ": " + reason.Error()
}

func (r *rejections) remove(item *bulkItem) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.reasons, item.id)
	if len(r.reasons) == 0 {
		r.omitted = 0
	}
}

// Rejections returns the number of rejected objects, and the alphabetically first reason.
func (s *Sink) Rejections() (count int, example string) {
	r := &s.rejections
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.reasons) == 0 {
		return 0, ""
	}
	return len(r.reasons) + r.omitted, r.reasons[slices.Min(sets.KeySet(r.reasons).UnsortedList())]
}
