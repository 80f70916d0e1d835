package feed_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/servers/search/feed"
	"karmada.io/karmada/internal/servers/search/objectcache"
	"karmada.io/karmada/internal/servers/search/objectcache/objectcachetest"
)

// unreachable are members that cannot be reached.
type unreachable struct{}

func (unreachable) GetForCluster(context.Context, *clusterv1alpha1.Cluster) (*member.Member, error) {
	return nil, errors.New("unreachable")
}
func (unreachable) CloseMember(string) {}

func TestObjectsOfASelectedKindThatIsNotKnownYetStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scheme := runtime.NewScheme()
		if err := errors.Join(clusterv1alpha1.AddToScheme(scheme), searchv1alpha1.AddToScheme(scheme)); err != nil {
			t.Fatal(err)
		}
		// The cluster's API list is incomplete, and the cluster does not respond.
		east := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}
		east.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue}}
		registry := &searchv1alpha1.ResourceRegistry{ObjectMeta: metav1.ObjectMeta{Name: "all"}}
		registry.Spec.ResourceSelectors = []searchv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "Pod"}}
		cache, err := objectcache.New(objectcache.Options{
			Karmada: fake.NewClientBuilder().WithScheme(scheme).WithObjects(east, registry).Build(), Members: unreachable{},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- cache.Run(ctx) }()
		defer func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}()
		sink := newMemorySink()
		for _, kind := range []objectcachetest.Kind{pods, configMaps} {
			source := objectcache.Source{Cluster: "east", Kind: kind.GroupVersionKind}
			sink.objects[feed.ID{Cluster: "east", UID: types.UID("of-" + kind.Kind)}] = stored{source: source}
		}
		_, stop := start(t, &objectcachetest.Cache{Cache: cache}, sink)
		defer stop()
		pass(settle)
		if got := sink.contents(); len(got) != 1 || got[feed.ID{Cluster: "east", UID: "of-Pod"}].source.Kind != pods.GroupVersionKind {
			t.Errorf("the sink has %v, want only the Pod that a registry selects", got)
		}
	})
}
