package template

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
)

var (
	configMapKind = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	nodeKind      = corev1.SchemeGroupVersion.WithKind("Node")
	settingsKey   = types.NamespacedName{Namespace: "shop", Name: "settings"}
)

// fakeCluster is a cache and an API server. Their contents may differ.
type fakeCluster struct {
	client.Reader
	t        *testing.T
	informer *informer
	requests []string
	*wrappedReader
}

// wrappedReader hides the methods of Reader, because some of them have the same names as methods of
// the cache.
type wrappedReader struct{ reader *Reader }

type informer struct {
	*controllertest.FakeInformer
	stopped bool
}

func (i *informer) IsStopped() bool { return i.stopped }

func (f *fakeCluster) GetInformer(_ context.Context, of client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	if f.informer == nil {
		f.requests = append(f.requests, "watch "+of.GetObjectKind().GroupVersionKind().Kind)
		f.informer = &informer{FakeInformer: controllertest.NewFakeInformer()}
	}
	return f.informer, nil
}

func (f *fakeCluster) RemoveInformer(context.Context, client.Object) error {
	f.informer.stopped = true
	f.informer = nil
	return nil
}

// newFakeCluster stores one object in the cache and one in the API server. A nil object is not
// stored. If failure is set, the cache and the API server return it for every read.
func newFakeCluster(t *testing.T, cached, live client.Object, failure error) *fakeCluster {
	t.Helper()
	w := &fakeCluster{t: t}
	store := func(name string, holds client.Object) client.Reader {
		builder := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, o ...client.GetOption) error {
				w.requests = append(w.requests, name)
				if failure != nil {
					return failure
				}
				if object.GetObjectKind().GroupVersionKind() == nodeKind {
					key.Namespace = "" // the path of a request has no namespace
				}
				return c.Get(ctx, key, object, o...)
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
				w.requests = append(w.requests, name)
				if failure != nil {
					return failure
				}
				return c.List(ctx, list, o...)
			},
		})
		if holds != nil {
			builder = builder.WithObjects(holds)
		}
		return builder.Build()
	}
	w.Reader = store("cache", cached)
	w.wrappedReader = &wrappedReader{NewReader(w, store("server", live))}
	return w
}

func (f *fakeCluster) watch(kind schema.GroupVersionKind) {
	f.t.Helper()
	if _, err := f.reader.Watch(f.t.Context(), kind); err != nil {
		f.t.Fatal(err)
	}
}

func configMap(version string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: settingsKey.Namespace, Name: settingsKey.Name, Labels: map[string]string{"of": version},
	}}
}

func sourceOf(object *unstructured.Unstructured) string {
	if object == nil {
		return ""
	}
	return object.GetLabels()["of"]
}

func TestReadFromCacheOrServer(t *testing.T) {
	unwatched := func(*fakeCluster) {}
	complete := func(w *fakeCluster) { w.watch(configMapKind); w.informer.Synced() }
	tests := map[string]struct {
		cached, live client.Object
		prepare      func(*fakeCluster)
		read         func(*Reader, context.Context, schema.GroupVersionKind, types.NamespacedName) (*unstructured.Unstructured, error)
		want         string
		requests     []string
	}{
		"a kind without a watch is read from the server": {
			configMap("cache"), configMap("server"), unwatched, (*Reader).Get, "server", []string{"server"},
		},
		"a watched kind is read from the cache": {
			configMap("cache"), configMap("server"), complete, (*Reader).Get, "cache", []string{"watch ConfigMap", "cache"},
		},
		"an object that is not cached is read from the server": {
			nil, configMap("server"), complete, (*Reader).Get, "server", []string{"watch ConfigMap", "cache", "server"},
		},
		"an object that is not cached is absent for a cached read": {
			nil, configMap("server"), complete, (*Reader).GetCached, "", []string{"watch ConfigMap", "cache"},
		},
		"an object that does not exist is one request": {
			nil, nil, unwatched, (*Reader).Get, "", []string{"server"},
		},
		"a live read ignores the cache": {
			configMap("cache"), configMap("server"), complete, (*Reader).GetLive, "server", []string{"watch ConfigMap", "server"},
		},
		"a kind after Unwatch is read from the server": {
			configMap("cache"), configMap("server"), func(w *fakeCluster) {
				complete(w)
				if err := w.reader.Unwatch(w.t.Context(), configMapKind); err != nil {
					w.t.Fatal(err)
				}
			}, (*Reader).Get, "server", []string{"watch ConfigMap", "server"},
		},
		"a kind whose informer stopped is read from the server": {
			configMap("cache"), configMap("server"), func(w *fakeCluster) { complete(w); w.informer.stopped = true },
			(*Reader).GetCached, "server", []string{"watch ConfigMap", "server"},
		},
		"a kind that is watched again is read from the cache": {
			configMap("cache"), configMap("server"), func(w *fakeCluster) {
				complete(w)
				if err := w.reader.Unwatch(w.t.Context(), configMapKind); err != nil {
					w.t.Fatal(err)
				}
				complete(w)
			}, (*Reader).Get, "cache", []string{"watch ConfigMap", "watch ConfigMap", "cache"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newFakeCluster(t, tc.cached, tc.live, nil)
			tc.prepare(w)
			found, err := tc.read(w.reader, t.Context(), configMapKind, settingsKey)
			if err != nil {
				t.Fatal(err)
			}
			if got := sourceOf(found); got != tc.want {
				t.Errorf("read from %q, want %q", got, tc.want)
			}
			if diff := cmp.Diff(tc.requests, w.requests); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAbsentObjectIsNotAnError(t *testing.T) {
	broken := errors.New("connection refused")
	tests := map[string]struct {
		live    client.Object
		failure error
		kind    schema.GroupVersionKind
		want    error
	}{
		"no such object":                     {kind: configMapKind},
		"a kind that is not served":          {failure: &meta.NoKindMatchError{GroupKind: configMapKind.GroupKind()}, kind: configMapKind},
		"a response NotFound":                {failure: apierrors.NewNotFound(schema.GroupResource{}, "settings"), kind: configMapKind},
		"a server that does not answer":      {failure: broken, kind: configMapKind, want: broken},
		"an object of a cluster-scoped kind": {live: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}, kind: nodeKind},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newFakeCluster(t, nil, tc.live, tc.failure)
			found, err := w.reader.Get(t.Context(), tc.kind, settingsKey)
			if found != nil || !errors.Is(err, tc.want) {
				t.Errorf("read %v, %v; want nothing, %v", found, err, tc.want)
			}
			listed, err := w.reader.List(t.Context(), tc.kind, "shop", labels.Everything())
			if len(listed) != 0 || !errors.Is(err, tc.want) {
				t.Errorf("listed %v, %v; want nothing, %v", listed, err, tc.want)
			}
		})
	}
}

func TestListByNamespace(t *testing.T) {
	tests := map[string]struct {
		namespace string
		selector  labels.Selector
		watched   bool
		want      []string
	}{
		"in the namespace":                 {namespace: "shop", selector: labels.Everything(), want: []string{"server"}},
		"in the namespace, from the cache": {namespace: "shop", selector: labels.Everything(), watched: true, want: []string{"cache"}},
		"in another namespace":             {namespace: "other", selector: labels.Everything()},
		"without namespace":                {selector: labels.Everything()},
		"not selected":                     {namespace: "shop", selector: labels.Nothing()},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newFakeCluster(t, configMap("cache"), configMap("server"), nil)
			if tc.watched {
				w.watch(configMapKind)
				w.informer.Synced()
			}
			listed, err := w.reader.List(t.Context(), configMapKind, tc.namespace, tc.selector)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, each := range listed {
				got = append(got, sourceOf(each))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("listed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMissingFirstListDelaysReadersOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFakeCluster(t, configMap("cache"), configMap("server"), nil)
		w.watch(configMapKind)
		started := time.Now()
		for range 10 {
			w.watch(configMapKind) // watching again does not extend the deadline
			if _, err := w.reader.Get(t.Context(), configMapKind, settingsKey); err != nil {
				t.Fatal(err)
			}
		}
		if waited := time.Since(started); waited != firstListTimeout {
			t.Errorf("ten reads took %s, want %s in total", waited, firstListTimeout)
		}
		if slices.Contains(w.requests, "cache") {
			t.Error("an incomplete cache was read")
		}
	})
}

func TestReaderWaitsForFirstList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFakeCluster(t, configMap("cache"), configMap("server"), nil)
		w.watch(configMapKind)
		arrives := time.AfterFunc(time.Second, w.informer.Synced)
		defer arrives.Stop()
		started := time.Now()
		found, err := w.reader.Get(t.Context(), configMapKind, settingsKey)
		if waited := time.Since(started); err != nil || sourceOf(found) != "cache" || waited != time.Second {
			t.Errorf("read from %q after %s, %v", sourceOf(found), waited, err)
		}
	})
}

func TestRequestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
			Get: func(ctx context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
				<-ctx.Done()
				return ctx.Err()
			},
		})
		started := time.Now()
		_, err := NewReader(nil, hangs).Get(t.Context(), configMapKind, settingsKey)
		if waited := time.Since(started); waited != requestTimeout || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ended after %s with %v", waited, err)
		}
	})
}
