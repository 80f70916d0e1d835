package agent

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// ReadableSecrets are the names of the Secrets that the agent of a cluster may
// read, which no other cluster must have for a name.
func ReadableSecrets(cluster string) []string {
	return []string{cluster, cluster + impersonatorSuffix}
}

// IsAgent reports whether the user is held to what agents may do. That includes users
// with the name of an agent that no cluster can have.
func IsAgent(user string) bool { return strings.HasPrefix(user, UserPrefix) }

// ValidateCluster returns what is wrong with a Cluster that the user writes. An agent
// may write its own only, which no role can say of one that is created. After the
// creation it may change only how its cluster is reached, see ReachFields. It must not
// make the control plane use the credentials of others for what it says its
// address is: only those that it could read itself, which readable tells, in whatever
// namespace they are. Nothing is wrong with what others write, nor with what stored,
// the Cluster before the write or nil, holds already.
func ValidateCluster(user string, written, stored *clusterv1alpha1.Cluster, readable func(clusterv1alpha1.LocalSecretReference) bool) field.ErrorList {
	if !IsAgent(user) {
		return nil
	}
	var wrong field.ErrorList
	forbid := func(path *field.Path, format string, args ...any) {
		wrong = append(wrong, field.Forbidden(path, fmt.Sprintf(format, args...)))
	}
	spec := field.NewPath("spec")
	own, ok := ClusterOf(user)
	if !ok || written.Name != own {
		forbid(field.NewPath("metadata", "name"), "user %s may write its own Cluster only", user)
	}
	if stored == nil {
		stored = &clusterv1alpha1.Cluster{}
		wrong = append(wrong, validateCreation(written)...)
		if written.Spec.SyncMode != clusterv1alpha1.Pull {
			forbid(spec.Child("syncMode"), "a cluster with an agent is in Pull mode")
		}
	} else {
		wrong = append(wrong, validateChange(written, stored)...)
	}
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
			forbid(spec.Child(each.field, "name"), "the Secret of this cluster is %q", each.name)
		case !readable(*each.secret):
			forbid(spec.Child(each.field, "namespace"), "user %s may not read Secret %s/%s, so it cannot be that of its cluster; Secrets of clusters are in %s unless the cluster was registered with --cluster-namespace",
				user, each.secret.Namespace, each.secret.Name, clusterv1alpha1.NamespaceKarmadaCluster)
		}
	}
	return wrong
}

func isExecutionNamespace(name string) bool {
	return strings.HasPrefix(name, clusterv1alpha1.ExecutionSpacePrefix)
}
