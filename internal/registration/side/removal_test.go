package side_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/side"
	"karmada.io/karmada/internal/registration/side/sidetest"
)

// deadCluster is a Cluster that nobody takes out, with Works and a binding.
func deadCluster(t *testing.T, works int) (*side.Side, *clusterv1alpha1.Cluster) {
	t.Helper()
	east := sidetest.Registered("east", "id", clusterv1alpha1.Push)
	east.UID = "uid of east"
	east.Finalizers = []string{clusterv1alpha1.ClusterControllerFinalizer}
	east.Status.Conditions = []metav1.Condition{{
		Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, Message: "cluster is not reachable",
	}}
	objects := []client.Object{&east, registration.ExecutionSpace("east"), &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec:       workv1alpha2.ResourceBindingSpec{Clusters: []workv1alpha2.TargetCluster{{Name: "west"}, {Name: "east"}}},
		Status: workv1alpha2.ResourceBindingStatus{Conditions: []metav1.Condition{{
			Type: workv1alpha2.Scheduled, Status: metav1.ConditionFalse, Reason: "NoClusterFit", Message: "2 clusters are wanted, 1 fits",
		}}},
	}, &workv1alpha2.ClusterResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "crd"},
		Spec:       workv1alpha2.ResourceBindingSpec{Clusters: []workv1alpha2.TargetCluster{{Name: "west"}}},
	}}
	for i := range works {
		objects = append(objects, &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
			Namespace: "karmada-es-east", Name: fmt.Sprintf("w%03d", i), Finalizers: []string{workv1alpha1.ExecutionFinalizer},
		}})
	}
	return sidetest.With(t, "", objects...), &east
}

func TestARemovalThatIsHeldSaysByWhom(t *testing.T) {
	karmada, east := deadCluster(t, 2)
	err := karmada.Remove(t.Context(), side.Removal{Cluster: east, Wait: 50 * time.Millisecond})
	if err == nil {
		t.Fatal("it is said to be gone")
	}
	for _, part := range []string{
		`cluster "east" was deleted and is not gone after 50ms`,
		"no controller has taken it up",
		"2 Works are left, such as karmada-es-east/w000: the cluster is not Ready (cluster is not reachable); their objects stay in it",
		"it is still in spec.clusters of ResourceBinding shop/web: Scheduled=False (NoClusterFit): 2 clusters are wanted, 1 fits",
		"repeat with --force",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is missing in %q", part, err)
		}
	}
	if strings.Contains(err.Error(), "crd") {
		t.Errorf("a binding is blamed that does not list it: %q", err)
	}
}

func TestARemovalThatTakesLongSaysWhatItWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		karmada, east := deadCluster(t, 2)
		var told []string
		karmada.Log = func(format string, args ...any) {
			text := fmt.Sprintf(format, args...)
			if !strings.HasPrefix(text, "waiting until Cluster east is gone:") {
				return
			}
			told = append(told, text)
			// The first time one Work goes, the second time everything.
			var err error
			if len(told) == 1 {
				err = karmada.TakeFinalizers(t.Context(), &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-east", Name: "w000"}})
				err = errors.Join(err, karmada.Delete(t.Context(), &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-east", Name: "w000"}}))
			} else {
				err = karmada.TakeFinalizers(t.Context(), east)
			}
			if err != nil {
				t.Error(err)
			}
		}
		if err := karmada.Remove(t.Context(), side.Removal{Cluster: east, Wait: time.Minute}); err != nil {
			t.Fatal(err)
		}
		if len(told) != 2 || !strings.Contains(told[0], "2 Works are left") || !strings.Contains(told[1], "1 Work is left") {
			t.Errorf("told %q, want the holders each time they change", told)
		}
	})
}

// An agent may not list bindings, and loses all its rights with its Cluster.
func TestARemovalWithTheRightsOfAnAgent(t *testing.T) {
	karmada, east := deadCluster(t, 0)
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "resourcebindings"}, "", errors.New("no"))
	gone := false
	karmada.API = interceptor.NewClient(karmada.API, interceptor.Funcs{
		List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, how ...client.ListOption) error {
			if _, works := list.(*workv1alpha1.WorkList); !works {
				return refused
			}
			return api.List(ctx, list, how...)
		},
		Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, object client.Object, how ...client.GetOption) error {
			if gone {
				return refused
			}
			return api.Get(ctx, key, object, how...)
		},
	})
	removal := side.Removal{Cluster: east, Wait: 50 * time.Millisecond, RefusedIsGone: true}
	err := karmada.Leave(t.Context(), removal)
	if want := "no controller has taken it up"; err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "bindings") {
		t.Errorf("got %v, want only %q", err, want)
	}
	removal.More = func(_ context.Context, works int) []string {
		return []string{fmt.Sprintf("the agent, %d Works", works)}
	}
	if err := karmada.Leave(t.Context(), removal); err == nil || !strings.Contains(err.Error(), "\n- the agent, 0 Works\n") {
		t.Errorf("got %v, want what the caller knows", err)
	}
	gone = true
	removal.Wait = time.Minute
	if err := karmada.Leave(t.Context(), removal); err != nil {
		t.Errorf("a refusal after the deletion: %v", err)
	}
}

func TestARemovalThatNobodyWaitsForGoesOn(t *testing.T) {
	karmada, east := deadCluster(t, 2)
	ctx, interrupt := context.WithCancel(t.Context())
	karmada.API = interceptor.NewClient(karmada.API, interceptor.Funcs{
		Delete: func(ctx context.Context, api client.WithWatch, object client.Object, how ...client.DeleteOption) error {
			defer interrupt()
			return api.Delete(ctx, object, how...)
		},
	})
	err := karmada.Remove(ctx, side.Removal{Cluster: east, Wait: time.Minute})
	if !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), `cluster "east" was deleted and goes on leaving`) {
		t.Errorf("got %v", err)
	}
}

func TestARemovalByForceNeedsNobody(t *testing.T) {
	karmada, east := deadCluster(t, 700)
	if err := karmada.Remove(t.Context(), side.Removal{Cluster: east, Wait: 50 * time.Millisecond, Force: true}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{}, sidetest.Content(t, karmada), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
}

func TestARemovalByForceTakesTheClusterAlthoughAWorkResists(t *testing.T) {
	karmada, east := deadCluster(t, 2)
	refusing := &side.Side{Name: karmada.Name, Host: karmada.Host, Log: t.Logf, API: interceptor.NewClient(karmada.API, sidetest.Refusal("w000").Funcs())}
	if err := refusing.Remove(t.Context(), side.Removal{Cluster: east, Wait: 50 * time.Millisecond, Force: true}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Work karmada-es-east/w000"}, sidetest.Content(t, karmada), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
}

func TestANamespaceThatIsBeingDeletedIsWaitedFor(t *testing.T) {
	leaving := registration.Namespace("ns")
	leaving.Finalizers = []string{"test/stays"}
	s := sidetest.With(t, "", leaving)
	if err := s.API.Delete(t.Context(), leaving.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	waited := false
	s.Log = func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); !strings.Contains(text, "waiting until Namespace ns in it is gone") || waited {
			return
		}
		waited = true
		if err := s.TakeFinalizers(t.Context(), registration.Namespace("ns")); err != nil {
			t.Error(err)
		}
	}
	made, err := s.Ensure(t.Context(), registration.Namespace("ns"), func(client.Object) error { return nil })
	if err != nil || made.GetDeletionTimestamp() != nil || !waited {
		t.Errorf("made %v, waited %v, err %v", made, waited, err)
	}
}

func TestForceLetsEverythingOfTheClusterGo(t *testing.T) {
	east := sidetest.Registered("east", "id", clusterv1alpha1.Push)
	east.Finalizers = []string{clusterv1alpha1.ClusterControllerFinalizer}
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-east", Name: "w", Finalizers: []string{workv1alpha1.ExecutionFinalizer}}}
	other := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-west", Name: "w", Finalizers: []string{workv1alpha1.ExecutionFinalizer}}}
	karmada := sidetest.With(t, "", &east, work, other, registration.Namespace("karmada-es-east"))
	// The API server deletes what a namespace holds.
	if err := karmada.API.Delete(t.Context(), work.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if err := karmada.Delete(t.Context(), &east); err != nil {
		t.Fatal(err)
	}
	if err := karmada.Release(t.Context(), &east); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Work karmada-es-west/w"}, sidetest.Content(t, karmada)); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
}

func TestWhatWasReplacedIsGoneAndNotDeleted(t *testing.T) {
	now, before := sidetest.Registered("east", "id", clusterv1alpha1.Push), sidetest.Registered("east", "id", clusterv1alpha1.Push)
	now.UID, before.UID = "now", "before"
	karmada := sidetest.With(t, "", &now)
	var precondition *types.UID
	karmada.API = interceptor.NewClient(karmada.API, interceptor.Funcs{
		Delete: func(_ context.Context, _ client.WithWatch, _ client.Object, how ...client.DeleteOption) error {
			options := (&client.DeleteOptions{}).ApplyOptions(how)
			if options.Preconditions != nil {
				precondition = options.Preconditions.UID
			}
			return nil
		},
	})
	if err := karmada.Delete(t.Context(), &before); err != nil || precondition == nil || *precondition != "before" {
		t.Errorf("deleted with precondition %v, error %v", precondition, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := karmada.AwaitGone(ctx, &before); err != nil {
		t.Error(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := karmada.AwaitGone(ended, &now); err == nil {
		t.Error("what is there is said to be gone")
	}
}
