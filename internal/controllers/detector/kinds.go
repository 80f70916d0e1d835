package detector

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"

	"karmada.io/karmada/internal/access/watches"
	"karmada.io/karmada/internal/domain/tenancy"
)

// retryDelay is the delay before the next request to an API server that did not respond.
const retryDelay = time.Second

// Server lists the served kinds.
type kindLister interface {
	ServerPreferredResources() ([]*metav1.APIResourceList, error)
}

// kindWatcher starts and ends the watch of a kind. Watch adds the kind to the watched kinds, and
// Unwatch removes it.
type kindWatcher interface {
	Watch(kind schema.GroupVersionKind) error
	Unwatch(kind schema.GroupVersionKind)
}

// kindDiscoveryConfig contains the dependencies and settings of a kindDiscovery.
type kindDiscoveryConfig struct {
	Lister kindLister
	// Manager watches the objects that define kinds.
	Manager *watches.Manager
	// Skipped selects the APIs that are never watched.
	Skipped tenancy.SkippedAPIs
	// Interval is the interval at which the served kinds are listed if no change is observed. The
	// watch of a kind ends when the kind has not been served for this time, or when the definition
	// of the kind was deleted.
	Interval time.Duration
	Log      logr.Logger
}

// kindDiscovery watches all kinds that the API server serves, and no others. Its invariants:
//
//   - The watch of a kind does not end because the API server does not respond, or because it cannot
//     list the group of the kind.
//   - A kind is watched at most once, in the preferred version of the API server.
//   - A new definition is found within seconds, without frequent discovery requests.
type kindDiscovery struct {
	config  kindDiscoveryConfig
	watched *watchedKinds
	watches kindWatcher
	// definitionsChanged contains an item if the served kinds may have changed.
	definitionsChanged chan struct{}
}

// newKindDiscovery returns a kindDiscovery. Its method Run starts it.
func newKindDiscovery(config kindDiscoveryConfig, watched *watchedKinds, watches kindWatcher) *kindDiscovery {
	return &kindDiscovery{config: config, watched: watched, watches: watches, definitionsChanged: make(chan struct{}, 1)}
}

// Run updates the set of watched kinds until ctx ends.
func (d *kindDiscovery) Run(ctx context.Context) {
	defer d.watchDefinitions()()
	timer := time.NewTimer(0)
	defer timer.Stop()
	schedule := discoverySchedule{interval: d.config.Interval}
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.definitionsChanged:
			if schedule.recordChange() {
				timer.Reset(schedule.nextDelay())
			}
		case <-timer.C:
			if !d.discoverKinds() {
				timer.Reset(min(retryDelay, schedule.interval))
				continue
			}
			schedule.recordDiscovery()
			timer.Reset(schedule.nextDelay())
		}
	}
}

// discoverKinds lists the served kinds, watches new kinds and ends the watches of removed kinds. It
// does not change the watches for groups that cannot be listed. It reports whether the API server
// responded.
func (d *kindDiscovery) discoverKinds() bool {
	lists, err := d.config.Lister.ServerPreferredResources()
	var partial *discovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &partial) {
		d.config.Log.Error(err, "Listing the served kinds")
		return false
	}
	if partial != nil {
		d.config.Log.Info("Some groups cannot be listed", "reason", partial.Error())
	}
	served := watchableKinds(d.config.Skipped, lists)
	added, removed := d.watched.compare(served, failedGroups(partial), time.Now(), d.config.Interval)
	for _, kind := range added {
		if err := d.watches.Watch(kind); err != nil {
			d.config.Log.Error(err, "Watching templates", "kind", kind)
		}
	}
	for _, kind := range removed {
		d.watches.Unwatch(kind)
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

// watchableKinds selects the kinds whose objects can be templates. served contains the preferred
// versions of the API server. watchableKinds skips group versions that cannot be parsed.
func watchableKinds(skipped tenancy.SkippedAPIs, served []*metav1.APIResourceList) sets.Set[schema.GroupVersionKind] {
	found := sets.New[schema.GroupVersionKind]()
	for _, list := range served {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, resource := range list.APIResources {
			if skipped.IsWatchable(version, resource) {
				found.Insert(version.WithKind(resource.Kind))
			}
		}
	}
	return found
}
