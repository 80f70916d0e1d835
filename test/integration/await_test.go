package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/testenv"
)

// cleanUp deletes objects of the control plane when the test ends. It is needed for cluster-scoped
// objects only, because all other objects are deleted with the namespace of the test.
func cleanUp(t testing.TB, env *testenv.Env, objects ...client.Object) {
	t.Cleanup(func() {
		for _, object := range objects {
			if err := client.IgnoreNotFound(env.Karmada.Delete(context.WithoutCancel(t.Context()), object)); err != nil {
				t.Errorf("deleting %T %s: %v", object, object.GetName(), err)
			}
		}
	})
}

// await waits until the object exists and check returns no error for it.
func await[T client.Object](t testing.TB, clusterClient client.Client, object T, check func(T) error) T {
	t.Helper()
	testenv.Eventually(t, fmt.Sprintf("%T %s", object, client.ObjectKeyFromObject(object)), func(ctx context.Context) error {
		// Use a new object for each read, because fields of the previous read must not remain.
		fresh, ok := emptyObject(object).(T)
		if !ok {
			return fmt.Errorf("cannot make a new %T", object)
		}
		if err := clusterClient.Get(ctx, client.ObjectKeyFromObject(object), fresh); err != nil {
			return err
		}
		object = fresh
		return check(fresh)
	})
	return object
}

// awaitGone waits until the object does not exist.
func awaitGone(t testing.TB, clusterClient client.Client, object client.Object) {
	t.Helper()
	testenv.Eventually(t, fmt.Sprintf("deletion of %T %s", object, client.ObjectKeyFromObject(object)), func(ctx context.Context) error {
		return checkAbsent(ctx, clusterClient, object)
	})
}

// checkAbsent returns an error if the object exists.
func checkAbsent(ctx context.Context, clusterClient client.Client, object client.Object) error {
	err := clusterClient.Get(ctx, client.ObjectKeyFromObject(object), emptyObject(object))
	if err == nil {
		return errors.New("the object exists")
	}
	return client.IgnoreNotFound(err)
}

// emptyObject returns an object of the same kind with nothing but name and namespace.
func emptyObject(object client.Object) client.Object {
	kind, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		return nil
	}
	var fresh client.Object = &unstructured.Unstructured{}
	if _, ok := object.(*unstructured.Unstructured); !ok {
		created, err := scheme.New(kind)
		if err != nil {
			return nil
		}
		if fresh, ok = created.(client.Object); !ok {
			return nil
		}
	}
	fresh.GetObjectKind().SetGroupVersionKind(kind)
	fresh.SetNamespace(object.GetNamespace())
	fresh.SetName(object.GetName())
	return fresh
}

func exists[T client.Object](T) error { return nil }

// checkEqual returns an error with the difference if got is not equal to want.
func checkEqual(what string, want, got any) error {
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("%s (-want +got):\n%s", what, diff)
	}
	return nil
}

// deleteObject deletes an object of the control plane or of a member.
func deleteObject(t testing.TB, clusterClient client.Client, object client.Object) {
	t.Helper()
	if err := clusterClient.Delete(t.Context(), object); err != nil {
		t.Fatalf("deleting %T %s: %v", object, object.GetName(), err)
	}
}

// bindingOf returns an object with the name of the template's binding.
func bindingOf(t testing.TB, template client.Object) *workv1alpha2.ResourceBinding {
	t.Helper()
	created := &workv1alpha2.ResourceBinding{}
	created.Namespace, created.Name = template.GetNamespace(), binding.Name(template.GetName(), selectorOf(t, template).Kind)
	return created
}

// workOf returns an object with the name of the template's Work for a cluster.
func workOf(t testing.TB, cluster string, template client.Object) *workv1alpha1.Work {
	t.Helper()
	created := &workv1alpha1.Work{}
	created.Namespace = work.ExecutionNamespace(cluster)
	created.Name = work.Name(selectorOf(t, template).Kind, template.GetNamespace(), template.GetName())
	return created
}

// manifestOf returns the only manifest of a Work.
func manifestOf(memberWork *workv1alpha1.Work) (*unstructured.Unstructured, error) {
	if len(memberWork.Spec.Workload.Manifests) != 1 {
		return nil, fmt.Errorf("the Work has %d manifests", len(memberWork.Spec.Workload.Manifests))
	}
	manifest := &unstructured.Unstructured{}
	if err := json.Unmarshal(memberWork.Spec.Workload.Manifests[0].Raw, manifest); err != nil {
		return nil, fmt.Errorf("reading a manifest: %w", err)
	}
	return manifest, nil
}

// memberClient returns the client of a member.
func memberClient(env *testenv.Env, name string) client.Client { return env.Members[name].Client }

// awaitInMember waits until the member has an object with the name of the template and check
// returns no error for it.
func awaitInMember[T client.Object](t testing.TB, env *testenv.Env, cluster string, template T, check func(T) error) T {
	t.Helper()
	return await(t, memberClient(env, cluster), template, check)
}
