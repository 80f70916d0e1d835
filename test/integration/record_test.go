package integration

import (
	"context"
	"errors"
	"sync"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/testenv"
)

// recorded are all versions of a Cluster, one after the other: who looks now and then
// may miss what does not last.
type recorded struct {
	mu       sync.Mutex
	versions []*clusterv1alpha1.Cluster
	// read is how many of them were looked at.
	read int
}

// record records a Cluster from now on until the test ends.
func record(t *testing.T, env *testenv.Env, name string) *recorded {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	changes, err := env.Karmada.Watch(ctx, &clusterv1alpha1.ClusterList{}, client.MatchingFields{"metadata.name": name})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	r, ended := &recorded{}, make(chan struct{})
	go func() {
		defer close(ended)
		for change := range changes.ResultChan() {
			if version, ok := change.Object.(*clusterv1alpha1.Cluster); ok {
				r.add(version)
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		changes.Stop()
		<-ended
	})
	return r
}

func (r *recorded) add(version *clusterv1alpha1.Cluster) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.versions = append(r.versions, version)
}

// next is the next version that nobody has looked at, if there is one.
func (r *recorded) next() *clusterv1alpha1.Cluster {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.read == len(r.versions) {
		return nil
	}
	r.read++
	return r.versions[r.read-1]
}

// then waits for a version, after those that were waited for before, with which
// check finds nothing wrong.
func (r *recorded) then(t testing.TB, what string, check func(*clusterv1alpha1.Cluster) error) (found *clusterv1alpha1.Cluster) {
	t.Helper()
	wrong := errors.New("there is none")
	testenv.Eventually(t, "version of a Cluster that is "+what, func(context.Context) error {
		for version := r.next(); version != nil; version = r.next() {
			if wrong = check(version); wrong == nil {
				found = version
				return nil
			}
		}
		return wrong
	})
	return found
}
