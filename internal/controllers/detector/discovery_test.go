package detector

import (
	"context"
	"errors"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"karmada.io/karmada/internal/access/watches"
	"karmada.io/karmada/internal/domain/tenancy"
)

// answer is the response of an API server to one request for its kinds.
type answer struct {
	kinds []string
	err   error
}

// ServerPreferredResources implements Server.
func (a answer) ServerPreferredResources() ([]*metav1.APIResourceList, error) {
	list := &metav1.APIResourceList{GroupVersion: "apps/v1"}
	for _, kind := range a.kinds {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: kind, Kind: kind, Verbs: metav1.Verbs{"create", "delete", "get", "list", "watch"}})
	}
	return []*metav1.APIResourceList{list}, a.err
}

// recordedWatches adds and removes watched kinds and records the calls. The kind in refused cannot
// be watched.
type recordedWatches struct {
	watched *watchedKinds
	refused string
	calls   []string
	stop    context.CancelFunc
}

// Watch implements kindWatcher.
func (r *recordedWatches) Watch(kind schema.GroupVersionKind) error {
	r.calls = append(r.calls, "watch "+kind.Kind)
	if r.stop != nil {
		r.stop()
	}
	if kind.Kind == r.refused {
		return errors.New("refused")
	}
	r.watched.Add(kind, func() {})
	return nil
}

// Unwatch implements kindWatcher.
func (r *recordedWatches) Unwatch(kind schema.GroupVersionKind) {
	r.calls = append(r.calls, "unwatch "+kind.Kind)
	r.watched.Stop(kind)
}

func newTestDiscovery(ctx context.Context, w *recordedWatches, a answer) *kindDiscovery {
	return newKindDiscovery(kindDiscoveryConfig{
		Lister: a, Manager: watches.NewManager(ctx),
		Skipped: tenancy.DefaultSkippedAPIs(), Log: logr.Discard(),
	}, w.watched, w)
}

func TestDiscoveryFollowsServedKinds(t *testing.T) {
	appsFailed := &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: "apps", Version: "v1"}: errors.New("down")}}
	tests := map[string]struct {
		answers []answer
		refused string
		want    []string
		listed  bool
	}{
		"each new kind is watched once": {
			answers: []answer{{kinds: []string{"B", "A"}}, {kinds: []string{"A", "B", "C"}}},
			want:    []string{"watch A", "watch B", "watch C"}, listed: true,
		},
		"the watch of a removed kind ends": {
			answers: []answer{{kinds: []string{"A", "B"}}, {kinds: []string{"A"}}, {kinds: []string{"A"}}},
			want:    []string{"watch A", "watch B", "unwatch B"}, listed: true,
		},
		"a kind that cannot be watched is tried again": {
			answers: []answer{{kinds: []string{"A", "B"}}, {kinds: []string{"A", "B"}}}, refused: "A",
			want: []string{"watch A", "watch B", "watch A"}, listed: true,
		},
		"a partial answer adds kinds and ends no watch": {
			answers: []answer{{kinds: []string{"A"}}, {kinds: []string{"B"}, err: appsFailed}, {kinds: []string{"B"}, err: appsFailed}},
			want:    []string{"watch A", "watch B"}, listed: true,
		},
		"an API server that does not answer changes nothing": {
			answers: []answer{{kinds: []string{"A"}}, {err: errors.New("down")}, {err: errors.New("down")}},
			want:    []string{"watch A"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := &recordedWatches{watched: newWatchedKinds(), refused: test.refused}
			var listed bool
			for _, a := range test.answers {
				listed = newTestDiscovery(t.Context(), w, a).discoverKinds()
			}
			if listed != test.listed {
				t.Errorf("the last list arrived: %v", listed)
			}
			if diff := cmp.Diff(test.want, w.calls); diff != "" {
				t.Errorf("watches (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDiscoveryRunsUntilContextEnds(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	w := &recordedWatches{watched: newWatchedKinds(), stop: stop}
	newTestDiscovery(ctx, w, answer{kinds: []string{"A"}}).Run(ctx)
	if diff := cmp.Diff([]string{"watch A"}, w.calls); diff != "" {
		t.Errorf("watches (-want +got):\n%s", diff)
	}
}
