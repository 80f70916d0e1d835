package watches

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/klog/v2"

	"karmada.io/karmada/internal/domain/servedkinds"
)

// unservedDelay is how long discovery must report that a kind is not served before the watch ends,
// because an API server that has just started may not serve all kinds yet.
const unservedDelay = 5 * time.Second

// sharedWatch is the watch of one query in one cluster. All subscriptions with the query share it.
type sharedWatch struct {
	cluster   *cluster
	query     Query
	store     *store
	startedAt time.Time
	retry     chan struct{}
	cancel    context.CancelFunc
	// subscriptions is the number of open subscriptions. The mutex of the cluster guards it.
	subscriptions int

	mu      sync.Mutex
	state   State
	isEnded bool
	// changed is closed when the state changes.
	changed chan struct{}

	// The following fields belong to the goroutine that runs the watch.
	server *connection
	source *Source
	// served is the observed availability of the kind. isInDoubt is true after a response that an
	// API server gives for a kind that it does not serve, until discovery shows that it serves the kind.
	served    servedkinds.WatchState
	isInDoubt bool
}

func newSharedWatch(c *cluster, query Query) *sharedWatch {
	now := time.Now()
	w := &sharedWatch{
		cluster: c, query: query, startedAt: now, retry: make(chan struct{}, 1),
		state: State{Phase: Syncing, Since: now}, changed: make(chan struct{}),
	}
	w.store = newStore(query.Transform, func() (before, after State) { return w.recordOutcome(nil) })
	return w
}

// run keeps the store up to date until ctx ends.
func (w *sharedWatch) run(ctx context.Context) {
	for {
		server := w.cluster.acquireConnection(ctx)
		if server == nil {
			return
		}
		w.runOnConnection(ctx, server)
		server.attempts.Done()
	}
}

// runOnConnection lists and watches until ctx ends or the connection is closed. The objects of the previous
// connection stay in the store, so that the first list yields the differences. Until then they are
// not usable, because the connection may lead to another cluster.
func (w *sharedWatch) runOnConnection(ctx context.Context, server *connection) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(server.ctx, cancel)() //nolint:contextcheck // the connection ends independently of ctx
	w.server, w.source, w.served, w.isInDoubt = server, nil, servedkinds.WatchState{}, false
	w.mu.Lock()
	before := w.state
	w.setState(State{Phase: Syncing, Since: time.Now()})
	w.mu.Unlock()
	w.store.publishState(before, State{Phase: Syncing})
	var sink Sink = w.store
	if server.Bounds != nil {
		sink = &limitedSink{Sink: sink, limit: server.Bounds.NewCacheLimit(w.query.Kind, w.query.LabelSelector == ManagedSelector)}
	}
	(&Loop{Open: w.open, Sink: sink, OnOutcome: w.handleOutcome, Retry: w.retry}).Run(ctx)
}

// open returns the source of the next attempt. The error matches meta.IsNoMatchError if the API
// server does not serve the kind.
func (w *sharedWatch) open(context.Context) (*Source, error) {
	if w.isInDoubt || w.served.Stopped {
		if err := w.reviewKind(); err != nil {
			return nil, err
		}
	}
	if w.source != nil {
		return w.source, nil
	}
	source, err := w.server.Source(w.query)
	if meta.IsNoMatchError(err) {
		w.isInDoubt = true
		// One response proves nothing, so the error must not match meta.IsNoMatchError.
		return nil, errors.New(err.Error())
	}
	w.source = source
	return source, err
}

// reviewKind asks discovery whether the API server serves the kind.
func (w *sharedWatch) reviewKind() error {
	availability, err := w.server.Availability(w.query.Kind)
	if err != nil {
		w.log().V(2).Info("Cannot determine whether the kind is served", "cause", err)
	}
	var action servedkinds.WatchAction
	w.served, action = w.served.Next(availability, time.Now(), unservedDelay)
	if availability == servedkinds.Served {
		w.isInDoubt = false
	}
	if availability == servedkinds.Served || action == servedkinds.StopWatch {
		// The kind may be served as another resource than before.
		w.source = nil
		if w.server.ForgetKinds != nil {
			w.server.ForgetKinds()
		}
	}
	notServed := &meta.NoKindMatchError{GroupKind: w.query.Kind.GroupKind(), SearchedVersions: []string{w.query.Kind.Version}}
	switch {
	case w.served.Stopped:
		return notServed
	case availability == servedkinds.NotServed:
		return errors.New(notServed.Error())
	}
	return nil
}

func (w *sharedWatch) handleOutcome(err error) {
	if apierrors.IsNotFound(err) {
		w.isInDoubt = true
	}
	before, after := w.recordOutcome(err)
	w.store.publishState(before, after)
}

// recordOutcome changes the state after an attempt. Only the goroutine that runs the watch calls it.
func (w *sharedWatch) recordOutcome(err error) (before, after State) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before = w.state
	if w.isEnded {
		return before, before
	}
	w.setState(before.next(err, time.Now()))
	if before.Phase != w.state.Phase {
		switch w.state.Phase {
		case NotServed, Denied, OverBounds:
			w.log().Info("The objects of a kind are not watched", "phase", w.state.Phase, "cause", err)
		case Failing:
			w.log().V(2).Info("A watch failed and is retried", "cause", err)
		}
	}
	return before, w.state
}

// setState changes the state. The caller holds w.mu.
func (w *sharedWatch) setState(next State) {
	w.state = next
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *sharedWatch) currentState() (State, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state, w.changed
}

func (w *sharedWatch) retryNow() {
	select {
	case w.retry <- struct{}{}:
	default: // a retry is pending already
	}
}

// end ends the watch. Its objects are not usable any more.
func (w *sharedWatch) end() {
	w.cancel()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.isEnded = true
	w.setState(State{Phase: Syncing, Since: time.Now()})
}

func (w *sharedWatch) log() klog.Logger {
	return klog.FromContext(w.server.ctx).WithValues("cluster", w.cluster.name, "kind", w.query.Kind)
}
