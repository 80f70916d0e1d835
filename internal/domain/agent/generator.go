package agent

import (
	"fmt"
	"strings"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// GeneratedFor returns the cluster for which GeneratorUser writes a role, role binding or namespace
// with the given name. It returns an empty string for all other names.
func GeneratedFor(name string) string {
	if cluster, ok := strings.CutPrefix(name, clusterv1alpha1.ExecutionNamespacePrefix); ok {
		return cluster
	}
	rest, ok := strings.CutPrefix(name, roleNamePrefix)
	if !ok {
		return ""
	}
	cluster, role, _ := strings.Cut(rest, ":")
	if !strings.HasPrefix(role, "agent") {
		return ""
	}
	return cluster
}

// ClusterExistsError is the error for a write of GeneratorUser for a cluster that exists.
func ClusterExistsError(cluster string) error {
	return fmt.Errorf("cluster %q exists, and user %s prepares only the registration of new clusters: choose another name, or unregister or unjoin that cluster first", cluster, GeneratorUser)
}
