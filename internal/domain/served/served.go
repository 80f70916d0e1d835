// Package served answers "does an API server still serve a kind, and is its watch
// to run?" from the answers of discovery.
//
// A kind is absent only if a successful answer shows that. A failed, empty or
// partial answer says nothing about the kind, and then its watch stays as it is.
package served

import (
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Answer is what a discovery says about one kind.
type Answer int

const (
	// Unknown is the answer of a discovery that failed or that shows nothing.
	Unknown Answer = iota
	// Served is the answer if objects of the kind can be listed and watched.
	Served
	// Absent is the answer if the server does not have the kind.
	Absent
)

// Of returns what a server says about a kind. resources and err are its answer for
// the group version of the kind; groups are all groups that the server listed, nil
// if that request failed. A group version that is not found counts only if the
// listed groups lack it too: the server behind it may be unavailable.
func Of(kind schema.GroupVersionKind, groups *metav1.APIGroupList, resources *metav1.APIResourceList, err error) Answer {
	switch {
	case err == nil:
		return among(kind, resources)
	case apierrors.IsNotFound(err) && lacks(groups, kind.GroupVersion()):
		return Absent
	default:
		return Unknown
	}
}

func among(kind schema.GroupVersionKind, resources *metav1.APIResourceList) Answer {
	switch {
	case resources == nil || len(resources.APIResources) == 0:
		return Unknown
	case slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind.Kind && isWatchable(r) }):
		return Served
	default:
		return Absent
	}
}

func isWatchable(r metav1.APIResource) bool {
	return !strings.Contains(r.Name, "/") && slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "watch")
}

// lacks reports whether a list of groups is known and does not name a group version.
func lacks(groups *metav1.APIGroupList, version schema.GroupVersion) bool {
	if groups == nil || len(groups.Groups) == 0 {
		return false
	}
	return !slices.ContainsFunc(groups.Groups, func(g metav1.APIGroup) bool {
		return g.Name == version.Group && slices.ContainsFunc(g.Versions, func(v metav1.GroupVersionForDiscovery) bool {
			return v.Version == version.Version
		})
	})
}

// Watch is the state of the watch of one kind. The zero value is a watch that runs.
type Watch struct {
	// Ended is true from the end of the watch until the kind is served again.
	Ended bool
	// AbsentSince is the time of the first answer that the kind is absent; zero if no
	// answer said so since the kind was seen last.
	AbsentSince time.Time
}

// Step is what to do with a watch.
type Step int

const (
	// Keep leaves the watch as it is.
	Keep Step = iota
	// End ends the watch.
	End
	// Begin begins the watch again.
	Begin
)

// Next returns the state after an answer, and what to do. The watch of an absent kind
// ends after patience: a server that has just started may lack kinds for a moment.
func (w Watch) Next(answer Answer, now time.Time, patience time.Duration) (Watch, Step) {
	switch {
	case answer == Served && w.Ended:
		return Watch{}, Begin
	case answer == Served:
		return Watch{}, Keep
	case answer == Unknown || w.Ended:
		return w, Keep
	case w.AbsentSince.IsZero():
		w.AbsentSince = now
	}
	if now.Sub(w.AbsentSince) < patience {
		return w, Keep
	}
	w.Ended = true
	return w, End
}
