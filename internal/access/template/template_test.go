package template

import (
	"context"
	"errors"
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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"karmada.io/karmada/internal/access/watches"
	"karmada.io/karmada/internal/access/watches/watchestest"
)

var (
	configMapKind = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	nodeKind      = corev1.SchemeGroupVersion.WithKind("Node")
	settingsKey   = types.NamespacedName{Namespace: "shop", Name: "settings"}
)

// storeOf returns a client of an API server that contains at most one object. failure is the response
// to every request.
func storeOf(object client.Object, failure error) client.WithWatch {
	builder := fake.NewClientBuilder()
	if object != nil {
		builder = builder.WithObjects(object)
	}
	return builder.WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, o ...client.GetOption) error {
			if failure != nil {
				return failure
			}
			if object.GetObjectKind().GroupVersionKind() == nodeKind {
				key.Namespace = "" // the path of the request has no namespace
			}
			return c.Get(ctx, key, object, o...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
			if failure != nil {
				return failure
			}
			return c.List(ctx, list, o...)
		},
	}).Build()
}

func configMap(source string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: settingsKey.Namespace, Name: settingsKey.Name, Labels: map[string]string{"of": source},
	}}
}

func sourceOf(object *unstructured.Unstructured) string { return object.GetLabels()["of"] }

// newReader returns a reader whose watches contain watched and whose API server contains live.
func newReader(t *testing.T, watched, live client.Object, isWatched bool) (*Reader, *watches.Manager) {
	t.Helper()
	manager := watchestest.NewManager(t.Context(), storeOf(watched, nil))
	if isWatched {
		startWatch(t, manager)
	}
	return NewReader(manager, storeOf(live, nil)), manager
}

func startWatch(t *testing.T, manager *watches.Manager) {
	t.Helper()
	if _, err := manager.Subscribe(watches.ControlPlane, watches.Query{Kind: configMapKind}, watches.Subscriber{}); err != nil {
		t.Fatal(err)
	}
}

func TestReadFromWatchOrServer(t *testing.T) {
	type read func(*Reader, context.Context, schema.GroupVersionKind, types.NamespacedName) (*unstructured.Unstructured, error)
	tests := map[string]struct {
		watched, live client.Object
		isWatched     bool
		read          read
		want          string
	}{
		"a kind without a watch":                           {configMap("watch"), configMap("server"), false, (*Reader).Get, "server"},
		"a watched kind":                                   {configMap("watch"), configMap("server"), true, (*Reader).Get, "watch"},
		"an object that the watch does not contain":        {nil, configMap("server"), true, (*Reader).Get, "server"},
		"a cached read that the watch does not contain":    {nil, configMap("server"), true, (*Reader).GetCached, ""},
		"a cached read of a kind without a watch":          {nil, configMap("server"), false, (*Reader).GetCached, "server"},
		"an object that does not exist":                    {nil, nil, true, (*Reader).Get, ""},
		"a live read of a watched kind":                    {configMap("watch"), configMap("server"), true, (*Reader).GetLive, "server"},
		"a live read of an object that only the watch has": {configMap("watch"), nil, true, (*Reader).GetLive, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			reader, _ := newReader(t, test.watched, test.live, test.isWatched)
			found, err := test.read(reader, t.Context(), configMapKind, settingsKey)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if found != nil {
				got = sourceOf(found)
			}
			if got != test.want {
				t.Errorf("read from %q, want %q", got, test.want)
			}
		})
	}
}

func TestGetListedDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unwatched, _ := newReader(t, configMap("watch"), configMap("server"), false)
		if found := unwatched.GetListed(configMapKind, settingsKey); found != nil {
			t.Errorf("read %v of a kind without a watch", found)
		}
		watched, _ := newReader(t, configMap("watch"), configMap("server"), true)
		start := time.Now()
		if found := watched.GetListed(configMapKind, settingsKey); found != nil && sourceOf(found) != "watch" || time.Since(start) > 0 {
			t.Errorf("read %v after %s", found, time.Since(start))
		}
		synctest.Wait()
		if found := watched.GetListed(configMapKind, settingsKey); found == nil || sourceOf(found) != "watch" {
			t.Errorf("read %v after the first list", found)
		}
	})
}

func TestMissingObjectIsNotAnError(t *testing.T) {
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
		"a server that does not respond":     {failure: broken, kind: configMapKind, want: broken},
		"an object of a cluster-scoped kind": {live: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}, kind: nodeKind},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			reader := NewReader(nil, storeOf(test.live, test.failure))
			found, err := reader.Get(t.Context(), test.kind, settingsKey)
			if found != nil || !errors.Is(err, test.want) {
				t.Errorf("read %v, %v; want nothing, %v", found, err, test.want)
			}
			listed, err := reader.List(t.Context(), test.kind, "shop", labels.Everything())
			if len(listed) != 0 || !errors.Is(err, test.want) {
				t.Errorf("listed %v, %v; want nothing, %v", listed, err, test.want)
			}
		})
	}
}

func TestList(t *testing.T) {
	tests := map[string]struct {
		namespace string
		selector  labels.Selector
		isWatched bool
		want      []string
	}{
		"in the namespace":                 {namespace: "shop", selector: labels.Everything(), want: []string{"server"}},
		"in the namespace, from the watch": {namespace: "shop", selector: labels.Everything(), isWatched: true, want: []string{"watch"}},
		"in another namespace":             {namespace: "other", selector: labels.Everything()},
		"without namespace":                {selector: labels.Everything()},
		"without namespace, watched":       {selector: labels.Everything(), isWatched: true},
		"not selected":                     {namespace: "shop", selector: labels.Nothing()},
		"not selected, watched":            {namespace: "shop", selector: labels.Nothing(), isWatched: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			reader, _ := newReader(t, configMap("watch"), configMap("server"), test.isWatched)
			listed, err := reader.List(t.Context(), configMapKind, test.namespace, test.selector)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, each := range listed {
				got = append(got, sourceOf(each))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("listed (-want +got):\n%s", diff)
			}
			if cached := reader.ListCached(t.Context(), configMapKind); len(cached) == 1 != test.isWatched {
				t.Errorf("%d objects from the watch", len(cached))
			}
		})
	}
}

func TestReadersWaitForFirstListOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		manager := watches.NewManager(t.Context())
		reader := NewReader(manager, storeOf(configMap("server"), nil))
		startWatch(t, manager)
		started := time.Now()
		for range 10 {
			found, err := reader.Get(t.Context(), configMapKind, settingsKey)
			if err != nil || sourceOf(found) != "server" {
				t.Fatalf("read %v, %v", found, err)
			}
		}
		if waited := time.Since(started); waited != firstListTimeout {
			t.Errorf("ten reads took %s, want %s in total", waited, firstListTimeout)
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
