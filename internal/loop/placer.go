package loop

import (
	"context"
	"sync/atomic"

	"karmada.io/karmada/internal/domain/binding"
)

// PlaceFunc selects the clusters of a binding that is about to be created and sets them in the
// binding, or leaves the binding unchanged.
type PlaceFunc func(ctx context.Context, created binding.Object)

// BindingPlacer connects the creator of bindings with the scheduler of the same process, so that a
// binding can be created together with its clusters, which saves a write. Without a scheduler in the
// process, or with a nil BindingPlacer, bindings are created without clusters.
type BindingPlacer struct{ place atomic.Pointer[PlaceFunc] }

// Set sets the function that places bindings until ctx ends.
func (p *BindingPlacer) Set(ctx context.Context, place PlaceFunc) {
	if p == nil {
		return
	}
	p.place.Store(&place)
	context.AfterFunc(ctx, func() { p.place.CompareAndSwap(&place, nil) })
}

// Place selects the clusters of a binding that is about to be created, if the scheduler runs in this
// process.
func (p *BindingPlacer) Place(ctx context.Context, created binding.Object) {
	if p == nil {
		return
	}
	if place := p.place.Load(); place != nil {
		(*place)(ctx, created)
	}
}
