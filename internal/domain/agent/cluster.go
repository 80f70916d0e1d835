package agent

import (
	"errors"
	"fmt"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// ReadableSecrets returns the names of the Secrets that a cluster's agent may read. No other cluster may
// have one of these names.
func ReadableSecrets(cluster string) []string {
	return []string{cluster, cluster + impersonatorSuffix}
}

// IsAgent reports whether the rules for agents apply to the user. They also apply to a user with an agent's
// name if no cluster can have that agent.
func IsAgent(user string) bool { return strings.HasPrefix(user, UserPrefix) }

// ErrNotRegistered means that the registration of an agent ended.
var ErrNotRegistered = errors.New("the registration of this agent ended: register the cluster again")

// IsRegistered reports whether the ClusterRole gives an agent its permissions. It returns false for a role
// that reserves the name for a cluster without an agent.
func IsRegistered(role *rbacv1.ClusterRole) bool {
	return role.DeletionTimestamp == nil && role.Annotations[clusterv1alpha1.AgentRequestAnnotation] != clusterv1alpha1.NameReservation
}

// ClusterRules limit what an agent may write in its Cluster.
type ClusterRules struct {
	// CanReadSecret reports whether the agent can read a Secret.
	CanReadSecret func(clusterv1alpha1.LocalSecretReference) bool
	// Addresses limit the cluster's addresses.
	Addresses AddressRules
	// Scope is the scope of the token with which the agent registered.
	Scope Scope
	// ReceivedAt is the time when the request was received, or zero if it is not known.
	ReceivedAt time.Time
}

// ValidateRequest returns an error if the agent that sent a request is not the stored Cluster's agent:
// because the Cluster has no agent, or because it replaced a Cluster of the same name after the request was
// received. An agent can delay the body of a request that was authorized for an earlier Cluster.
// ValidateRequest returns nil for other users.
func ValidateRequest(user string, stored *clusterv1alpha1.Cluster, receivedAt time.Time) *field.Error {
	switch {
	case !IsAgent(user):
		return nil
	case stored.Spec.SyncMode != clusterv1alpha1.Pull:
		return field.Forbidden(field.NewPath("spec", "syncMode"),
			fmt.Sprintf("Cluster %q is in %s mode, so no agent may change it; if this is intended, an administrator runs: kubectl edit cluster %[1]s", stored.Name, stored.Spec.SyncMode))
	case !receivedAt.IsZero() && receivedAt.Before(stored.CreationTimestamp.Time):
		return field.Forbidden(field.NewPath("metadata", "creationTimestamp"),
			fmt.Sprintf("Cluster %q was created after this request was received: repeat the request", stored.Name))
	}
	return nil
}

// ValidateCluster returns the errors in a Cluster that the user writes. stored is the Cluster
// before the write, or nil for a new Cluster. It returns no errors for users other than agents, nor
// for values that are stored already.
//
// An agent may write only its own Cluster. RBAC cannot ensure this, because it cannot restrict the
// name in a create request. After the creation the agent may change only the fields in
// ConnectionFields. The agent must not make the control plane send the credentials of others to the
// address of its cluster. So the Cluster may refer only to Secrets that the agent itself can read,
// in any namespace.
func ValidateCluster(user string, written, stored *clusterv1alpha1.Cluster, rules ClusterRules) field.ErrorList {
	if !IsAgent(user) {
		return nil
	}
	var errs field.ErrorList
	forbid := func(path *field.Path, format string, args ...any) {
		errs = append(errs, field.Forbidden(path, fmt.Sprintf(format, args...)))
	}
	spec := field.NewPath("spec")
	own, ok := ClusterOf(user)
	if !ok || written.Name != own {
		forbid(field.NewPath("metadata", "name"), "user %s may write its own Cluster only", user)
	}
	if stored == nil {
		stored = &clusterv1alpha1.Cluster{}
		errs = append(errs, validateCreation(written)...)
		errs = append(errs, rules.Scope.validate(written)...)
		if written.Spec.SyncMode != clusterv1alpha1.Pull {
			forbid(spec.Child("syncMode"), "a cluster with an agent is in Pull mode")
		}
	} else {
		if err := ValidateRequest(user, stored, rules.ReceivedAt); err != nil {
			return field.ErrorList{err}
		}
		errs = append(errs, validateChange(written, stored)...)
	}
	errs = append(errs, rules.Addresses.validate(written, stored)...)
	for _, each := range []struct {
		field, name string
		secret, old *clusterv1alpha1.LocalSecretReference
	}{
		{"secretRef", own, written.Spec.SecretRef, stored.Spec.SecretRef},
		{"impersonatorSecretRef", own + impersonatorSuffix, written.Spec.ImpersonatorSecretRef, stored.Spec.ImpersonatorSecretRef},
	} {
		kept := each.secret == nil || each.old != nil && *each.secret == *each.old
		switch {
		case kept:
		case each.secret.Name != each.name:
			forbid(spec.Child(each.field, "name"), "the Secret of this cluster must have the name %q", each.name)
		case !rules.CanReadSecret(*each.secret):
			forbid(spec.Child(each.field, "namespace"),
				"user %s may not read Secret %s/%s, so it cannot be that of its cluster; Secrets of clusters are in %s unless the cluster was registered with --cluster-namespace",
				user, each.secret.Namespace, each.secret.Name, clusterv1alpha1.NamespaceKarmadaCluster)
		}
	}
	return errs
}

func isExecutionNamespace(name string) bool {
	return strings.HasPrefix(name, clusterv1alpha1.ExecutionNamespacePrefix)
}
