package unifiedauth

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/domain/impersonation"
)

// All are read unstructured, as templates are, to share their caches.
var (
	namespaces          = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	clusterRoles        = rbacv1.SchemeGroupVersion.WithKind("ClusterRole")
	clusterRoleBindings = rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding")
)

func empty(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}

// subjects are those who may go through the control plane to the cluster. Of the
// many roles and bindings that every control plane has, only the few that matter
// are converted.
func (r *reconciler) subjects(ctx context.Context, cluster string) (impersonation.Subjects, error) {
	var roles []rbacv1.ClusterRole
	concerned := map[string]bool{}
	err := r.each(ctx, clusterRoles, func(object *unstructured.Unstructured) error {
		role, err := roleOf(object)
		if err == nil && impersonation.Concerns(role.Rules) {
			roles, concerned[role.Name] = append(roles, role), true
		}
		return err
	})
	if err != nil {
		return impersonation.Subjects{}, err
	}
	var bindings []rbacv1.ClusterRoleBinding
	err = r.each(ctx, clusterRoleBindings, func(object *unstructured.Unstructured) error {
		if !concerned[roleNameOf(object)] {
			return nil
		}
		binding, err := bindingOf(object)
		bindings = append(bindings, binding)
		return err
	})
	return impersonation.SubjectsOf(roles, bindings, cluster), err
}

// each calls visit with every object of a kind, which it must not change.
func (r *reconciler) each(ctx context.Context, kind schema.GroupVersionKind, visit func(*unstructured.Unstructured) error) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := r.karmada.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing %s objects: %w", kind.Kind, err)
	}
	for i := range list.Items {
		if err := visit(&list.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// roleOf is the name and the rules of a ClusterRole.
func roleOf(object *unstructured.Unstructured) (rbacv1.ClusterRole, error) {
	role := rbacv1.ClusterRole{}
	if err := pick(object, &role, "rules"); err != nil {
		return rbacv1.ClusterRole{}, err
	}
	role.Name = object.GetName()
	return role, nil
}

// bindingOf is the role and the subjects of a ClusterRoleBinding.
func bindingOf(object *unstructured.Unstructured) (rbacv1.ClusterRoleBinding, error) {
	binding := rbacv1.ClusterRoleBinding{}
	return binding, pick(object, &binding, "roleRef", "subjects")
}

// roleNameOf is the name of the role that a ClusterRoleBinding binds to.
func roleNameOf(object *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(object.Object, "roleRef", "name")
	return name
}

// pick converts some fields of an object.
func pick(object *unstructured.Unstructured, into any, fields ...string) error {
	part := map[string]any{}
	for _, field := range fields {
		if value, found := object.Object[field]; found {
			part[field] = value
		}
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(part, into); err != nil {
		return fmt.Errorf("converting %s %q: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}
