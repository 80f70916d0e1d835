// Package tenancy decides whether the author of a policy or binding may refer to an object and
// propagate it, and explains a rejection.
//
// A namespaced policy or binding acts with its author's permissions, who has permissions only in that
// namespace. Karmada's components act with administrator permissions in every cluster, so they must
// enforce the author's permissions. The rules are checked when an object is admitted, and again when
// the object is used. The second check covers objects that were stored before these rules existed or
// while admission was disabled.
//
// Invariants:
//   - An error contains the object, the violated rule and the remedy.
//   - A result depends only on the arguments.
//   - An object is forbidden unless the arguments prove that it is allowed.
package tenancy

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// ForbiddenError reports an object that may not be used. A retry does not help until the referring
// object or the control plane's flags change.
type ForbiddenError struct{ Reason string }

// Error implements error.
func (f *ForbiddenError) Error() string { return f.Reason }

func newForbiddenError(format string, args ...any) *ForbiddenError {
	return &ForbiddenError{Reason: fmt.Sprintf(format, args...)}
}

// Scope is a kind's scope, or UnknownScope.
type Scope int

// The scopes of a kind.
const (
	UnknownScope Scope = iota
	ClusterScope
	NamespaceScope
)

// CheckReference returns an error unless a binding in the given namespace may refer to the object.
// namespace is empty for a ClusterResourceBinding. A ResourceBinding may refer to an object of a
// namespaced kind in its own namespace. A ClusterResourceBinding may refer to an object of a
// cluster-scoped kind. An empty reference is allowed.
func CheckReference(namespace string, to workv1alpha2.ObjectReference, scope Scope) *ForbiddenError {
	switch {
	case to.Name == "" && to.Namespace == "":
		return nil
	case namespace == "" && to.Namespace != "":
		return newForbiddenError("a ClusterResourceBinding must not refer to %s in namespace %q; use a ResourceBinding of that namespace",
			formatReference(to), to.Namespace)
	case namespace == "" && scope == NamespaceScope:
		return newForbiddenError("a ClusterResourceBinding must not refer to %s: the kind is namespaced; use a ResourceBinding",
			formatReference(to))
	case namespace == "":
		return nil
	case scope == ClusterScope:
		return newForbiddenError("a ResourceBinding must not refer to %s: the kind is cluster-scoped; use a ClusterResourceBinding",
			formatReference(to))
	case to.Namespace == "":
		return newForbiddenError("a ResourceBinding must not refer to %s without a namespace; set spec.resource.namespace to %q",
			formatReference(to), namespace)
	case to.Namespace != namespace:
		return newForbiddenError("a ResourceBinding of namespace %q must not refer to %s in namespace %q; set spec.resource.namespace to %q",
			namespace, formatReference(to), to.Namespace, namespace)
	}
	return nil
}

// IsAllowedReference reports whether a binding in the given namespace may refer to the object. Unlike
// CheckReference, it does not need the kind's scope.
func IsAllowedReference(namespace string, to workv1alpha2.ObjectReference) bool {
	return CheckReference(namespace, to, UnknownScope) == nil
}

func formatReference(to workv1alpha2.ObjectReference) string {
	return fmt.Sprintf("%s %q", to.Kind, to.Name)
}

// PropagationRules contains the kinds and namespaces that the control plane's flags exclude from
// propagation.
type PropagationRules struct {
	APIs       SkippedAPIs
	Namespaces SkippedNamespaces
}

// Check returns an error for an object that is never propagated, regardless of policies and bindings.
func (p PropagationRules) Check(kind schema.GroupVersionKind, key types.NamespacedName) *ForbiddenError {
	object := formatObject(kind.Kind, key)
	switch {
	case p.APIs.Skips(kind) && DefaultSkippedAPIs().Skips(kind):
		return newForbiddenError("%s is never propagated: kinds of Karmada, Events and Leases stay in the cluster in which they were made; %s",
			object, removeReferenceHint)
	case p.APIs.Skips(kind):
		return newForbiddenError("%s is never propagated: --skipped-propagating-apis lists its kind; take it out of that flag, or %s", object,
			removeReferenceHint)
	case (SkippedNamespaces{}).Skips(kind, key.Namespace, key.Name):
		return newForbiddenError("%s is never propagated: it belongs to the control plane; %s", object, removeReferenceHint)
	case p.Namespaces.Skips(kind, key.Namespace, key.Name):
		return newForbiddenError("%s is never propagated: --skipped-propagating-namespaces lists its namespace; take it out of that flag, or %s",
			object, removeReferenceHint)
	}
	return nil
}

// removeReferenceHint tells users how to resolve a reference to an object that is never propagated.
const removeReferenceHint = "remove the selector or the binding that refers to it"

// formatObject returns a description of the object for messages.
func formatObject(kind string, key types.NamespacedName) string {
	return kind + " " + strings.TrimPrefix(key.String(), "/")
}

// IsSecret reports whether the kind is Secret in the core group.
func IsSecret(kind schema.GroupKind) bool {
	return kind == schema.GroupKind{Kind: "Secret"}
}

// CredentialSecrets returns the Secrets that contain the cluster's credentials.
func CredentialSecrets(cluster *clusterv1alpha1.Cluster) []types.NamespacedName {
	var secrets []types.NamespacedName
	for _, reference := range []*clusterv1alpha1.LocalSecretReference{cluster.Spec.SecretRef, cluster.Spec.ImpersonatorSecretRef} {
		if reference == nil {
			continue
		}
		key := types.NamespacedName{Namespace: reference.Namespace, Name: reference.Name}
		if !slices.Contains(secrets, key) {
			secrets = append(secrets, key)
		}
	}
	return secrets
}

// CheckCredentials returns an error for a Secret that contains the given clusters' credentials. It
// returns nil if there are no clusters.
func CheckCredentials(secret types.NamespacedName, clusters []string) *ForbiddenError {
	if len(clusters) == 0 {
		return nil
	}
	return newForbiddenError("Secret %s is never propagated: it holds the credentials of cluster %q; %s", secret, slices.Min(clusters),
		removeReferenceHint)
}

// Author describes the permissions of a policy's or binding's author.
type Author struct {
	// Namespace is the namespace in which the author has permissions.
	Namespace string
	// ClusterWide is true if only an administrator of the control plane can create the policy or
	// binding, because it is a ClusterPropagationPolicy, or a binding that a ClusterPropagationPolicy
	// claims.
	ClusterWide bool
}

// covers reports whether the author has permissions for objects in the given namespace, or for
// cluster-scoped objects if the namespace is empty.
func (a Author) covers(namespace string) bool {
	return a.ClusterWide || namespace != "" && namespace == a.Namespace
}

// CheckDependency returns an error unless the author may propagate the object as a dependency.
// key.Namespace is empty for a cluster-scoped object. key.Name is empty for objects that are selected
// by labels.
func (a Author) CheckDependency(kind string, key types.NamespacedName) *ForbiddenError {
	if a.covers(key.Namespace) {
		return nil
	}
	object, where := formatObject(kind, key), "cluster-scoped objects"
	if key.Name == "" {
		object = kind + " selected by labels"
	}
	if key.Namespace != "" {
		where = fmt.Sprintf("objects in namespace %q", key.Namespace)
	}
	return newForbiddenError("%s: an object of namespace %q must not propagate %s as dependencies; propagate them with a policy that selects them, or select the object with a ClusterPropagationPolicy",
		object, a.Namespace, where)
}

// MayTakeOver reports whether the author may take over an object that already exists in a member. An
// author may take over only objects in the author's namespace, and never a Namespace.
func (a Author) MayTakeOver(kind schema.GroupKind, namespace string) bool {
	if a.ClusterWide {
		return true
	}
	return a.covers(namespace) && kind != schema.GroupKind{Kind: "Namespace"}
}

// CheckDelivery returns an error unless the author may deliver the object to a member. An author may
// deliver only objects in the author's namespace, and never an object in one of the control plane's
// namespaces.
func (a Author) CheckDelivery(kind schema.GroupVersionKind, key types.NamespacedName) *ForbiddenError {
	if (SkippedNamespaces{}).Skips(kind, key.Namespace, key.Name) {
		return newForbiddenError("%s is never propagated: it belongs to the control plane", formatObject(kind.Kind, key))
	}
	if a.covers(key.Namespace) {
		return nil
	}
	return newForbiddenError("%s must not be delivered by a ResourceBinding of namespace %q, which delivers objects of that namespace only",
		formatObject(kind.Kind, key), a.Namespace)
}
