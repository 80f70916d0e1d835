package waiting

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"karmada.io/karmada/internal/controllers/detector/templates"
)

// reportMaxAge is the maximum age of an object that is reported at the start of the process if no
// policy matches it. An object that is older was reported by an earlier process.
const reportMaxAge = 5 * time.Minute

// Initial contains the templates that are older than reportMaxAge when the process starts. Each
// template is removed at its first reconcile.
type Initial struct {
	mu        sync.Mutex
	started   time.Time
	templates sets.Set[templates.Ref]
}

// NewInitial returns an empty record.
func NewInitial() *Initial {
	return &Initial{templates: sets.New[templates.Ref]()}
}

// SetStartTime sets the start time of the process. The ages of templates are relative to this time.
func (i *Initial) SetStartTime(now time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.started = now
}

// Add records a template if it is old.
func (i *Initial) Add(r templates.Ref, created time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.started.Sub(created) > reportMaxAge {
		i.templates.Insert(r)
	}
}

// Take removes a template and reports whether the record contained it.
func (i *Initial) Take(r templates.Ref) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	found := i.templates.Has(r)
	i.templates.Delete(r)
	return found
}
