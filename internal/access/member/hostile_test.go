package member

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/access/member/bounds"
	"karmada.io/karmada/internal/access/member/hostiletest"
)

// maxHostileMemory is the maximum memory, in bytes, that one hostile member may cause the process
// to use.
const maxHostileMemory = 64 << 20

var configMapKind = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}

func openWithTimeout(t *testing.T, name string, server *hostiletest.Member, limit time.Duration) *Member {
	t.Helper()
	config := &rest.Config{Host: server.URL, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: server.CA()}}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return withTimeout(limit, next) })
	return openWith(t, name, config, &managedWatches{})
}

// liveHeapBytes returns the memory in use after a garbage collection, including the memory of the
// test server. Memory that was allocated and freed before does not count.
func liveHeapBytes() int64 {
	runtime.GC()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return int64(live[0].Value.Uint64()) // far below
}

// exerciseMember sends the same requests to a member as the controllers do.
func exerciseMember(ctx context.Context, m *Member) {
	m.Probe(ctx)
	_, _ = m.Version()
	_, _, _ = m.APIs(ctx)
	_, _, _, _ = m.Inventory(nil)
	if m.Watch(configMapKind) == nil {
		m.WaitForList(ctx, configMapKind, time.Millisecond)
	}
	_, _ = m.GetLive(ctx, configMapKind, client.ObjectKey{Namespace: "default", Name: "one"})
}

func managedConfigMap(name string) *unstructured.Unstructured {
	object := newObject(configMapKind)
	object.SetNamespace("default")
	object.SetName(name)
	object.SetLabels(map[string]string{workv1alpha1.ManagedByKarmadaLabel: workv1alpha1.ManagedByKarmadaLabelValue})
	return object
}

func TestHostileMemberIsBounded(t *testing.T) {
	for name, tc := range map[string]struct {
		mode hostiletest.Mode
		want bounds.Bound
	}{
		"a huge list":                           {hostiletest.HugeList(), bounds.AnswerBytes},
		"an endless list":                       {hostiletest.EndlessList(), bounds.AnswerBytes},
		"an endless list of empty pages":        {hostiletest.EndlessPages(), bounds.Pages},
		"a list of many small values":           {hostiletest.DenseList(), bounds.JSONValues},
		"arrays in arrays":                      {hostiletest.NestedList(), bounds.JSONValues},
		"a list of nulls":                       {hostiletest.NullList(), bounds.JSONValues},
		"Pods of two bytes in protobuf":         {hostiletest.EmptyPods(), bounds.DecodedBytes},
		"containers of two bytes in an event":   {hostiletest.EmptyContainers(), bounds.DecodedBytes},
		"YAML instead of JSON":                  {hostiletest.YAMLDiscovery(), bounds.ObjectIdentity},
		"a gzip bomb":                           {hostiletest.GzipBomb(), bounds.AnswerBytes},
		"objects of another kind":               {hostiletest.WrongKind(), bounds.ObjectIdentity},
		"an endless event":                      {hostiletest.EndlessEvent(), bounds.EventBytes},
		"an endless event of many lines":        {hostiletest.EndlessMultilineEvent(), ""},
		"endless managed objects":               {hostiletest.EndlessManagedObjects(), bounds.Objects},
		"endless large managed objects":         {hostiletest.EndlessLargeManagedObjects(), bounds.ObjectBytes},
		"endless unlabeled objects":             {hostiletest.EndlessUnlabeledObjects(), bounds.UnlabeledObjects},
		"another object than the requested one": {hostiletest.WrongObject(), bounds.ObjectIdentity},
		"endless nodes":                         {hostiletest.EndlessNodes(), bounds.Nodes},
		"404 for everything":                    {hostiletest.NotFound(), ""},
		"endless groups":                        {hostiletest.HugeDiscovery(), bounds.GroupVersions},
		"a web page instead of an API":          {hostiletest.HTML(), ""},
		"a huge error":                          {hostiletest.HugeError(), ""},
		"a huge header":                         {hostiletest.HugeHeader(), ""},
		"an answer sent byte by byte":           {hostiletest.SlowAnswer(), ""},
		"a label that a duplicate key removes":  {hostiletest.DuplicateKeys(), ""},
	} {
		t.Run(name, func(t *testing.T) {
			// If no bound is expected, the request ends after a short timeout. If a bound is
			// expected, the timeout is long, so that the bound is reached first even on a slow
			// machine.
			limit := time.Second
			if tc.want != "" {
				limit = time.Minute
			}
			honest, hostile := hostiletest.New(t), hostiletest.New(t)
			good := openWithTimeout(t, "good", honest, time.Minute)
			exerciseMember(t.Context(), good)
			before := liveHeapBytes()
			hostile.SetMode(tc.mode)
			bad := openWithTimeout(t, "bad", hostile, limit)
			// Requests to the member end when this context ends.
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			using := make(chan struct{})
			go func() {
				defer close(using)
				attempt, done := context.WithTimeout(ctx, time.Second)
				defer done()
				exerciseMember(attempt, bad)
			}()
			peak := int64(0)
			err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(context.Context) (bool, error) {
				peak = max(peak, liveHeapBytes()-before)
				if tc.want != "" {
					return hasExceeded(bad, tc.want), nil
				}
				select {
				case <-using:
					return true, nil
				default:
					return false, nil
				}
			})
			if err != nil {
				t.Errorf("the bound %q was not exceeded, but %v", tc.want, bad.ExceededBounds())
			}
			object := managedConfigMap("delivered")
			if err := good.Client().Create(t.Context(), object); err != nil {
				t.Errorf("delivery to another member: %v", err)
			}
			if !good.WaitForList(t.Context(), configMapKind, 10*time.Second) {
				t.Error("the cache of another member is not filled")
			}
			if peak = max(peak, liveHeapBytes()-before); peak > maxHostileMemory {
				t.Errorf("the member costs %d MiB of memory, want at most %d", peak>>20, maxHostileMemory>>20)
			}
			t.Logf("memory cost: %d KiB", peak>>10)
			cancel()
			<-using
		})
	}
}

func hasExceeded(m *Member, bound bounds.Bound) bool {
	for _, exceeded := range m.ExceededBounds() {
		if exceeded.Bound == bound {
			return true
		}
	}
	return false
}

func Test404WithoutObjectIsNotNotFound(t *testing.T) {
	server := hostiletest.New(t)
	m := openWithTimeout(t, "m1", server, 2*time.Second)
	object := managedConfigMap("one")
	if err := m.Client().Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKeyFromObject(object)
	if _, err := m.GetLive(t.Context(), configMapKind, client.ObjectKey{Namespace: "default", Name: "two"}); !apierrors.IsNotFound(err) {
		t.Errorf("an object that does not exist: %v", err)
	}
	server.SetMode(hostiletest.NotFound())
	for name, err := range map[string]error{
		"get": func() error { _, err := m.GetLive(t.Context(), configMapKind, key); return err }(),
		"put": m.Client().Update(t.Context(), object.DeepCopy()),
		"del": m.Client().Delete(t.Context(), object.DeepCopy()),
	} {
		if err == nil || apierrors.IsNotFound(err) {
			t.Errorf("%s: err = %v, want an error other than NotFound", name, err)
		}
	}
}

func TestMemberRedirectIsRejected(t *testing.T) {
	var asked atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(elsewhere.Close)
	server := hostiletest.New(t)
	m := openWithTimeout(t, "m1", server, 2*time.Second)
	exerciseMember(t.Context(), m)
	server.SetMode(hostiletest.Redirect(elsewhere.URL))
	object := managedConfigMap("one")
	for name, err := range map[string]error{
		"get": func() error {
			_, err := m.GetLive(t.Context(), configMapKind, client.ObjectKeyFromObject(object))
			return err
		}(),
		"create": m.Client().Create(t.Context(), object),
		"delete": m.Client().Delete(t.Context(), object),
	} {
		var exceeded *bounds.ExceededError
		if !errors.As(err, &exceeded) || exceeded.Bound != bounds.Redirect || exceeded.Cluster != "m1" {
			t.Errorf("%s: err = %v", name, err)
		}
	}
	if asked.Load() != 0 {
		t.Errorf("%d requests followed the redirect", asked.Load())
	}
}

func TestMemberErrorsAreShortAndPrintable(t *testing.T) {
	server := hostiletest.New(t)
	m := openWithTimeout(t, "m1", server, 2*time.Second)
	exerciseMember(t.Context(), m)
	for name, mode := range map[string]hostiletest.Mode{"huge": hostiletest.HugeError(), "with escapes": hostiletest.EscapedError()} {
		t.Run(name, func(t *testing.T) {
			server.SetMode(mode)
			err := m.Client().Create(t.Context(), managedConfigMap("one"))
			if !apierrors.IsForbidden(err) {
				t.Fatalf("err = %v, want Forbidden", err)
			}
			if text := err.Error(); len(text) > 4096 || strings.ContainsAny(text, "\x1b\a") {
				t.Errorf("the error has %d bytes: %.200q", len(text), text)
			}
		})
	}
}

// TestClusterScopedObjectIsNoWrongObject reads an object with a namespace although its kind is
// cluster-scoped. The response of the member is correct, so no wrong object is recorded. The caller
// decides from the labels of the object whether the object may be changed.
func TestClusterScopedObjectIsNoWrongObject(t *testing.T) {
	server := hostiletest.New(t)
	m := openWithTimeout(t, "m1", server, 2*time.Second)
	kind := schema.GroupVersionKind{Version: "v1", Kind: "Node"}
	node := newObject(kind)
	node.SetName("one")
	if err := m.Client().Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	found, err := m.FindInAnyVersion(t.Context(), kind, client.ObjectKey{Namespace: "shop", Name: "one"})
	if err != nil || found == nil || found.GetNamespace() != "" || hasExceeded(m, bounds.ObjectIdentity) {
		t.Errorf("found %v, error %v, bound exceeded: %t", found, err, hasExceeded(m, bounds.ObjectIdentity))
	}
	if namespaced, err := m.IsNamespaced(kind); err != nil || namespaced {
		t.Errorf("namespaced: %t, error %v", namespaced, err)
	}
}
