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

// These kinds are read as unstructured objects, so that this controller shares the caches that contain
// templates.
var (
	namespaces          = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	clusterRoles        = rbacv1.SchemeGroupVersion.WithKind("ClusterRole")
	clusterRoleBindings = rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding")
)

func newUnstructured(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}

// allowedSubjects returns the subjects that may access the cluster through the control plane. It
// converts only the relevant roles and bindings, because a control plane has many of them.
func (r *reconciler) allowedSubjects(ctx context.Context, cluster string) (impersonation.Subjects, error) {
	var roles []rbacv1.ClusterRole
	withAccess := map[string]bool{}
	err := r.forEachObject(ctx, clusterRoles, func(object *unstructured.Unstructured) error {
		role, err := roleOf(object)
		if err == nil && impersonation.AllowsAnyCluster(role.Rules) {
			roles, withAccess[role.Name] = append(roles, role), true
		}
		return err
	})
	if err != nil {
		return impersonation.Subjects{}, err
	}
	var bindings []rbacv1.ClusterRoleBinding
	err = r.forEachObject(ctx, clusterRoleBindings, func(object *unstructured.Unstructured) error {
		if !withAccess[roleNameOf(object)] {
			return nil
		}
		binding, err := bindingOf(object)
		bindings = append(bindings, binding)
		return err
	})
	return impersonation.SubjectsOf(roles, bindings, cluster), err
}

// forEachObject calls visit with every object of the given kind. visit must not change the object.
func (r *reconciler) forEachObject(ctx context.Context, kind schema.GroupVersionKind, visit func(*unstructured.Unstructured) error) error {
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

// roleOf returns the name and the rules of a ClusterRole.
func roleOf(object *unstructured.Unstructured) (rbacv1.ClusterRole, error) {
	role := rbacv1.ClusterRole{}
	if err := convertFields(object, &role, "rules"); err != nil {
		return rbacv1.ClusterRole{}, err
	}
	role.Name = object.GetName()
	return role, nil
}

// bindingOf returns the role reference and the subjects of a ClusterRoleBinding.
func bindingOf(object *unstructured.Unstructured) (rbacv1.ClusterRoleBinding, error) {
	binding := rbacv1.ClusterRoleBinding{}
	return binding, convertFields(object, &binding, "roleRef", "subjects")
}

// roleNameOf returns the name of the role to which a ClusterRoleBinding refers.
func roleNameOf(object *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(object.Object, "roleRef", "name")
	return name
}

// convertFields converts only the given fields of an object.
func convertFields(object *unstructured.Unstructured, into any, fields ...string) error {
	selected := map[string]any{}
	for _, field := range fields {
		if value, found := object.Object[field]; found {
			selected[field] = value
		}
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(selected, into); err != nil {
		return fmt.Errorf("converting %s %q: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}
