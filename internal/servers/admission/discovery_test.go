package admission

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic/fake"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// fakeDiscovery returns a fixed discovery result.
type fakeDiscovery struct {
	requests atomic.Int32
	err      error
}

func (f *fakeDiscovery) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	f.requests.Add(1)
	return nil, []*metav1.APIResourceList{{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{{Name: "deployments", Kind: "Deployment"}}}}, f.err
}

func TestServedKinds(t *testing.T) {
	deployments := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	metrics := schema.GroupVersionKind{Group: "metrics.k8s.io", Version: "v1beta1", Kind: "PodMetrics"}
	partial := &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{metrics.GroupVersion(): errors.New("down")}}
	tests := map[string]struct {
		err        error
		kind       schema.GroupVersionKind
		known, has bool
	}{
		"a served kind":                           {kind: deployments, known: true, has: true},
		"an unserved kind":                        {kind: metrics, known: true},
		"a kind of a group whose discovery fails": {kind: metrics, err: partial, known: true, has: true},
		"a failed discovery":                      {kind: metrics, err: errors.New("down")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			discoveryClient := &fakeDiscovery{err: test.err}
			servedKinds := ServedKinds(discoveryClient)
			for range 3 {
				served := servedKinds(test.kind)
				if (served != nil) != test.known {
					t.Fatalf("known: %v, want %v", served != nil, test.known)
				}
				if served != nil && served.Has(test.kind) != test.has {
					t.Errorf("served: %v, want %v", !test.has, test.has)
				}
			}
			if requests := discoveryClient.requests.Load(); requests != 1 {
				t.Errorf("%d discovery requests, want 1", requests)
			}
		})
	}
}

func TestStoredClusters(t *testing.T) {
	cluster := parse(t, `{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: member1}}`)
	kinds := map[schema.GroupVersionResource]string{clusterv1alpha1.GroupVersion.WithResource("clusters"): "ClusterList"}
	names := StoredClusters(fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, cluster))([]string{"member1"})
	if diff := cmp.Diff(sets.New("member1"), names); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
}

func TestCachedValueNeedsRefresh(t *testing.T) {
	satisfied, unsatisfied := func(int) bool { return true }, func(int) bool { return false }
	tests := map[string]struct {
		age       time.Duration
		known     bool
		satisfies func(int) bool
		want      bool
	}{
		"no value yet":                           {satisfies: satisfied, want: true},
		"a new value that satisfies":             {age: maxAge / 2, known: true, satisfies: satisfied},
		"an old value":                           {age: 2 * maxAge, known: true, satisfies: satisfied, want: true},
		"a value that does not satisfy":          {age: 2 * refreshDelay, known: true, satisfies: unsatisfied, want: true},
		"a very new value that does not satisfy": {age: refreshDelay / 4, known: true, satisfies: unsatisfied},
		"a failure some time ago":                {age: 2 * retryDelay, satisfies: satisfied, want: true},
		"a recent failure":                       {age: retryDelay / 2, satisfies: satisfied},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := &cachedValue[int]{known: test.known}
			if test.age > 0 {
				r.fetchedAt = time.Now().Add(-test.age)
			}
			if got := r.needsRefresh(test.satisfies); got != test.want {
				t.Errorf("needsRefresh = %v", got)
			}
		})
	}
}

func TestCachedValueWaitTimeout(t *testing.T) {
	ctx, release := context.WithCancel(t.Context())
	r := &cachedValue[int]{fetch: func() (int, error) {
		<-ctx.Done()
		return 7, nil
	}}
	if _, known := r.get(func(int) bool { return true }); known {
		t.Error("the value is known before the fetch has ended")
	}
	release()
	if value, known := r.get(func(int) bool { return true }); !known || value != 7 {
		t.Errorf("the late value is %d, %v", value, known)
	}
}

func TestCachedValueReturnsOldValueDuringRefresh(t *testing.T) {
	refreshing, release := make(chan struct{}), make(chan struct{})
	r := &cachedValue[int]{value: 7, known: true, fetchedAt: time.Now().Add(-2 * maxAge), fetch: func() (int, error) {
		close(refreshing)
		<-release
		return 8, nil
	}}
	if value, known := r.get(func(n int) bool { return n == 7 }); !known || value != 7 {
		t.Errorf("got %d, %v, want the old value without a wait", value, known)
	}
	<-refreshing
	close(release)
	if value, known := r.get(func(n int) bool { return n == 8 }); !known || value != 8 {
		t.Errorf("the new value is %d, %v", value, known)
	}
}
