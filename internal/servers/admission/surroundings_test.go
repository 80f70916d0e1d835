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

// discovered answers a discovery.
type discovered struct {
	asked atomic.Int32
	err   error
}

func (d *discovered) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	d.asked.Add(1)
	return nil, []*metav1.APIResourceList{{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{{Name: "deployments", Kind: "Deployment"}}}}, d.err
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
		"a served kind":                   {kind: deployments, known: true, has: true},
		"an unserved kind":                {kind: metrics, known: true},
		"a kind of a group that is down":  {kind: metrics, err: partial, known: true, has: true},
		"a discovery without any answers": {kind: metrics, err: errors.New("down")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			answers := &discovered{err: test.err}
			ask := ServedKinds(answers)
			for range 3 {
				served := ask(test.kind)
				if (served != nil) != test.known {
					t.Fatalf("known: %v, want %v", served != nil, test.known)
				}
				if served != nil && served.Has(test.kind) != test.has {
					t.Errorf("served: %v, want %v", !test.has, test.has)
				}
			}
			if asked := answers.asked.Load(); asked != 1 {
				t.Errorf("asked %d times for one answer", asked)
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

func TestAnAnswerIsAskedForAgain(t *testing.T) {
	enough, lacking := func(int) bool { return true }, func(int) bool { return false }
	tests := map[string]struct {
		age       time.Duration
		known     bool
		satisfies func(int) bool
		want      bool
	}{
		"at first":                             {satisfies: enough, want: true},
		"not while it is young and sufficient": {age: trust / 2, known: true, satisfies: enough},
		"when it is old":                       {age: 2 * trust, known: true, satisfies: enough, want: true},
		"when it lacks something":              {age: 2 * askAgain, known: true, satisfies: lacking, want: true},
		"not at once when it lacks something":  {age: askAgain / 4, known: true, satisfies: lacking},
		"some time after a failure":            {age: 2 * askAfterFailure, satisfies: enough, want: true},
		"not soon after a failure":             {age: askAfterFailure / 2, satisfies: enough},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := &remembered[int]{known: test.known}
			if test.age > 0 {
				r.asked = time.Now().Add(-test.age)
			}
			if got := r.needed(test.satisfies); got != test.want {
				t.Errorf("needed = %v", got)
			}
		})
	}
}

func TestARequestDoesNotWaitLongForAnAnswer(t *testing.T) {
	ctx, release := context.WithCancel(t.Context())
	r := &remembered[int]{ask: func() (int, error) {
		<-ctx.Done()
		return 7, nil
	}}
	if _, known := r.get(func(int) bool { return true }); known {
		t.Error("there is an answer before it was given")
	}
	release()
	if answer, known := r.get(func(int) bool { return true }); !known || answer != 7 {
		t.Errorf("the late answer is %d, %v", answer, known)
	}
}

func TestAnOldAnswerIsReturnedWhileItIsRenewed(t *testing.T) {
	renewing, release := make(chan struct{}), make(chan struct{})
	r := &remembered[int]{answer: 7, known: true, asked: time.Now().Add(-2 * trust), ask: func() (int, error) {
		close(renewing)
		<-release
		return 8, nil
	}}
	if answer, known := r.get(func(n int) bool { return n == 7 }); !known || answer != 7 {
		t.Errorf("an answer that satisfies is waited for: %d, %v", answer, known)
	}
	<-renewing
	close(release)
	if answer, known := r.get(func(n int) bool { return n == 8 }); !known || answer != 8 {
		t.Errorf("the new answer is %d, %v", answer, known)
	}
}
