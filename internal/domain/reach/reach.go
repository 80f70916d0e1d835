// Package reach answers: may this party, from this namespace, reach this object,
// and if not, why not?
//
// A namespaced policy or binding acts with the rights of its author, who has rights
// in that namespace alone. The components act with the rights of an administrator
// of every cluster. So the same questions are asked when an object is admitted and
// again when something is made of it: the second answer holds for objects that
// were stored before, or while admission was off.
//
// Invariants:
//   - a refusal names the object, what is wrong with it and what to do instead;
//   - an answer depends on nothing but the arguments, and never on who asks;
//   - what cannot be proven to be within reach is out of reach.
package reach

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// RefusedError says why an object is out of reach. Only a change of the object
// that refers to it, or of the flags of the control plane, can help.
type RefusedError struct{ Reason string }

// Error implements error.
func (r *RefusedError) Error() string { return r.Reason }

func refuse(format string, args ...any) *RefusedError {
	return &RefusedError{Reason: fmt.Sprintf(format, args...)}
}

// Scope is the scope of a kind, as far as it is known.
type Scope int

// The scopes of kinds.
const (
	UnknownScope Scope = iota
	ClusterScope
	NamespaceScope
)

// Bound returns a refusal unless a binding of a namespace may refer to the object.
// The namespace of a ClusterResourceBinding is empty. A ResourceBinding refers to a
// namespaced kind in its own namespace, a ClusterResourceBinding to a
// cluster-scoped kind. A reference without a name refers to nothing and passes.
func Bound(namespace string, to workv1alpha2.ObjectReference, scope Scope) *RefusedError {
	switch {
	case to.Name == "" && to.Namespace == "":
		return nil
	case namespace == "" && to.Namespace != "":
		return refuse("a ClusterResourceBinding must not refer to %s in namespace %q; use a ResourceBinding of that namespace", describe(to), to.Namespace)
	case namespace == "" && scope == NamespaceScope:
		return refuse("a ClusterResourceBinding must not refer to %s: the kind is namespaced; use a ResourceBinding", describe(to))
	case namespace == "":
		return nil
	case scope == ClusterScope:
		return refuse("a ResourceBinding must not refer to %s: the kind is cluster-scoped; use a ClusterResourceBinding", describe(to))
	case to.Namespace == "":
		return refuse("a ResourceBinding must not refer to %s without a namespace; set spec.resource.namespace to %q", describe(to), namespace)
	case to.Namespace != namespace:
		return refuse("a ResourceBinding of namespace %q must not refer to %s in namespace %q; set spec.resource.namespace to %q", namespace, describe(to), to.Namespace, namespace)
	}
	return nil
}

// IsBound reports whether a binding of a namespace may refer to the object, as far as
// that is known without the scope of its kind.
func IsBound(namespace string, to workv1alpha2.ObjectReference) bool {
	return Bound(namespace, to, UnknownScope) == nil
}

func describe(to workv1alpha2.ObjectReference) string {
	return fmt.Sprintf("%s %q", to.Kind, to.Name)
}

// Propagated is what the flags of a control plane say about templates.
type Propagated struct {
	APIs       SkippedAPIs
	Namespaces SkippedNamespaces
}

// Refuses returns a refusal for an object that is never propagated, whatever
// policies and bindings say.
func (p Propagated) Refuses(kind schema.GroupVersionKind, key types.NamespacedName) *RefusedError {
	object := name(kind.Kind, key)
	switch {
	case p.APIs.Skips(kind) && DefaultSkippedAPIs().Skips(kind):
		return refuse("%s is never propagated: kinds of Karmada, Events and Leases stay in the cluster in which they were made; %s", object, removeReference)
	case p.APIs.Skips(kind):
		return refuse("%s is never propagated: --skipped-propagating-apis lists its kind; take it out of that flag, or %s", object, removeReference)
	case (SkippedNamespaces{}).Skips(kind, key.Namespace, key.Name):
		return refuse("%s is never propagated: it belongs to the control plane; %s", object, removeReference)
	case p.Namespaces.Skips(kind, key.Namespace, key.Name):
		return refuse("%s is never propagated: --skipped-propagating-namespaces lists its namespace; take it out of that flag, or %s", object, removeReference)
	}
	return nil
}

// removeReference is what an author does about an object that is never propagated.
const removeReference = "remove the selector or the binding that refers to it"

// name is an object as it is written in a message.
func name(kind string, key types.NamespacedName) string {
	return kind + " " + strings.TrimPrefix(key.String(), "/")
}

// IsSecret reports whether the kind is that of Secrets.
func IsSecret(kind schema.GroupKind) bool {
	return kind == schema.GroupKind{Kind: "Secret"}
}

// SecretsOf returns the Secrets that hold the credentials of a cluster.
func SecretsOf(cluster *clusterv1alpha1.Cluster) []types.NamespacedName {
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

// Credentials returns the refusal of a Secret that holds the credentials of
// clusters, nil when there are no such clusters.
func Credentials(secret types.NamespacedName, clusters []string) *RefusedError {
	if len(clusters) == 0 {
		return nil
	}
	return refuse("Secret %s is never propagated: it holds the credentials of cluster %q; %s", secret, slices.Min(clusters), removeReference)
}

// Party is what acts on objects for its author.
type Party struct {
	// Namespace is where the author has rights.
	Namespace string
	// Cluster is true for a party that only an administrator of the control plane can
	// make: a ClusterPropagationPolicy, and a binding that one claims.
	Cluster bool
}

// reaches reports whether an object in a namespace, or a cluster-scoped object, is
// within the rights of the author.
func (p Party) reaches(namespace string) bool {
	return p.Cluster || namespace != "" && namespace == p.Namespace
}

// TakesAlong returns a refusal unless an object may follow an object of the party to its
// clusters. The namespace of a cluster-scoped object is empty, and so is the name of
// objects that labels select.
func (p Party) TakesAlong(kind string, key types.NamespacedName) *RefusedError {
	if p.reaches(key.Namespace) {
		return nil
	}
	object, where := name(kind, key), "cluster-scoped objects"
	if key.Name == "" {
		object = kind + " selected by labels"
	}
	if key.Namespace != "" {
		where = fmt.Sprintf("objects in namespace %q", key.Namespace)
	}
	return refuse("%s: an object of namespace %q must not take along %s; propagate them with a policy that selects them, or select the object with a ClusterPropagationPolicy",
		object, p.Namespace, where)
}

// TakesOver reports whether the party may take over an object that a member already
// has: one of its own namespace, and never a Namespace.
func (p Party) TakesOver(kind schema.GroupKind, namespace string) bool {
	if p.Cluster {
		return true
	}
	return p.reaches(namespace) && kind != schema.GroupKind{Kind: "Namespace"}
}

// Delivers returns a refusal unless the party may have an object in a member: one of its
// own namespace, and never one of a namespace of the control plane.
func (p Party) Delivers(kind schema.GroupVersionKind, key types.NamespacedName) *RefusedError {
	if (SkippedNamespaces{}).Skips(kind, key.Namespace, key.Name) {
		return refuse("%s is never propagated: it belongs to the control plane", name(kind.Kind, key))
	}
	if p.reaches(key.Namespace) {
		return nil
	}
	return refuse("%s is out of reach of a ResourceBinding of namespace %q, which delivers objects of that namespace only", name(kind.Kind, key), p.Namespace)
}
