package objectcache_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/access/member/hostiletest"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/servers/search/objectcache"
)

// patience is how long a test waits for an expected state.
const patience = time.Minute

// control is a control plane with a cache.
type control struct {
	t       testing.TB
	karmada client.Client
	cache   *objectcache.Cache
}

func newControl(t testing.TB, options objectcache.Options, objects ...client.Object) *control {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), clusterv1alpha1.AddToScheme(scheme), searchv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: "token"}, Data: map[string][]byte{"token": []byte("t")}}
	c := &control{t: t, karmada: fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(objects, secret)...).Build()}
	ctx, cancel := context.WithCancel(context.Background())
	members := member.NewClusters(ctx, member.Options{Karmada: c.karmada, Secrets: c.karmada})
	options.Karmada, options.Members = c.karmada, members
	options.Retry = loop.Backoff{Base: time.Millisecond, Max: 20 * time.Millisecond}
	var err error
	if c.cache, err = objectcache.New(options); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.cache.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		clusters := &clusterv1alpha1.ClusterList{}
		if err := c.karmada.List(context.Background(), clusters); err != nil {
			t.Error(err)
		}
		for _, cluster := range clusters.Items {
			members.CloseMember(cluster.Name)
		}
	})
	return c
}

func clusterOf(name, address string) *clusterv1alpha1.Cluster {
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	cluster.Spec = clusterv1alpha1.ClusterSpec{
		SyncMode: clusterv1alpha1.Push, APIEndpoint: address, InsecureSkipTLSVerification: true,
		SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: "token"},
	}
	cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue}}
	setKinds(cluster, "ConfigMap", "Secret", "Node")
	return cluster
}

// setKinds sets the complete list of kinds of a cluster.
func setKinds(cluster *clusterv1alpha1.Cluster, kinds ...string) {
	cluster.Status.Conditions = append(cluster.Status.Conditions[:1],
		metav1.Condition{Type: clusterv1alpha1.ClusterConditionCompleteAPIEnablements, Status: metav1.ConditionTrue})
	enablement := clusterv1alpha1.APIEnablement{GroupVersion: "v1"}
	for _, kind := range kinds {
		enablement.Resources = append(enablement.Resources, clusterv1alpha1.APIResource{Name: strings.ToLower(kind) + "s", Kind: kind})
	}
	cluster.Status.APIEnablements = []clusterv1alpha1.APIEnablement{enablement}
}

func setReady(cluster *clusterv1alpha1.Cluster, status metav1.ConditionStatus) {
	cluster.Status.Conditions[0].Status = status
	cluster.Status.Conditions[0].Reason = "Test"
}

// registryOf returns a registry of kinds of v1.
func registryOf(name string, kinds ...string) *searchv1alpha1.ResourceRegistry {
	registry := &searchv1alpha1.ResourceRegistry{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, kind := range kinds {
		registry.Spec.ResourceSelectors = append(registry.Spec.ResourceSelectors, searchv1alpha1.ResourceSelector{APIVersion: "v1", Kind: kind})
	}
	return registry
}

func changeObject[T client.Object](c *control, name string, object T, change func(T)) {
	c.t.Helper()
	if err := c.karmada.Get(context.Background(), types.NamespacedName{Name: name}, object); err != nil {
		c.t.Fatal(err)
	}
	change(object)
	if err := c.karmada.Update(context.Background(), object); err != nil {
		c.t.Fatal(err)
	}
}

func (c *control) changeCluster(name string, change func(*clusterv1alpha1.Cluster)) {
	c.t.Helper()
	changeObject(c, name, &clusterv1alpha1.Cluster{}, change)
	c.cache.NotifyCluster(name)
}

func (c *control) changeRegistry(name string, change func(*searchv1alpha1.ResourceRegistry)) {
	c.t.Helper()
	changeObject(c, name, &searchv1alpha1.ResourceRegistry{}, change)
	c.cache.NotifyRegistry(name)
}

func (c *control) delete(object client.Object) {
	c.t.Helper()
	if err := c.karmada.Delete(context.Background(), object); err != nil {
		c.t.Fatal(err)
	}
}

// eventually waits until a check returns "".
func (c *control) eventually(check func() string) {
	c.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	// Changes of objects close no channel.
	poll := time.NewTicker(2 * time.Millisecond)
	defer poll.Stop()
	for {
		problem := check()
		if problem == "" {
			return
		}
		select {
		case <-poll.C:
		case <-deadline.C:
			c.t.Fatalf("%s\nreport: %+v", problem, c.cache.Report())
		}
	}
}

// source returns the objects of a kind of v1 in a cluster, or nil.
func (c *control) source(cluster, kind string) *objectcache.ClusterObjects {
	k := c.cache.KindOf(schema.GroupVersionKind{Version: "v1", Kind: kind})
	if k == nil {
		return nil
	}
	return k.Snapshot().Cluster(cluster)
}

// expect waits until a source has a state and objects, each as "namespace/name=value".
func (c *control) expect(cluster, kind string, state objectcache.State, objects ...string) {
	c.t.Helper()
	c.eventually(func() string {
		source := c.source(cluster, kind)
		if source == nil {
			return fmt.Sprintf("%s of %s is not cached", kind, cluster)
		}
		got, _, reason := source.State()
		if got != state {
			return fmt.Sprintf("%s of %s is %s (%s), want %s", kind, cluster, got, reason, state)
		}
		values := []string{}
		for object := range source.All("") {
			values = append(values, object.Namespace()+"/"+object.Name()+"="+object.Labels().Get("value"))
		}
		return cmp.Diff(append([]string{}, objects...), values)
	})
}

func (c *control) expectReason(cluster, kind, reason string) {
	c.t.Helper()
	c.eventually(func() string {
		for _, report := range c.cache.Report() {
			if report.Cluster == cluster && report.Kind == kind && strings.Contains(report.Message, reason) {
				return ""
			}
		}
		return fmt.Sprintf("no reason %q for %s of %s", reason, kind, cluster)
	})
}

func TestObjectsOfMembersAreCachedAndFollowed(t *testing.T) {
	m := newFakeMember(t)
	for i := range 7 {
		m.put("configmaps", "default", fmt.Sprintf("c%d", i), "old")
	}
	m.put("nodes", "", "n1", "a")
	c := newControl(t, objectcache.Options{PageSize: 3}, clusterOf("m1", m.URL), registryOf("all", "ConfigMap", "Node"))
	if missing := c.cache.WaitForSync(t.Context(), patience); len(missing) > 0 {
		t.Fatalf("not listed: %+v", missing)
	}
	c.expect("m1", "Node", objectcache.Current, "/n1=a")
	m.put("configmaps", "default", "c1", "new")
	m.remove("configmaps", "default", "c0")
	c.expect("m1", "ConfigMap", objectcache.Current,
		"default/c1=new", "default/c2=old", "default/c3=old", "default/c4=old", "default/c5=old", "default/c6=old")
	object, err := c.source("m1", "ConfigMap").Get("default", "c1").Decode()
	if err != nil {
		t.Fatal(err)
	}
	if object.GetAnnotations()[clusterv1alpha1.CachedFromClusterAnnotation] != "m1" || object.GetManagedFields() != nil {
		t.Errorf("metadata of the cached object: %v", object.Object["metadata"])
	}
	if kind := c.cache.Kind(schema.GroupVersionResource{Version: "v1", Resource: "nodes"}); kind == nil || kind.Namespaced() {
		t.Error("nodes must be cached as a kind without namespaces")
	}
	version := m.bookmark("configmaps")
	c.eventually(func() string { return cmp.Diff(version, c.source("m1", "ConfigMap").ResourceVersion()) })
}

func TestABrokenWatchYieldsOnlyDifferences(t *testing.T) {
	tests := map[string]struct {
		interrupt func(m *fakeMember)
		want      []string
	}{
		"after a broken connection the watch continues": {
			func(m *fakeMember) { m.breakWatches(false) }, []string{"Modified b", "Deleted a", "Added c"},
		},
		"after a compaction the objects are listed": {
			func(m *fakeMember) { m.breakWatches(true) }, []string{"Modified b", "Added c", "Deleted a"},
		},
		"after a restored etcd the numbering restarts": {
			func(m *fakeMember) { m.restore(90) }, []string{"Reset ", "Added c", "Modified b", "Deleted a"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := newFakeMember(t)
			m.put("configmaps", "default", "a", "1")
			m.put("configmaps", "default", "b", "1")
			m.put("configmaps", "default", "kept", "1")
			c := newControl(t, objectcache.Options{}, clusterOf("m1", m.URL), registryOf("all", "ConfigMap"))
			c.expect("m1", "ConfigMap", objectcache.Current, "default/a=1", "default/b=1", "default/kept=1")
			kind := c.cache.KindOf(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
			cursor := kind.Follow(kind.Snapshot().Position())
			m.awaitWatch(t, "configmaps")
			m.setRefusal(http.StatusServiceUnavailable)
			m.put("configmaps", "default", "b", "2")
			m.remove("configmaps", "default", "a")
			m.put("configmaps", "default", "c", "1")
			test.interrupt(m)
			m.setRefusal(0)
			c.expect("m1", "ConfigMap", objectcache.Current, "default/b=2", "default/c=1", "default/kept=1")
			events, err := readAll(cursor)
			if err != nil {
				t.Fatal(err)
			}
			got := []string{}
			for _, e := range events {
				got = append(got, fmt.Sprintf("%s %s", e.Type, nameOf(e)))
			}
			slices.Sort(got)
			slices.Sort(test.want)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func nameOf(e objectcache.Event) string {
	switch {
	case e.New != nil:
		return e.New.Name()
	case e.Old != nil:
		return e.Old.Name()
	}
	return ""
}

func TestReadinessStopsAndStartsWatches(t *testing.T) {
	m := newFakeMember(t)
	m.put("configmaps", "default", "a", "1")
	c := newControl(t, objectcache.Options{}, clusterOf("m1", m.URL), registryOf("all", "ConfigMap"))
	c.expect("m1", "ConfigMap", objectcache.Current, "default/a=1")
	c.changeCluster("m1", func(c *clusterv1alpha1.Cluster) { setReady(c, metav1.ConditionFalse) })
	c.expect("m1", "ConfigMap", objectcache.Stale, "default/a=1")
	c.expectReason("m1", "ConfigMap", `cluster "m1" is not ready`)
	m.put("configmaps", "default", "b", "1")
	c.changeCluster("m1", func(c *clusterv1alpha1.Cluster) { setReady(c, metav1.ConditionTrue) })
	c.expect("m1", "ConfigMap", objectcache.Current, "default/a=1", "default/b=1")
	if lists, _ := m.counts("configmaps"); lists != 1 {
		t.Errorf("configmaps were listed %d times, want once", lists)
	}
}

func TestAClusterThatWasRestoredWhileNotReadyIsListed(t *testing.T) {
	m := newFakeMember(t)
	m.put("configmaps", "default", "a", "1")
	c := newControl(t, objectcache.Options{}, clusterOf("m1", m.URL), registryOf("all", "ConfigMap"))
	c.expect("m1", "ConfigMap", objectcache.Current, "default/a=1")
	c.changeCluster("m1", func(c *clusterv1alpha1.Cluster) { setReady(c, metav1.ConditionFalse) })
	c.expect("m1", "ConfigMap", objectcache.Stale, "default/a=1")
	m.restore(50)
	m.put("configmaps", "default", "b", "1")
	c.changeCluster("m1", func(c *clusterv1alpha1.Cluster) { setReady(c, metav1.ConditionTrue) })
	c.expect("m1", "ConfigMap", objectcache.Current, "default/a=1", "default/b=1")
}

func TestKindsComeAndGoWithoutOtherWatches(t *testing.T) {
	m := newFakeMember(t)
	m.put("configmaps", "default", "a", "1")
	m.put("secrets", "default", "s", "1")
	c := newControl(t, objectcache.Options{}, clusterOf("m1", m.URL), registryOf("one", "ConfigMap"))
	c.expect("m1", "ConfigMap", objectcache.Current, "default/a=1")
	c.changeRegistry("one", func(r *searchv1alpha1.ResourceRegistry) { r.Spec = registryOf("", "ConfigMap", "Secret").Spec })
	c.expect("m1", "Secret", objectcache.Current, "default/s=1")
	c.changeRegistry("one", func(r *searchv1alpha1.ResourceRegistry) { r.Spec = registryOf("", "ConfigMap", "Node").Spec })
	c.eventually(func() string {
		if c.source("m1", "Secret") != nil || c.source("m1", "Node") == nil {
			return "the kinds did not change"
		}
		return ""
	})
	if lists, watches := m.counts("configmaps"); lists != 1 || watches > 1 {
		t.Errorf("configmaps were listed %d times and watched %d times, want once", lists, watches)
	}
	c.delete(registryOf("one"))
	c.cache.NotifyRegistry("one")
	c.eventually(func() string {
		if len(c.cache.Kinds()) > 0 {
			return "kinds without a registry are cached"
		}
		return ""
	})
}

func TestObjectsLeaveWithTheirCluster(t *testing.T) {
	m1, m2 := newFakeMember(t), newFakeMember(t)
	m1.put("configmaps", "default", "a", "1")
	m2.put("configmaps", "default", "b", "2")
	c := newControl(t, objectcache.Options{}, clusterOf("m1", m1.URL), clusterOf("m2", m2.URL), registryOf("all", "ConfigMap"))
	c.expect("m1", "ConfigMap", objectcache.Current, "default/a=1")
	c.expect("m2", "ConfigMap", objectcache.Current, "default/b=2")
	c.delete(clusterOf("m1", ""))
	c.cache.NotifyCluster("m1")
	c.eventually(func() string {
		if c.source("m1", "ConfigMap") != nil {
			return "the objects of a deleted cluster are cached"
		}
		return ""
	})
	c.expect("m2", "ConfigMap", objectcache.Current, "default/b=2")
}

func TestNewConnectionSettingsKeepObjects(t *testing.T) {
	m, moved := newFakeMember(t), newFakeMember(t)
	m.put("configmaps", "default", "a", "1")
	moved.put("configmaps", "default", "a", "1")
	moved.put("configmaps", "default", "b", "1")
	c := newControl(t, objectcache.Options{}, clusterOf("m1", m.URL), registryOf("all", "ConfigMap"))
	c.expect("m1", "ConfigMap", objectcache.Current, "default/a=1")
	kind := c.cache.KindOf(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	cursor := kind.Follow(kind.Snapshot().Position())
	c.changeCluster("m1", func(c *clusterv1alpha1.Cluster) { c.Spec.APIEndpoint = moved.URL })
	c.expect("m1", "ConfigMap", objectcache.Current, "default/a=1", "default/b=1")
	events, err := readAll(cursor)
	if err != nil || len(events) != 1 || events[0].Type != objectcache.Added {
		t.Errorf("events: %v, %v, want one Added", events, err)
	}
}

func TestAClusterThatHangsDelaysNoOther(t *testing.T) {
	hanging, m := newFakeMember(t), newFakeMember(t)
	hanging.setSilent(true)
	m.put("configmaps", "default", "a", "1")
	c := newControl(t, objectcache.Options{}, clusterOf("hanging", hanging.URL), clusterOf("m1", m.URL), registryOf("all", "ConfigMap"))
	c.expect("m1", "ConfigMap", objectcache.Current, "default/a=1")
	c.expect("hanging", "ConfigMap", objectcache.Waiting)
	if missing := c.cache.WaitForSync(t.Context(), time.Millisecond); len(missing) != 1 || missing[0].Cluster != "hanging" {
		t.Errorf("missing: %+v, want the hanging cluster", missing)
	}
}

func TestAKindThatIsNotServedIsFoundLater(t *testing.T) {
	m := newFakeMember(t)
	cluster := clusterOf("m1", m.URL)
	setKinds(cluster, "ConfigMap", "Widget")
	c := newControl(t, objectcache.Options{}, cluster, registryOf("all", "Widget"))
	c.expectReason("m1", "Widget", "does not serve")
	if c.source("m1", "Widget") != nil {
		t.Error("a kind that the member does not serve is in the snapshot")
	}
	m.serve("widgets", "Widget", true)
	m.put("widgets", "default", "w", "1")
	c.expect("m1", "Widget", objectcache.Current, "default/w=1")
}

func TestLimitsOfHostileMembers(t *testing.T) {
	tests := map[string]struct {
		mode   hostiletest.Mode
		reason string
	}{
		"endless list":            {hostiletest.EndlessList(), "bound"},
		"endless pages":           {hostiletest.EndlessPages(), "few objects (bound pages)"},
		"huge list":               {hostiletest.HugeList(), "bound"},
		"compressed bomb":         {hostiletest.GzipBomb(), "bound"},
		"objects of another kind": {hostiletest.WrongKind(), "something else"},
		"HTML":                    {hostiletest.HTML(), "m1"},
		"endless new objects":     {hostiletest.EndlessManagedObjects(), "limit of 500 objects"},
		"endless event":           {hostiletest.EndlessEvent(), "bound"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := hostiletest.New(t)
			m.SetMode(test.mode)
			c := newControl(t, objectcache.Options{MaxSourceObjects: 500}, clusterOf("m1", m.URL), registryOf("all", "ConfigMap"))
			c.expectReason("m1", "ConfigMap", test.reason)
			if source := c.source("m1", "ConfigMap"); source != nil && source.Len() > 501 {
				t.Errorf("%d objects are cached", source.Len())
			}
		})
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
