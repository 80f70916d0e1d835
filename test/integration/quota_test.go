package integration

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/testenv"
)

func cpus(amount string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
}

// scheduledBinding returns a binding of a workload whose replicas request one CPU each.
func scheduledBinding(namespace, name string, replicas int32) *workv1alpha2.ResourceBinding {
	return &workv1alpha2.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: workv1alpha2.ResourceBindingSpec{
			Resource:            workv1alpha2.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: namespace, Name: name},
			Clusters:            []workv1alpha2.TargetCluster{{Name: "m1", Replicas: replicas}},
			ReplicaRequirements: &workv1alpha2.ReplicaRequirements{ResourceRequest: cpus("1")},
		},
	}
}

// testQuota sends requests to the webhook program, which counts admitted requests in the quota, because
// another replica of the program could admit requests too.
func (p *plainAPIServer) testQuota(t *testing.T) {
	namespace := p.env.Namespace(t)
	p.createNamespace(t, namespace)
	quota := &policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "team"}}
	quota.Spec.Overall = cpus("7")
	if err := p.karmada.Create(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the webhook knows the quota", func(ctx context.Context) error {
		err := p.karmada.Create(ctx, scheduledBinding(namespace, "large", 8), client.DryRunAll)
		if apierrors.ReasonForError(err) == "QuotaExceeded" {
			return nil
		}
		return fmt.Errorf("got %w", err)
	})
	var admitted, refused atomic.Int32
	var requests sync.WaitGroup
	for i := range 20 {
		requests.Go(func() {
			switch err := p.karmada.Create(t.Context(), scheduledBinding(namespace, fmt.Sprintf("web-%d", i), 1)); {
			case err == nil:
				admitted.Add(1)
			case apierrors.ReasonForError(err) == "QuotaExceeded":
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	requests.Wait()
	if admitted.Load() != 7 || refused.Load() != 13 {
		t.Errorf("%d bindings were admitted and %d refused, want 7 and 13", admitted.Load(), refused.Load())
	}
	p.testRoomInQuota(t, namespace)
}

// testRoomInQuota uses the API version v1alpha1 too, which must not circumvent the full quota.
func (p *plainAPIServer) testRoomInQuota(t *testing.T, namespace string) {
	older := &workv1alpha1.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "older"}}
	older.Spec.Resource = workv1alpha1.ObjectReference{
		APIVersion: "apps/v1", Kind: "Deployment", Namespace: namespace, Name: "older", ReplicaResourceRequirements: cpus("1"),
	}
	older.Spec.Clusters = []workv1alpha1.TargetCluster{{Name: "m1", Replicas: 1}}
	if err := p.karmada.Create(t.Context(), older); apierrors.ReasonForError(err) != "QuotaExceeded" {
		t.Errorf("a binding of the version v1alpha1: %v, want QuotaExceeded", err)
	}
	bindings := &workv1alpha2.ResourceBindingList{}
	if err := p.karmada.List(t.Context(), bindings, client.InNamespace(namespace)); err != nil || len(bindings.Items) == 0 {
		t.Fatalf("%d bindings, %v", len(bindings.Items), err)
	}
	if err := p.karmada.Delete(t.Context(), &bindings.Items[0]); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "a deleted binding leaves room", func(ctx context.Context) error {
		return p.karmada.Create(ctx, scheduledBinding(namespace, "late", 1))
	})
	if err := p.karmada.Create(t.Context(), scheduledBinding(namespace, "later", 1)); apierrors.ReasonForError(err) != "QuotaExceeded" {
		t.Errorf("the quota is full again: %v, want QuotaExceeded", err)
	}
}
