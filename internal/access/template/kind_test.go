package template

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestListCached(t *testing.T) {
	tests := map[string]struct {
		prepare  func(*fakeCluster)
		want     []string
		requests []string
	}{
		"a kind without a watch has no cached objects":     {prepare: func(*fakeCluster) {}},
		"a watched kind is read from the cache":            {func(w *fakeCluster) { w.watch(configMapKind); w.informer.Synced() }, []string{"cache"}, []string{"watch ConfigMap", "cache"}},
		"a kind whose informer stopped has none":           {func(w *fakeCluster) { w.watch(configMapKind); w.informer.Synced(); w.informer.stopped = true }, nil, []string{"watch ConfigMap"}},
		"a kind that is not watched any more has none too": {func(w *fakeCluster) { w.watch(configMapKind); w.informer.Synced(); unwatch(w) }, nil, []string{"watch ConfigMap"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newFakeCluster(t, configMap("cache"), configMap("server"), nil)
			test.prepare(w)
			listed, err := w.reader.ListCached(t.Context(), configMapKind)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i := range listed {
				got = append(got, sourceOf(&listed[i]))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.requests, w.requests); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

func unwatch(w *fakeCluster) {
	w.t.Helper()
	if err := w.reader.Unwatch(w.t.Context(), configMapKind); err != nil {
		w.t.Fatal(err)
	}
}
