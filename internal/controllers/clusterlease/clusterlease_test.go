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

func stored(t *testing.T, objects ...client.Object) client.WithWatch {
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

func cluster(uid types.UID) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east", UID: uid}}
}

func leaseIn(t *testing.T, karmada client.Client) *coordinationv1.Lease {
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

func TestTheLeaseBeginsWithTheFirstHealthyLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		karmada := stored(t, cluster("a"))
		keeper := New(karmada, karmada, DefaultOptions())
		go func() { _ = keeper.Start(t.Context()) }()
		<-time.After(time.Minute)
		if lease := leaseIn(t, karmada); lease != nil {
			t.Fatalf("there is a Lease of a cluster that was never healthy: %+v", lease.Spec)
		}
		began := time.Now()
		keeper.Begin(t.Context(), cluster("a"))
		synctest.Wait()
		lease := leaseIn(t, karmada)
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
		if got := leaseIn(t, karmada).Spec.RenewTime.Sub(began); got != 90*time.Second {
			t.Errorf("95 seconds later it was renewed last after %s", got)
		}
	})
}

func TestALeaseThatIsThereIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := metav1.NewMicroTime(time.Now().Add(-time.Hour))
		karmada := stored(t, cluster("b"), &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "karmada-cluster", Name: "east", OwnerReferences: []metav1.OwnerReference{{Kind: "Cluster", Name: "east", UID: "a"}},
			},
			Spec: coordinationv1.LeaseSpec{RenewTime: &old},
		})
		keeper := New(karmada, karmada, DefaultOptions())
		go func() { _ = keeper.Start(t.Context()) }()
		keeper.Begin(t.Context(), cluster("b"))
		synctest.Wait()
		lease := leaseIn(t, karmada)
		if !lease.Spec.RenewTime.After(old.Time) || len(lease.OwnerReferences) != 1 || lease.OwnerReferences[0].UID != "b" {
			t.Errorf("Lease %+v of %+v", lease.Spec, lease.OwnerReferences)
		}
	})
}

func TestALeaseThatVanishedIsMadeAnewAsLongAsItsClusterIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		karmada := stored(t, cluster("a"))
		keeper := New(karmada, karmada, DefaultOptions())
		go func() { _ = keeper.Start(t.Context()) }()
		keeper.Begin(t.Context(), cluster("a"))
		synctest.Wait()
		remove := func(object client.Object) {
			t.Helper()
			if err := karmada.Delete(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
		remove(leaseIn(t, karmada))
		<-time.After(12 * time.Second)
		if leaseIn(t, karmada) == nil {
			t.Fatal("the Lease was not made anew")
		}
		remove(cluster("a"))
		remove(leaseIn(t, karmada))
		<-time.After(time.Minute)
		if lease := leaseIn(t, karmada); lease != nil {
			t.Errorf("there is a Lease of a Cluster that is gone: %+v", lease)
		}
	})
}

func TestALeaseIsNotRenewedForAnotherClusterOfTheName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		karmada := stored(t, cluster("a"))
		keeper := New(karmada, karmada, DefaultOptions())
		go func() { _ = keeper.Start(t.Context()) }()
		keeper.Begin(t.Context(), cluster("a"))
		synctest.Wait()
		if err := karmada.Delete(t.Context(), cluster("a")); err != nil {
			t.Fatal(err)
		}
		if err := karmada.Create(t.Context(), cluster("b")); err != nil {
			t.Fatal(err)
		}
		before := leaseIn(t, karmada)
		<-time.After(time.Minute)
		if diff := cmp.Diff(before, leaseIn(t, karmada)); diff != "" {
			t.Errorf("Lease (-before +a minute later):\n%s", diff)
		}
	})
}

func TestInterval(t *testing.T) {
	tests := map[string]struct {
		options Options
		want    time.Duration
	}{
		"by default":              {DefaultOptions(), 10 * time.Second},
		"a part of the duration":  {Options{Duration: time.Minute, RenewFraction: 0.5}, 30 * time.Second},
		"never without a breath":  {Options{RenewFraction: 0.5}, 100 * time.Millisecond},
		"not less than a moment":  {Options{Duration: time.Millisecond, RenewFraction: 0.1}, 100 * time.Millisecond},
		"nearly the whole of one": {Options{Duration: 10 * time.Second, RenewFraction: 0.9}, 9 * time.Second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := test.options.Interval(); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}
