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

// definitionKinds are the kinds whose objects define other kinds. They are templates as well.
// Watching them as unstructured objects shares the watch of the templates.
var definitionKinds = [...]schema.GroupVersionKind{
	{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"},
}

// rediscoveryDelays are the delays of the discoveries after a definition changed. The API
// server serves an accepted definition a moment later and sends no notification.
var rediscoveryDelays = [...]time.Duration{200 * time.Millisecond, time.Second, 4 * time.Second}

// discoveryRetryDelay is the time until the next request to an API server that did not answer.
const discoveryRetryDelay = time.Second

// runDiscovery updates the watched kinds to match the served ones. It starts after the
// controller of templates, because workers wait for every watch that exists at the start.
func (d *detector) runDiscovery(ctx context.Context) error {
	if _, err := d.startup.waitForQueue(ctx); err != nil {
		return nil // the manager stops
	}
	d.watchDefinitions(ctx)
	timer := time.NewTimer(0)
	defer timer.Stop()
	schedule := discoverySchedule{interval: d.options.DiscoveryInterval}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.definitionsChanged:
			if schedule.recordChange() {
				timer.Reset(schedule.nextDelay())
			}
		case <-timer.C:
			if !d.discoverKinds(ctx) {
				timer.Reset(min(discoveryRetryDelay, schedule.interval))
				continue
			}
			schedule.recordDiscovery()
			timer.Reset(schedule.nextDelay())
		}
	}
}

// discoverySchedule decides when the served kinds are listed again: at intervals, and a few
// times after definitions changed.
type discoverySchedule struct {
	interval  time.Duration
	step      int
	expedited bool
	pending   bool
}

// recordChange records a change of definitions and reports whether the timer must be set to an
// earlier time. A steady stream of changes does not delay the discovery further.
func (p *discoverySchedule) recordChange() bool {
	p.step, p.expedited = 0, true
	if p.pending {
		return false
	}
	p.pending = true
	return true
}

// recordDiscovery records that the kinds were listed after the pending changes.
func (p *discoverySchedule) recordDiscovery() {
	p.pending = false
	if p.expedited {
		p.step++
	}
	if p.step >= len(rediscoveryDelays) {
		p.step, p.expedited = 0, false
	}
}

// nextDelay returns the time until the next discovery.
func (p *discoverySchedule) nextDelay() time.Duration {
	if p.expedited {
		return min(rediscoveryDelays[p.step], p.interval)
	}
	return p.interval
}

// watchDefinitions watches the objects that define kinds. If they are not served, new kinds
// are found at intervals only.
func (d *detector) watchDefinitions(ctx context.Context) {
	for _, kind := range definitionKinds {
		informer, err := d.cache.GetInformer(ctx, newObject(kind), cache.BlockUntilSynced(false))
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
		if kind, ok := definedKind(obj); ok {
			d.watchedKinds.setDefined(kind, defined)
		}
		select {
		case d.definitionsChanged <- struct{}{}:
		default: // a change is pending already
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
		DeleteFunc: func(obj any) { changed(objectOfDelete(obj), false) },
	}
}

// statusAndSpec returns the parts of a definition that determine the served kinds.
func statusAndSpec(definition *unstructured.Unstructured) [2]any {
	return [2]any{definition.Object["status"], definition.Object["spec"]}
}

// definedKind returns the kind that a CustomResourceDefinition defines. An APIService does not
// contain its kinds.
func definedKind(obj any) (schema.GroupKind, bool) {
	definition, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return schema.GroupKind{}, false
	}
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	return schema.GroupKind{Group: group, Kind: kind}, kind != ""
}

// discoverKinds lists the served kinds, watches new ones and ends the watches of removed ones.
// The kinds of groups that cannot be listed stay as they are. It reports whether the server
// answered.
func (d *detector) discoverKinds(ctx context.Context) bool {
	lists, err := d.discoveryClient.ServerPreferredResources()
	var partial *discovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &partial) {
		d.log.Error(err, "Listing the served kinds")
		return false
	}
	if partial != nil {
		d.log.Info("Some groups cannot be listed", "reason", partial.Error())
	}
	served := watchableKinds(d.options.Propagated.APIs, lists)
	added, removed := d.watchedKinds.compare(served, failedGroups(partial), time.Now(), d.options.DiscoveryInterval)
	for _, kind := range added {
		if err := d.watchKind(ctx, kind); err != nil {
			d.log.Error(err, "Watching templates", "kind", kind)
		}
	}
	for _, kind := range removed {
		d.unwatchKind(ctx, kind)
	}
	return true
}

// failedGroups returns the groups with at least one version that could not be listed.
func failedGroups(partial *discovery.ErrGroupDiscoveryFailed) sets.Set[string] {
	groups := sets.New[string]()
	if partial != nil {
		for version := range partial.Groups {
			groups.Insert(version.Group)
		}
	}
	return groups
}
