package interpreters

import (
	"context"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"karmada.io/karmada/internal/domain/interpreter"
)

// Changes collects the kinds whose rules changed in a source, for one observer.
type Changes struct {
	stop func()
	// arrived contains an item if pending may contain kinds.
	arrived chan struct{}

	mu      sync.Mutex
	pending interpreter.Kinds
}

// Observe starts to collect the changes of a source. For a source that does not implement
// interpreter.Observable it collects nothing.
func Observe(rules interpreter.Source) *Changes {
	c := &Changes{arrived: make(chan struct{}, 1), stop: func() {}}
	if changing, ok := rules.(interpreter.Observable); ok {
		c.stop = changing.OnChange(c.add)
	}
	return c
}

func (c *Changes) add(kinds interpreter.Kinds) {
	c.mu.Lock()
	c.pending = c.pending.Union(kinds)
	c.mu.Unlock()
	select {
	case c.arrived <- struct{}{}:
	default: // the observer is notified already
	}
}

func (c *Changes) take() interpreter.Kinds {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.pending
	c.pending = interpreter.Kinds{}
	return taken
}

// Handle passes the changes since Observe to the handle function until ctx ends, and then stops
// observing. Calls of the handle function do not overlap: kinds that change during a call are
// passed to the next call. Handle must be called only once.
func (c *Changes) Handle(ctx context.Context, handle func(context.Context, interpreter.Kinds)) {
	defer c.stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.arrived:
			if kinds := c.take(); !kinds.IsEmpty() && ctx.Err() == nil {
				handle(ctx, kinds)
			}
		}
	}
}

// NewRunnable returns a runnable of a manager that handles changes like Changes.Handle, beginning
// with the first change after NewRunnable. It is for components that are not controllers of
// controller-runtime.
func NewRunnable(rules interpreter.Source, handle func(context.Context, interpreter.Kinds)) manager.RunnableFunc {
	changes := Observe(rules)
	return func(ctx context.Context) error {
		changes.Handle(ctx, handle)
		return nil
	}
}
