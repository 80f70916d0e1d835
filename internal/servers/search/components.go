package search

import (
	"context"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"karmada.io/karmada/internal/domain/admission"
)

// components are what a server consists of, besides its storage.
type components struct {
	// search and proxy are nil if the user disabled them.
	search SearchHandler
	proxy  ProxyHandler
	// rules validate ResourceRegistries.
	rules admission.Options
	// tasks run from the start of the server until its end.
	tasks []func(context.Context)
	// awaitCaches waits until the objects of members are cached, at most for the limit.
	awaitCaches func(ctx context.Context, limit time.Duration)
	// closers release what the components acquired, in the opposite order.
	closers []func()
}

// addTask adds a task that may fail.
func (p *components) addTask(doing string, run func(context.Context) error) {
	p.tasks = append(p.tasks, func(ctx context.Context) {
		if err := run(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "A task of the server ended", "task", doing)
		}
	})
}

// addCloser adds a function that release calls.
func (p *components) addCloser(release func()) { p.closers = append(p.closers, release) }

// release releases what the components acquired. The tasks must have ended.
func (p *components) release() {
	for _, release := range slices.Backward(p.closers) {
		release()
	}
	p.closers = nil
}
