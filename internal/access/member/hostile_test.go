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

// hostileMemory is how much memory one hostile member may cost.
const hostileMemory = 64 << 20

var configMapKind = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}

func opened(t *testing.T, name string, server *hostiletest.Member, limit time.Duration) *Member {
	t.Helper()
	alive := &liveness{lost: func(string) {}, recovered: func(string) {}}
	config := &rest.Config{Host: server.URL, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: server.CA()}}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return withinTime(limit, next) })
	m, err := open(t.Context(), name, config, nil, alive, &credentials{}, func(Event) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.close)
	return m
}

// heap is the memory that a garbage collection found in use, that of the test server
// included. What was allocated and dropped meanwhile is no cost of a member.
func heap() int64 {
	runtime.GC()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return int64(live[0].Value.Uint64()) //nolint:gosec // far below
}

// use does with a member what the controllers do.
func use(ctx context.Context, m *Member) {
	m.Probe(ctx)
	_, _ = m.Version()
	_, _, _ = m.APIs(ctx)
	_, _, _, _ = m.Inventory(nil)
	if m.Watch(ctx, configMapKind) == nil {
		m.AwaitSync(ctx, configMapKind, time.Millisecond)
	}
	_, _ = m.GetLive(ctx, configMapKind, client.ObjectKey{Namespace: "default", Name: "one"})
}

func marked(name string) *unstructured.Unstructured {
	object := objectOf(configMapKind)
	object.SetNamespace("default")
	object.SetName(name)
	object.SetLabels(map[string]string{workv1alpha1.ManagedByKarmadaLabel: workv1alpha1.ManagedByKarmadaLabelValue})
	return object
}

func TestAHostileMemberCostsLittleAndNoOtherMemberAnything(t *testing.T) {
	for name, tc := range map[string]struct {
		mode hostiletest.Mode
		want bounds.Bound
	}{
		"a huge list":                          {hostiletest.HugeList(), bounds.AnswerBytes},
		"an endless list":                      {hostiletest.EndlessList(), bounds.AnswerBytes},
		"a list of pages without end":          {hostiletest.EndlessPages(), bounds.Pages},
		"a list of many small values":          {hostiletest.DenseList(), bounds.JSONValues},
		"arrays in arrays":                     {hostiletest.NestedList(), bounds.JSONValues},
		"a list of nulls":                      {hostiletest.NullList(), bounds.JSONValues},
		"Pods of two bytes in protobuf":        {hostiletest.EmptyPods(), bounds.DecodedBytes},
		"containers of two bytes in an event":  {hostiletest.EmptyContainers(), bounds.DecodedBytes},
		"YAML instead of JSON":                 {hostiletest.YAMLDiscovery(), bounds.ObjectIdentity},
		"a gzip bomb":                          {hostiletest.GzipBomb(), bounds.AnswerBytes},
		"objects of another kind":              {hostiletest.WrongKind(), bounds.ObjectIdentity},
		"an endless event":                     {hostiletest.EndlessEvent(), bounds.EventBytes},
		"an endless event of many lines":       {hostiletest.EndlessMultilineEvent(), ""},
		"marked objects without end":           {hostiletest.EndlessManagedObjects(), bounds.Objects},
		"large marked objects without end":     {hostiletest.FatMarked(), bounds.ObjectBytes},
		"unmarked objects without end":         {hostiletest.EndlessUnlabeledObjects(), bounds.UnlabeledObjects},
		"another object than was asked for":    {hostiletest.WrongObject(), bounds.ObjectIdentity},
		"nodes without end":                    {hostiletest.EndlessNodes(), bounds.Nodes},
		"404 for everything":                   {hostiletest.NotFound(), ""},
		"groups without end":                   {hostiletest.HugeDiscovery(), bounds.GroupVersions},
		"a page instead of an API":             {hostiletest.HTML(), ""},
		"a huge error":                         {hostiletest.HugeError(), ""},
		"a huge header":                        {hostiletest.HugeHeader(), ""},
		"an answer that comes byte by byte":    {hostiletest.SlowAnswer(), ""},
		"a label that a second key takes away": {hostiletest.DuplicateKeys(), ""},
	} {
		t.Run(name, func(t *testing.T) {
			// What has no bound but time ends soon. A bound is met before the time is over,
			// also on a slow machine.
			limit := 2 * time.Second
			if tc.want != "" {
				limit = time.Minute
			}
			honest, hostile := hostiletest.New(t), hostiletest.New(t)
			good := opened(t, "good", honest, limit)
			use(t.Context(), good)
			before := heap()
			hostile.Turn(tc.mode)
			bad := opened(t, "bad", hostile, limit)
			// What waits for the member ends with this context, as a worker's does.
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			using := make(chan struct{})
			go func() {
				defer close(using)
				attempt, done := context.WithTimeout(ctx, time.Second)
				defer done()
				use(attempt, bad)
			}()
			peak := int64(0)
			err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) {
				peak = max(peak, heap()-before)
				if tc.want != "" {
					return hit(bad, tc.want), nil
				}
				select {
				case <-using:
					return true, nil
				default:
					return false, nil
				}
			})
			if err != nil {
				t.Errorf("the bound %q was not hit, but %v", tc.want, bad.Exceeded())
			}
			object := marked("delivered")
			if err := good.Client().Create(t.Context(), object); err != nil {
				t.Errorf("delivery to another member: %v", err)
			}
			if !good.AwaitSync(t.Context(), configMapKind, 10*time.Second) {
				t.Error("the cache of another member is not filled")
			}
			if peak = max(peak, heap()-before); peak > hostileMemory {
				t.Errorf("the member costs %d MiB of memory, want at most %d", peak>>20, hostileMemory>>20)
			}
			t.Logf("costs %d KiB", peak>>10)
			cancel()
			<-using
		})
	}
}

func hit(m *Member, bound bounds.Bound) bool {
	for _, exceeded := range m.Exceeded() {
		if exceeded.Bound == bound {
			return true
		}
	}
	return false
}

func TestA404ThatIsNotAboutTheObjectIsNoAbsence(t *testing.T) {
	server := hostiletest.New(t)
	m := opened(t, "m1", server, 2*time.Second)
	object := marked("one")
	if err := m.Client().Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKeyFromObject(object)
	if _, err := m.GetLive(t.Context(), configMapKind, client.ObjectKey{Namespace: "default", Name: "two"}); !apierrors.IsNotFound(err) {
		t.Errorf("an object that is not there: %v", err)
	}
	server.Turn(hostiletest.NotFound())
	for name, err := range map[string]error{
		"get": func() error { _, err := m.GetLive(t.Context(), configMapKind, key); return err }(),
		"put": m.Client().Update(t.Context(), object.DeepCopy()),
		"del": m.Client().Delete(t.Context(), object.DeepCopy()),
	} {
		if err == nil || apierrors.IsNotFound(err) {
			t.Errorf("%s: err = %v, want one that does not say that the object is gone", name, err)
		}
	}
}

func TestARedirectOfAMemberIsNotFollowed(t *testing.T) {
	var asked atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(elsewhere.Close)
	server := hostiletest.New(t)
	m := opened(t, "m1", server, 2*time.Second)
	use(t.Context(), m)
	server.Turn(hostiletest.Redirect(elsewhere.URL))
	object := marked("one")
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
		t.Errorf("%d requests went elsewhere", asked.Load())
	}
}

func TestErrorsOfAMemberAreShortAndPrintable(t *testing.T) {
	server := hostiletest.New(t)
	m := opened(t, "m1", server, 2*time.Second)
	use(t.Context(), m)
	for name, mode := range map[string]hostiletest.Mode{"huge": hostiletest.HugeError(), "with escapes": hostiletest.EscapedError()} {
		t.Run(name, func(t *testing.T) {
			server.Turn(mode)
			err := m.Client().Create(t.Context(), marked("one"))
			if !apierrors.IsForbidden(err) {
				t.Fatalf("err = %v, want Forbidden", err)
			}
			if text := err.Error(); len(text) > 4096 || strings.ContainsAny(text, "\x1b\a") {
				t.Errorf("the error has %d bytes: %.200q", len(text), text)
			}
		})
	}
}

// TestAClusterScopedObjectIsNoOtherObject asks for an object of a namespace where its
// kind has no namespaces. Whether the object that answers may be touched is for the
// caller to judge by its marks; the member told no lie.
func TestAClusterScopedObjectIsNoOtherObject(t *testing.T) {
	server := hostiletest.New(t)
	m := opened(t, "m1", server, 2*time.Second)
	kind := schema.GroupVersionKind{Version: "v1", Kind: "Node"}
	node := objectOf(kind)
	node.SetName("one")
	if err := m.Client().Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	found, err := m.Find(t.Context(), kind, client.ObjectKey{Namespace: "shop", Name: "one"})
	if err != nil || found == nil || found.GetNamespace() != "" || hit(m, bounds.ObjectIdentity) {
		t.Errorf("found %v, error %v, bound hit: %t", found, err, hit(m, bounds.ObjectIdentity))
	}
	if namespaced, err := m.Namespaced(kind); err != nil || namespaced {
		t.Errorf("namespaced: %t, error %v", namespaced, err)
	}
}
