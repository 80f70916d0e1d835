package detector

import (
	"context"
	"errors"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// definitions are the kinds whose objects define other kinds. They are templates
// as well, so that watching them unstructured costs no second watch.
var definitions = [...]schema.GroupVersionKind{
	{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"},
}

// settling is when to look after a definition changed: the server takes a moment
// to serve what it accepted, and says nothing when it does.
var settling = [...]time.Duration{200 * time.Millisecond, time.Second, 4 * time.Second}

// discoveryRetry is when to ask a server again that did not answer.
const discoveryRetry = time.Second

// discover keeps the watched kinds in step with the served ones. It begins when
// the controller of templates watches already, for what is watched from the
// start has to be complete before any work begins.
func (d *detector) discover(ctx context.Context) error {
	if _, err := d.entrance.open(ctx); err != nil {
		return nil // the manager ends
	}
	d.watchDefinitions(ctx)
	timer := time.NewTimer(0)
	defer timer.Stop()
	pace := pace{interval: d.options.DiscoveryInterval}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.definitions:
			if pace.hurry() {
				timer.Reset(pace.next())
			}
		case <-timer.C:
			if !d.look(ctx) {
				timer.Reset(min(discoveryRetry, pace.interval))
				continue
			}
			pace.looked()
			timer.Reset(pace.next())
		}
	}
}

// pace says when to look for kinds again: at intervals, and a few times after
// definitions changed.
type pace struct {
	interval time.Duration
	step     int
	hurried  bool
	pending  bool
}

// hurry notes a change of definitions and reports whether to look sooner. A
// steady stream of changes does not keep putting off the look.
func (p *pace) hurry() bool {
	p.step, p.hurried = 0, true
	if p.pending {
		return false
	}
	p.pending = true
	return true
}

// looked notes that the look for pending changes is done.
func (p *pace) looked() {
	p.pending = false
	if p.hurried {
		p.step++
	}
	if p.step >= len(settling) {
		p.step, p.hurried = 0, false
	}
}

// next is how long to wait for the next look.
func (p *pace) next() time.Duration {
	if p.hurried {
		return min(settling[p.step], p.interval)
	}
	return p.interval
}

// watchDefinitions tells of every change of what defines kinds. Where they are
// not served, the intervals have to do.
func (d *detector) watchDefinitions(ctx context.Context) {
	for _, kind := range definitions {
		informer, err := d.cache.GetInformer(ctx, blank(kind), cache.BlockUntilSynced(false))
		if err == nil {
			_, err = informer.AddEventHandler(d.onDefinitions())
		}
		if err != nil {
			d.log.Error(err, "New kinds are found at intervals only", "definitions", kind.Kind, "interval", d.options.DiscoveryInterval)
		}
	}
}

func (d *detector) onDefinitions() toolscache.ResourceEventHandler {
	changed := func(obj any, defined bool) {
		if kind, ok := definedBy(obj); ok {
			d.kinds.define(kind, defined)
		}
		select {
		case d.definitions <- struct{}{}:
		default: // told already
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { changed(obj, true) },
		UpdateFunc: func(before, after any) {
			older, ok := before.(*unstructured.Unstructured)
			newer, ok2 := after.(*unstructured.Unstructured)
			if !ok || !ok2 || !reflect.DeepEqual(statusAndSpec(older), statusAndSpec(newer)) {
				changed(after, true)
			}
		},
		DeleteFunc: func(obj any) { changed(final(obj), false) },
	}
}

// statusAndSpec is what a definition says of what is served.
func statusAndSpec(definition *unstructured.Unstructured) [2]any {
	return [2]any{definition.Object["status"], definition.Object["spec"]}
}

// definedBy is the kind that a CustomResourceDefinition defines. An APIService
// does not tell its kinds.
func definedBy(obj any) (schema.GroupKind, bool) {
	definition, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return schema.GroupKind{}, false
	}
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	return schema.GroupKind{Group: group, Kind: kind}, kind != ""
}

// look lists the served kinds, watches new ones and ends the watches of those
// that are gone. The kinds of groups that cannot be listed stay as they are. It
// reports whether the server answered.
func (d *detector) look(ctx context.Context) bool {
	lists, err := d.resolver.ServerPreferredResources()
	var partial *discovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &partial) {
		d.log.Error(err, "Listing the served kinds")
		return false
	}
	if partial != nil {
		d.log.Info("Some groups cannot be listed", "reason", partial.Error())
	}
	served := watchable(d.options.Propagated.APIs, lists)
	added, gone := d.kinds.compare(served, unlisted(partial), time.Now(), d.options.DiscoveryInterval)
	for _, kind := range added {
		if err := d.watch(ctx, kind); err != nil {
			d.log.Error(err, "Watching templates", "kind", kind)
		}
	}
	for _, kind := range gone {
		d.unwatch(ctx, kind)
	}
	return true
}

// unlisted returns the groups with at least one version that could not be listed.
func unlisted(partial *discovery.ErrGroupDiscoveryFailed) sets.Set[string] {
	groups := sets.New[string]()
	if partial != nil {
		for version := range partial.Groups {
			groups.Insert(version.Group)
		}
	}
	return groups
}
