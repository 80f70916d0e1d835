package clusterlease

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

func newFakeKarmada(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clusterv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := coordinationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

func newCluster(uid types.UID) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east", UID: uid}}
}

func readLease(t *testing.T, karmada client.Client) *coordinationv1.Lease {
	t.Helper()
	lease := &coordinationv1.Lease{}
	err := karmada.Get(t.Context(), types.NamespacedName{Namespace: "karmada-cluster", Name: "east"}, lease)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func TestRenewalsStartWithBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		karmada := newFakeKarmada(t, newCluster("a"))
		renewer := New(karmada, karmada, DefaultOptions())
		go func() { _ = renewer.Start(t.Context()) }()
		<-time.After(time.Minute)
		if lease := readLease(t, karmada); lease != nil {
			t.Fatalf("a cluster that was never healthy has a Lease: %+v", lease.Spec)
		}
		began := time.Now()
		renewer.StartRenewal(t.Context(), newCluster("a"))
		synctest.Wait()
		lease := readLease(t, karmada)
		want := coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("east"), LeaseDurationSeconds: ptr.To[int32](40), RenewTime: ptr.To(metav1.NewMicroTime(began)),
		}
		if diff := cmp.Diff(want, lease.Spec); diff != "" {
			t.Errorf("Lease (-want +got):\n%s", diff)
		}
		wantOwners := []metav1.OwnerReference{{APIVersion: "cluster.karmada.io/v1alpha1", Kind: "Cluster", Name: "east", UID: "a"}}
		if diff := cmp.Diff(wantOwners, lease.OwnerReferences); diff != "" {
			t.Errorf("owners (-want +got):\n%s", diff)
		}
		<-time.After(95 * time.Second)
		if got := readLease(t, karmada).Spec.RenewTime.Sub(began); got != 90*time.Second {
			t.Errorf("95 seconds later the last renewal was after %s", got)
		}
	})
}

func TestExistingLeaseIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := metav1.NewMicroTime(time.Now().Add(-time.Hour))
		karmada := newFakeKarmada(t, newCluster("b"), &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "karmada-cluster", Name: "east", OwnerReferences: []metav1.OwnerReference{{Kind: "Cluster", Name: "east", UID: "a"}},
			},
			Spec: coordinationv1.LeaseSpec{RenewTime: &old},
		})
		renewer := New(karmada, karmada, DefaultOptions())
		go func() { _ = renewer.Start(t.Context()) }()
		renewer.StartRenewal(t.Context(), newCluster("b"))
		synctest.Wait()
		lease := readLease(t, karmada)
		if !lease.Spec.RenewTime.After(old.Time) || len(lease.OwnerReferences) != 1 || lease.OwnerReferences[0].UID != "b" {
			t.Errorf("Lease %+v of %+v", lease.Spec, lease.OwnerReferences)
		}
	})
}

func TestDeletedLeaseIsCreatedAgainWhileClusterExists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		karmada := newFakeKarmada(t, newCluster("a"))
		renewer := New(karmada, karmada, DefaultOptions())
		go func() { _ = renewer.Start(t.Context()) }()
		renewer.StartRenewal(t.Context(), newCluster("a"))
		synctest.Wait()
		remove := func(object client.Object) {
			t.Helper()
			if err := karmada.Delete(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
		remove(readLease(t, karmada))
		<-time.After(12 * time.Second)
		if readLease(t, karmada) == nil {
			t.Fatal("the Lease was not created again")
		}
		remove(newCluster("a"))
		remove(readLease(t, karmada))
		<-time.After(time.Minute)
		if lease := readLease(t, karmada); lease != nil {
			t.Errorf("a deleted Cluster has a Lease: %+v", lease)
		}
	})
}

func TestLeaseOfRecreatedClusterIsNotRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		karmada := newFakeKarmada(t, newCluster("a"))
		renewer := New(karmada, karmada, DefaultOptions())
		go func() { _ = renewer.Start(t.Context()) }()
		renewer.StartRenewal(t.Context(), newCluster("a"))
		synctest.Wait()
		if err := karmada.Delete(t.Context(), newCluster("a")); err != nil {
			t.Fatal(err)
		}
		if err := karmada.Create(t.Context(), newCluster("b")); err != nil {
			t.Fatal(err)
		}
		before := readLease(t, karmada)
		<-time.After(time.Minute)
		if diff := cmp.Diff(before, readLease(t, karmada)); diff != "" {
			t.Errorf("Lease (-before +a minute later):\n%s", diff)
		}
	})
}

func TestInterval(t *testing.T) {
	tests := map[string]struct {
		options Options
		want    time.Duration
	}{
		"by default":                   {DefaultOptions(), 10 * time.Second},
		"a part of the duration":       {Options{Duration: time.Minute, RenewFraction: 0.5}, 30 * time.Second},
		"no duration":                  {Options{RenewFraction: 0.5}, 100 * time.Millisecond},
		"a tiny duration":              {Options{Duration: time.Millisecond, RenewFraction: 0.1}, 100 * time.Millisecond},
		"a large part of the duration": {Options{Duration: 10 * time.Second, RenewFraction: 0.9}, 9 * time.Second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.options.Interval(); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}
