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

// cleanUp deletes objects of the control plane with the test. Only what has no
// namespace needs it.
func cleanUp(t testing.TB, env *testenv.Env, objects ...client.Object) {
	t.Cleanup(func() {
		for _, object := range objects {
			if err := client.IgnoreNotFound(env.Karmada.Delete(context.WithoutCancel(t.Context()), object)); err != nil {
				t.Errorf("deleting %T %s: %v", object, object.GetName(), err)
			}
		}
	})
}

// await waits until an object is there and check finds nothing wrong with it.
func await[T client.Object](t testing.TB, side client.Client, object T, check func(T) error) T {
	t.Helper()
	testenv.Eventually(t, fmt.Sprintf("%T %s", object, client.ObjectKeyFromObject(object)), func(ctx context.Context) error {
		// What was read before must not shine through what is read now.
		fresh, ok := empty(object).(T)
		if !ok {
			return fmt.Errorf("%T does not copy itself", object)
		}
		if err := side.Get(ctx, client.ObjectKeyFromObject(object), fresh); err != nil {
			return err
		}
		object = fresh
		return check(fresh)
	})
	return object
}

// awaitGone waits until an object is not there.
func awaitGone(t testing.TB, side client.Client, object client.Object) {
	t.Helper()
	testenv.Eventually(t, fmt.Sprintf("end of %T %s", object, client.ObjectKeyFromObject(object)), func(ctx context.Context) error {
		return absent(ctx, side, object)
	})
}

// absent tells how an object is there nevertheless.
func absent(ctx context.Context, side client.Client, object client.Object) error {
	err := side.Get(ctx, client.ObjectKeyFromObject(object), empty(object))
	if err == nil {
		return errors.New("it is there")
	}
	return client.IgnoreNotFound(err)
}

// empty is an object of the same kind with nothing but name and namespace.
func empty(object client.Object) client.Object {
	kind, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		return nil
	}
	var fresh client.Object = &unstructured.Unstructured{}
	if _, ok := object.(*unstructured.Unstructured); !ok {
		made, err := scheme.New(kind)
		if err != nil {
			return nil
		}
		if fresh, ok = made.(client.Object); !ok {
			return nil
		}
	}
	fresh.GetObjectKind().SetGroupVersionKind(kind)
	fresh.SetNamespace(object.GetNamespace())
	fresh.SetName(object.GetName())
	return fresh
}

func exists[T client.Object](T) error { return nil }

// same tells how a value differs from what it has to be.
func same(what string, want, got any) error {
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("%s (-want +got):\n%s", what, diff)
	}
	return nil
}

// deleteObject deletes an object of the control plane or of a member.
func deleteObject(t testing.TB, side client.Client, object client.Object) {
	t.Helper()
	if err := side.Delete(t.Context(), object); err != nil {
		t.Fatalf("deleting %T %s: %v", object, object.GetName(), err)
	}
}

// bindingOf is the empty binding that a template has or will have.
func bindingOf(t testing.TB, template client.Object) *workv1alpha2.ResourceBinding {
	t.Helper()
	made := &workv1alpha2.ResourceBinding{}
	made.Namespace, made.Name = template.GetNamespace(), binding.Name(template.GetName(), selectorOf(t, template).Kind)
	return made
}

// workOf is the empty Work that a template has or will have for a cluster.
func workOf(t testing.TB, cluster string, template client.Object) *workv1alpha1.Work {
	t.Helper()
	made := &workv1alpha1.Work{}
	made.Namespace = work.ExecutionNamespace(cluster)
	made.Name = work.Name(selectorOf(t, template).Kind, template.GetNamespace(), template.GetName())
	return made
}

// manifestOf is the only manifest of a Work.
func manifestOf(of *workv1alpha1.Work) (*unstructured.Unstructured, error) {
	if len(of.Spec.Workload.Manifests) != 1 {
		return nil, fmt.Errorf("the Work has %d manifests", len(of.Spec.Workload.Manifests))
	}
	manifest := &unstructured.Unstructured{}
	if err := json.Unmarshal(of.Spec.Workload.Manifests[0].Raw, manifest); err != nil {
		return nil, fmt.Errorf("reading a manifest: %w", err)
	}
	return manifest, nil
}

// member is the client of a member.
func member(env *testenv.Env, name string) client.Client { return env.Members[name].Client }

// inMember waits until a member holds an object of the template's name and check
// finds nothing wrong with it.
func inMember[T client.Object](t testing.TB, env *testenv.Env, cluster string, template T, check func(T) error) T {
	t.Helper()
	return await(t, member(env, cluster), template, check)
}
