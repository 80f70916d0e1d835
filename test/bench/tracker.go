package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// tracker watches the Deployments of one cluster and records the time at which expectations
// are met. It uses one watch, because polling would add load.
type tracker struct {
	cluster string

	mu       sync.Mutex
	states   map[string]observedState
	expected map[string][]*expectation
}

// observedState is the latest state of a Deployment, with the time at which the watch
// delivered it.
type observedState struct {
	deployment *appsv1.Deployment
	at         time.Time
}

// expectation is a condition on one Deployment. It is met at most once.
type expectation struct {
	cluster, name string
	condition     condition
	done          chan struct{}
	at            time.Time // set when done is closed
}

func newTracker(cluster string) *tracker {
	return &tracker{cluster: cluster, states: map[string]observedState{}, expected: map[string][]*expectation{}}
}

// expect registers a condition. Call it before the request that changes the Deployment. A
// condition that is already met has the time of the latest state.
func (t *tracker) expect(name string, c condition) *expectation {
	e := &expectation{cluster: t.cluster, name: name, condition: c, done: make(chan struct{})}
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.states[name]; c.holds(s.deployment) {
		e.at = s.at
		close(e.done)
		return e
	}
	t.expected[name] = append(t.expected[name], e)
	return e
}

// observe records a new state. A nil Deployment means that it is deleted.
func (t *tracker) observe(name string, d *appsv1.Deployment, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.states[name] = observedState{deployment: d, at: at}
	var unmet []*expectation
	for _, e := range t.expected[name] {
		if !e.condition.holds(d) {
			unmet = append(unmet, e)
			continue
		}
		e.at = at
		close(e.done)
	}
	t.expected[name] = unmet
}

// watchCluster watches a cluster until the context ends. It returns after the first list.
func (t *tracker) watchCluster(ctx context.Context, c *cluster, namespace string) error {
	deployments := c.typed.AppsV1().Deployments(namespace)
	sight := func(object any) {
		if d, ok := object.(*appsv1.Deployment); ok {
			t.observe(d.Name, d, time.Now())
		}
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				return deployments.List(ctx, options)
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				return deployments.Watch(ctx, options)
			},
		}, c.typed),
		ObjectType: &appsv1.Deployment{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    sight,
			UpdateFunc: func(_, object any) { sight(object) },
			DeleteFunc: func(object any) {
				if key, err := cache.DeletionHandlingObjectToName(object); err == nil {
					t.observe(key.Name, nil, time.Now())
				}
			},
		},
	})
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return fmt.Errorf("watching Deployments in %s: %w", t.cluster, context.Cause(ctx))
	}
	return nil
}

// awaitAll returns when all expectations are met. If the context ends before, the error
// contains the number of unmet expectations and names one of them.
func awaitAll(ctx context.Context, expectations ...*expectation) error {
	for i, e := range expectations {
		select {
		case <-e.done:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d expectations are not met, for example that %s in %s %s: %w",
				countUnmet(expectations[i:]), len(expectations), e.name, e.cluster, e.condition.description, context.Cause(ctx))
		}
	}
	return nil
}

func countUnmet(expectations []*expectation) int {
	count := 0
	for _, e := range expectations {
		select {
		case <-e.done:
		default:
			count++
		}
	}
	return count
}

// lastMetAt returns the time at which the last of the expectations was met. All must be
// met.
func lastMetAt(expectations []*expectation) time.Time {
	var latest time.Time
	for _, e := range expectations {
		if e.at.After(latest) {
			latest = e.at
		}
	}
	return latest
}

// fleetTracker holds the trackers of the control plane and of all members.
type fleetTracker struct {
	karmada *tracker
	members []*tracker
}

// expectInMembers registers a condition for every name in every member.
func (f *fleetTracker) expectInMembers(names []string, c condition) []*expectation {
	var expectations []*expectation
	for _, name := range names {
		for _, member := range f.members {
			expectations = append(expectations, member.expect(name, c))
		}
	}
	return expectations
}

// expectInKarmada registers a condition for every template.
func (f *fleetTracker) expectInKarmada(names []string, c condition) []*expectation {
	var expectations []*expectation
	for _, name := range names {
		expectations = append(expectations, f.karmada.expect(name, c))
	}
	return expectations
}

// withFleetTracker watches the fleet while act runs.
func (b *bench) withFleetTracker(ctx context.Context, act func(context.Context, *fleetTracker) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(errors.New("the scenario has ended"))
	o := &fleetTracker{karmada: newTracker(b.fleet.karmada.name)}
	if err := o.karmada.watchCluster(ctx, b.fleet.karmada, b.fleet.namespace); err != nil {
		return err
	}
	for _, member := range b.fleet.members {
		t := newTracker(member.name)
		if err := t.watchCluster(ctx, member, b.fleet.namespace); err != nil {
			return err
		}
		o.members = append(o.members, t)
	}
	return act(ctx, o)
}
