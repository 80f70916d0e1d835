package interpreters

import (
	"sync"

	"karmada.io/karmada/internal/domain/interpreter"
)

// Announcer implements interpreter.Observable for sources that embed it. The zero value has no
// observers.
type Announcer struct {
	mu        sync.Mutex
	observers map[*observer]struct{}
}

type observer struct{ notify func(interpreter.Kinds) }

// OnChange implements interpreter.Observable.
func (a *Announcer) OnChange(notify func(interpreter.Kinds)) (stop func()) {
	added := &observer{notify}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.observers == nil {
		a.observers = map[*observer]struct{}{}
	}
	a.observers[added] = struct{}{}
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.observers, added)
	}
}

// Announce notifies all observers that the rules of some kinds changed. A source calls Announce
// after its Rules method returns the new rules, and without holding a lock that Rules needs.
func (a *Announcer) Announce(kinds interpreter.Kinds) {
	if kinds.IsEmpty() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for each := range a.observers {
		each.notify(kinds)
	}
}
