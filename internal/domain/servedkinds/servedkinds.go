// Package servedkinds determines from discovery results whether an API server serves a kind, and
// whether the kind's watch must run.
//
// A kind counts as not served only if a successful response proves it. A failed, empty or partial response
// proves nothing about the kind, so the kind's watch stays unchanged.
package servedkinds

import (
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Availability is the discovery result for one kind.
type Availability int

const (
	// Unknown means that discovery failed or returned nothing.
	Unknown Availability = iota
	// Served means that objects of the kind can be listed and watched.
	Served
	// NotServed means that the server does not serve the kind.
	NotServed
)

// KindAvailability returns the kind's availability according to discovery. resources and err are the
// response for the kind's group version. groups are all groups that the server listed, or nil if that
// request failed. If the response for the group version is NotFound, the kind is not served only if the
// listed groups do not contain the group version either. Otherwise the server that serves the group
// version may be unavailable.
func KindAvailability(kind schema.GroupVersionKind, groups *metav1.APIGroupList, resources *metav1.APIResourceList,
	err error) Availability {
	switch {
	case err == nil:
		return inResources(kind, resources)
	case apierrors.IsNotFound(err) && lacksGroupVersion(groups, kind.GroupVersion()):
		return NotServed
	default:
		return Unknown
	}
}

func inResources(kind schema.GroupVersionKind, resources *metav1.APIResourceList) Availability {
	switch {
	case resources == nil || len(resources.APIResources) == 0:
		return Unknown
	case slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind.Kind && isWatchable(r) }):
		return Served
	default:
		return NotServed
	}
}

func isWatchable(r metav1.APIResource) bool {
	return !strings.Contains(r.Name, "/") && slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "watch")
}

// lacksGroupVersion reports whether the groups are known and do not contain the group version.
func lacksGroupVersion(groups *metav1.APIGroupList, version schema.GroupVersion) bool {
	if groups == nil || len(groups.Groups) == 0 {
		return false
	}
	return !slices.ContainsFunc(groups.Groups, func(g metav1.APIGroup) bool {
		return g.Name == version.Group && slices.ContainsFunc(g.Versions, func(v metav1.GroupVersionForDiscovery) bool {
			return v.Version == version.Version
		})
	})
}

// WatchState is the state of one kind's watch. The zero value means that the watch runs.
type WatchState struct {
	// Stopped is true from when the watch is stopped until the kind is served again.
	Stopped bool
	// NotServedSince is the time at which discovery first showed that the kind is no longer served. It
	// is zero while the kind is served.
	NotServedSince time.Time
}

// WatchAction tells the caller what to do with a watch.
type WatchAction int

const (
	// KeepWatch leaves the watch unchanged.
	KeepWatch WatchAction = iota
	// StopWatch stops the watch.
	StopWatch
	// StartWatch starts the watch again.
	StartWatch
)

// Next returns the new state and the action for a discovery result. If the kind is not served, its
// watch is stopped only after the given delay, because a server that has just started may not serve all
// kinds yet.
func (w WatchState) Next(availability Availability, now time.Time, delay time.Duration) (WatchState, WatchAction) {
	switch {
	case availability == Served && w.Stopped:
		return WatchState{}, StartWatch
	case availability == Served:
		return WatchState{}, KeepWatch
	case availability == Unknown || w.Stopped:
		return w, KeepWatch
	case w.NotServedSince.IsZero():
		w.NotServedSince = now
	}
	if now.Sub(w.NotServedSince) < delay {
		return w, KeepWatch
	}
	w.Stopped = true
	return w, StopWatch
}
