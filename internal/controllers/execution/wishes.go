package execution

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/guard"
)

// wishMemory is for how long a change that a user made explains what a scheduler
// does. It is longer than a graceful eviction takes.
const wishMemory = 30 * time.Minute

// wishes remembers which bindings users changed lately. A process that has just
// started knows of none; then less is explained and more is held.
type wishes struct {
	now func() time.Time

	mu    sync.Mutex
	at    map[types.NamespacedName]time.Time
	swept time.Time
}

func newWishes(now func() time.Time) *wishes {
	return &wishes{now: now, at: map[types.NamespacedName]time.Time{}}
}

// watch follows the bindings of both scopes.
func (w *wishes) watch(ctx context.Context, from cache.Cache) error {
	for _, namespaced := range []bool{true, false} {
		informer, err := from.GetInformer(ctx, binding.New(namespaced))
		if err != nil {
			return fmt.Errorf("watching bindings: %w", err)
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(before, after any) {
			older, ok := before.(binding.Object)
			newer, ok2 := after.(binding.Object)
			if ok && ok2 && guard.Asked(older.BindingSpec(), newer.BindingSpec()) {
				w.note(newer)
			}
		}}); err != nil {
			return fmt.Errorf("watching bindings: %w", err)
		}
	}
	return nil
}

// note remembers that a user changed a binding, and that something was changed in
// its namespace.
func (w *wishes) note(bound binding.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	if now.Sub(w.swept) > wishMemory {
		for key, at := range w.at {
			if now.Sub(at) > wishMemory {
				delete(w.at, key)
			}
		}
		w.swept = now
	}
	w.at[types.NamespacedName{Namespace: bound.GetNamespace(), Name: bound.GetName()}] = now
	w.at[types.NamespacedName{Namespace: bound.GetNamespace()}] = now
}

// lately tells whether a user changed the binding lately. One without a placement
// follows others of its namespace, and so do the wishes.
func (w *wishes) lately(bound binding.Object) bool {
	key := types.NamespacedName{Namespace: bound.GetNamespace(), Name: bound.GetName()}
	if bound.BindingSpec().Placement == nil {
		key.Name = ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	at, ok := w.at[key]
	return ok && w.now().Sub(at) <= wishMemory
}

// proofs remembers for a moment what has become of the templates of bindings: the
// Works of one binding in many clusters ask the same.
type proofs struct{ known *lru.Cache }

type proof struct {
	state guard.Template
	at    time.Time
}

const (
	proofsKept  = 4096
	proofMemory = 10 * time.Second
)

func newProofs() *proofs { return &proofs{known: lru.New(proofsKept)} }

func (p *proofs) recall(binding string, now time.Time) (guard.Template, bool) {
	value, ok := p.known.Get(binding)
	if !ok || binding == "" {
		return guard.Unasked, false
	}
	known, ok := value.(proof)
	return known.state, ok && now.Sub(known.at) <= proofMemory
}

func (p *proofs) note(binding string, state guard.Template, now time.Time) {
	p.known.Add(binding, proof{state: state, at: now})
}
