package clusterclient_test

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
	"karmada.io/karmada/internal/registration/clusterclient"
	"karmada.io/karmada/internal/registration/clusterclient/clusterclienttest"
)

// newUnreachableCluster returns a Cluster with Works and a binding. No controller removes the
// Cluster.
func newUnreachableCluster(t *testing.T, works int) (*clusterclient.Client, *clusterv1alpha1.Cluster) {
	t.Helper()
	east := clusterclienttest.NewCluster("east", "id", clusterv1alpha1.Push)
	east.UID = "uid of east"
	east.Finalizers = []string{clusterv1alpha1.ClusterControllerFinalizer}
	east.Status.Conditions = []metav1.Condition{{
		Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, Message: "cluster is not reachable",
	}}
	objects := []client.Object{&east, registration.NewExecutionNamespace("east"), &workv1alpha2.ResourceBinding{
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
	return clusterclienttest.NewClient(t, "", objects...), &east
}

func TestRemoveClusterReportsBlockers(t *testing.T) {
	karmada, east := newUnreachableCluster(t, 2)
	err := karmada.RemoveCluster(t.Context(), clusterclient.Removal{Cluster: east, Wait: 50 * time.Millisecond})
	if err == nil {
		t.Fatal("the Cluster is reported as gone")
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
		t.Errorf("the error names a binding that does not target the cluster: %q", err)
	}
}

func TestRemoveClusterLogsBlockersWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		karmada, east := newUnreachableCluster(t, 2)
		var logged []string
		karmada.Log = func(format string, args ...any) {
			text := fmt.Sprintf(format, args...)
			if !strings.HasPrefix(text, "waiting until Cluster east is gone:") {
				return
			}
			logged = append(logged, text)
			// Remove one Work at the first message, and the Cluster at the second message.
			var err error
			if len(logged) == 1 {
				err = karmada.RemoveFinalizers(t.Context(), &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-east", Name: "w000"}})
				err = errors.Join(err, karmada.Delete(t.Context(), &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-east", Name: "w000"}}))
			} else {
				err = karmada.RemoveFinalizers(t.Context(), east)
			}
			if err != nil {
				t.Error(err)
			}
		}
		if err := karmada.RemoveCluster(t.Context(), clusterclient.Removal{Cluster: east, Wait: time.Minute}); err != nil {
			t.Fatal(err)
		}
		if len(logged) != 2 || !strings.Contains(logged[0], "2 Works are left") || !strings.Contains(logged[1], "1 Work is left") {
			t.Errorf("logged %q, want the blockers each time they change", logged)
		}
	})
}

// An agent is not allowed to list bindings, and loses all its permissions together with its Cluster.
// The cluster controller deletes the namespace of a Cluster that has its finalizer.
func TestDeleteClusterDeletesUnprocessedNamespace(t *testing.T) {
	for name, test := range map[string]struct {
		finalizers []string
		agent      bool
		remains    bool
	}{
		"without the finalizer": {},
		"without the finalizer, with the credentials of the agent": {agent: true, remains: true},
		"with the finalizer": {finalizers: []string{clusterv1alpha1.ClusterControllerFinalizer}, remains: true},
	} {
		t.Run(name, func(t *testing.T) {
			stored := clusterclienttest.NewCluster("east", "id", clusterv1alpha1.Pull)
			namespace := registration.NewExecutionNamespace("east")
			karmada := clusterclienttest.NewClient(t, "", &stored, namespace)
			read := stored.DeepCopy()
			read.Finalizers = test.finalizers
			if err := karmada.DeleteCluster(t.Context(), clusterclient.Removal{Cluster: read, Wait: time.Minute, DeniedMeansGone: test.agent}); err != nil {
				t.Fatal(err)
			}
			if have, err := karmada.Get(t.Context(), namespace); err != nil || (have != nil) != test.remains {
				t.Errorf("the namespace remains: %t, want %t (%v)", have != nil, test.remains, err)
			}
		})
	}
}

func TestDeleteClusterWithAgentCredentials(t *testing.T) {
	karmada, east := newUnreachableCluster(t, 0)
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "resourcebindings"}, "", errors.New("no"))
	gone := false
	karmada.API = interceptor.NewClient(karmada.API, interceptor.Funcs{
		List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, how ...client.ListOption) error {
			if _, works := list.(*workv1alpha1.WorkList); !works {
				return forbidden
			}
			return api.List(ctx, list, how...)
		},
		Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, object client.Object, how ...client.GetOption) error {
			if gone {
				return forbidden
			}
			return api.Get(ctx, key, object, how...)
		},
	})
	removal := clusterclient.Removal{Cluster: east, Wait: 50 * time.Millisecond, DeniedMeansGone: true}
	err := karmada.DeleteCluster(t.Context(), removal)
	if want := "no controller has taken it up"; err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "bindings") {
		t.Errorf("got %v, want only %q", err, want)
	}
	removal.ExtraBlockers = func(_ context.Context, works int) []string {
		return []string{fmt.Sprintf("the agent, %d Works", works)}
	}
	if err := karmada.DeleteCluster(t.Context(), removal); err == nil || !strings.Contains(err.Error(), "\n- the agent, 0 Works\n") {
		t.Errorf("got %v, want the line of ExtraBlockers", err)
	}
	gone = true
	removal.Wait = time.Minute
	if err := karmada.DeleteCluster(t.Context(), removal); err != nil {
		t.Errorf("Forbidden after the deletion: %v", err)
	}
}

func TestRemoveClusterInterrupted(t *testing.T) {
	karmada, east := newUnreachableCluster(t, 2)
	ctx, interrupt := context.WithCancel(t.Context())
	karmada.API = interceptor.NewClient(karmada.API, interceptor.Funcs{
		Delete: func(ctx context.Context, api client.WithWatch, object client.Object, how ...client.DeleteOption) error {
			defer interrupt()
			return api.Delete(ctx, object, how...)
		},
	})
	err := karmada.RemoveCluster(ctx, clusterclient.Removal{Cluster: east, Wait: time.Minute})
	if !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), `cluster "east" was deleted, and its deletion continues`) {
		t.Errorf("got %v", err)
	}
}

func TestForcedRemovalWithoutControllers(t *testing.T) {
	karmada, east := newUnreachableCluster(t, 700)
	if err := karmada.RemoveCluster(t.Context(), clusterclient.Removal{Cluster: east, Wait: 50 * time.Millisecond, Force: true}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{}, clusterclienttest.ListContent(t, karmada), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
}

func TestForcedRemovalIgnoresFailingWork(t *testing.T) {
	karmada, east := newUnreachableCluster(t, 2)
	failing := &clusterclient.Client{Name: karmada.Name, Host: karmada.Host, Log: t.Logf, API: interceptor.NewClient(karmada.API, clusterclienttest.FailingObject("w000").Funcs())}
	if err := failing.RemoveCluster(t.Context(), clusterclient.Removal{Cluster: east, Wait: 50 * time.Millisecond, Force: true}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Work karmada-es-east/w000"}, clusterclienttest.ListContent(t, karmada), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
}

func TestEnsureWaitsForTerminatingNamespace(t *testing.T) {
	terminating := registration.NewNamespace("ns")
	terminating.Finalizers = []string{"test/stays"}
	s := clusterclienttest.NewClient(t, "", terminating)
	if err := s.API.Delete(t.Context(), terminating.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	isAwaited := false
	s.Log = func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); !strings.Contains(text, "waiting until Namespace ns in it, which is being deleted, is gone") || isAwaited {
			return
		}
		isAwaited = true
		if err := s.RemoveFinalizers(t.Context(), registration.NewNamespace("ns")); err != nil {
			t.Error(err)
		}
	}
	created, err := s.Ensure(t.Context(), registration.NewNamespace("ns"), func(client.Object) error { return nil })
	if err != nil || created.GetDeletionTimestamp() != nil || !isAwaited {
		t.Errorf("created %v, waited %v, err %v", created, isAwaited, err)
	}
}

func TestForceDeleteCluster(t *testing.T) {
	east := clusterclienttest.NewCluster("east", "id", clusterv1alpha1.Push)
	east.Finalizers = []string{clusterv1alpha1.ClusterControllerFinalizer}
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-east", Name: "w", Finalizers: []string{workv1alpha1.ExecutionFinalizer}}}
	other := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-west", Name: "w", Finalizers: []string{workv1alpha1.ExecutionFinalizer}}}
	karmada := clusterclienttest.NewClient(t, "", &east, work, other, registration.NewNamespace("karmada-es-east"))
	// Delete the Work as the API server does with the objects of a terminating namespace.
	if err := karmada.API.Delete(t.Context(), work.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if err := karmada.Delete(t.Context(), &east); err != nil {
		t.Fatal(err)
	}
	if err := karmada.ForceDeleteCluster(t.Context(), &east); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Work karmada-es-west/w"}, clusterclienttest.ListContent(t, karmada)); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
}

func TestReplacedObjectCountsAsGone(t *testing.T) {
	now, before := clusterclienttest.NewCluster("east", "id", clusterv1alpha1.Push), clusterclienttest.NewCluster("east", "id", clusterv1alpha1.Push)
	now.UID, before.UID = "now", "before"
	karmada := clusterclienttest.NewClient(t, "", &now)
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
		t.Error("an existing object is reported as gone")
	}
}
