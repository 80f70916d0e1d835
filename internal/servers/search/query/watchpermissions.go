package query

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"karmada.io/karmada/internal/servers/search/index"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

// errNoDecision is returned if a decision expired before it was used.
var errNoDecision = errors.New("the reviews of many namespaces take too long")

// canReadInitial reports whether the caller may read an object that existed when the watch started. It
// returns false if the review for the object failed.
func (w *watcher) canReadInitial(ctx context.Context, object *objectcache.Object) bool {
	d := w.decide(ctx, object)
	if d.err != nil {
		w.omitted[namespaceTarget(object)] = true
	}
	// Either all of a target's objects are omitted, or none.
	return d.allowed && !w.isOmitted(object)
}

// canRead reports whether the caller may read a changed object. After reviewChanges, it needs no
// further review. An error ends the watch.
func (w *watcher) canRead(ctx context.Context, object *objectcache.Object) (bool, error) {
	d := w.decide(ctx, object)
	if err := w.reviewError(*object.Source(), w.isOmitted(object), d); err != nil {
		return false, err
	}
	return d.allowed, nil
}

func (w *watcher) decide(ctx context.Context, object *objectcache.Object) decision {
	w.access.review(ctx, []*objectcache.Object{object})
	d, isKnown := w.access.known(object)
	if !isKnown {
		d.err = errNoDecision
	}
	return d
}

func (w *watcher) isOmitted(object *objectcache.Object) bool {
	return w.omitted[sourceTarget(object)] || w.omitted[namespaceTarget(object)]
}

// reviewChanges reviews the permissions for the sources of all changes, and then for all changed
// objects that can match. An error ends the watch. Errors about sources do not depend on the changed
// objects.
func (w *watcher) reviewChanges(ctx context.Context, changes []objectcache.Event) error {
	var objects []*objectcache.Object
	var sources []objectcache.Source
	isAdded := map[objectcache.Source]bool{}
	for _, change := range changes {
		for _, object := range []*objectcache.Object{change.Old, change.New} {
			if object == nil {
				continue
			}
			if source := *object.Source(); !isAdded[source] && w.query.CanMatch(index.KnownOf(&source)) {
				sources, isAdded[source] = append(sources, source), true
			}
			if index.CanMatch(w.query, object) {
				objects = append(objects, object)
			}
		}
	}
	for i, d := range w.access.reviewSources(ctx, sources) {
		if err := w.reviewError(sources[i], w.omitted[target{source: sources[i]}], d); err != nil {
			return err
		}
	}
	w.access.review(ctx, objects)
	return nil
}

// reviewError returns the error that ends the watch if the review for a change failed, because the
// client would miss the change. If isOmitted is true, the target was omitted at the start. It then
// stays omitted while its reviews fail, because a new watch would omit it again. When a review succeeds
// again, the watch ends, so that a new watch includes the target.
func (w *watcher) reviewError(source objectcache.Source, isOmitted bool, d decision) error {
	switch {
	case d.err != nil && !isOmitted:
		return apierrors.NewResourceExpired(shortText("changes of %s in cluster %q are lost, because the permissions of user %q cannot be reviewed: watch again: %v",
			resourceName(source), source.Cluster, w.access.caller.GetName(), d.err))
	case d.err == nil && isOmitted:
		return apierrors.NewResourceExpired(shortText("cluster %q, which was omitted, responds again: watch again to see its %s",
			source.Cluster, resourceName(source)))
	}
	return nil
}
