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

// clusterRecorder records all versions of a Cluster in their order. Tests use it instead of
// polling, which may miss a version that is replaced soon.
type clusterRecorder struct {
	mu       sync.Mutex
	versions []*clusterv1alpha1.Cluster
	// nextIndex is the index of the version that next returns.
	nextIndex int
}

// recordCluster records the versions of a Cluster from now on until the test ends.
func recordCluster(t *testing.T, env *testenv.Env, name string) *clusterRecorder {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	changes, err := env.Karmada.Watch(ctx, &clusterv1alpha1.ClusterList{}, client.MatchingFields{"metadata.name": name})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	r, ended := &clusterRecorder{}, make(chan struct{})
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

func (c *clusterRecorder) add(version *clusterv1alpha1.Cluster) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.versions = append(c.versions, version)
}

// next returns the next recorded version, or nil if there is none.
func (c *clusterRecorder) next() *clusterv1alpha1.Cluster {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nextIndex == len(c.versions) {
		return nil
	}
	c.nextIndex++
	return c.versions[c.nextIndex-1]
}

// awaitVersion waits for a version for which check returns no error. It continues after the
// version that the last call returned.
func (c *clusterRecorder) awaitVersion(t testing.TB, what string, check func(*clusterv1alpha1.Cluster) error) (found *clusterv1alpha1.Cluster) {
	t.Helper()
	lastErr := errors.New("no new version")
	testenv.Eventually(t, "version of a Cluster that is "+what, func(context.Context) error {
		for version := c.next(); version != nil; version = c.next() {
			if lastErr = check(version); lastErr == nil {
				found = version
				return nil
			}
		}
		return lastErr
	})
	return found
}
