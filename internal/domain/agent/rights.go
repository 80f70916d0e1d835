package agent

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

const (
	roleNamePrefix     = "system:karmada:"
	impersonatorSuffix = "-impersonator"

	// LeaderLeasePrefix is followed by the name of a cluster in the Lease that the
	// replicas of its agent compete for.
	LeaderLeasePrefix = "karmada-agent-"
)

// Object is an object of the API.
type Object interface {
	metav1.Object
	runtime.Object
}

// RoleName is the name of the ClusterRole of an agent. It stands for the agent:
// all its other rights belong to it and go with it.
func RoleName(cluster string) string { return roleNamePrefix + cluster + ":agent" }

// ExecutionNamespace is where the Works of a cluster are.
func ExecutionNamespace(cluster string) string {
	return clusterv1alpha1.ExecutionSpacePrefix + cluster
}

// Rights are the roles of the agent of a cluster and what binds them to it, the
// ClusterRole first. clusterNamespace is where the Secrets of the cluster are; its
// Lease is in karmada-cluster always.
//
// Each rule names what it is about wherever the API server can tell: it cannot
// when something is created, nor for events.
func Rights(cluster, clusterNamespace string) []Object {
	role := RoleName(cluster)
	space := ExecutionNamespace(cluster)
	objects := []Object{
		&rbacv1.ClusterRole{TypeMeta: typeMeta("ClusterRole"), ObjectMeta: objectMeta("", role), Rules: generalRules(cluster, clusterNamespace)},
		&rbacv1.ClusterRoleBinding{TypeMeta: typeMeta("ClusterRoleBinding"), ObjectMeta: objectMeta("", role), RoleRef: roleRef("ClusterRole", role), Subjects: subjects(cluster)},
	}
	objects = append(objects, namespaced(cluster, clusterNamespace, role+"-secret", secretRules(cluster))...)
	objects = append(objects, namespaced(cluster, clusterv1alpha1.NamespaceKarmadaCluster, role+"-lease", leaseRules(cluster))...)
	return append(objects, namespaced(cluster, space, role+"-work", workRules())...)
}

// generalRules are about the cluster itself and what no namespace tells apart.
func generalRules(cluster, clusterNamespace string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		named(clusterv1alpha1.GroupName, "clusters", cluster, "get", "list", "watch", "update", "patch", "delete"),
		all(clusterv1alpha1.GroupName, "clusters", "create"),
		named(clusterv1alpha1.GroupName, "clusters/status", cluster, "get", "update", "patch"),
		{
			APIGroups: []string{configv1alpha1.GroupName},
			Resources: []string{"resourceinterpreterwebhookconfigurations", "resourceinterpretercustomizations"},
			Verbs:     []string{"get", "list", "watch"},
		},
		{
			APIGroups: []string{corev1.GroupName}, Resources: []string{"namespaces"}, Verbs: []string{"get"},
			ResourceNames: distinct(ExecutionNamespace(cluster), clusterNamespace, clusterv1alpha1.NamespaceKarmadaCluster),
		},
		named(coordinationv1.GroupName, "leases", LeaderLeasePrefix+cluster, "get", "update", "patch"),
		all(coordinationv1.GroupName, "leases", "create"),
		all(certificatesv1.GroupName, "certificatesigningrequests", "get", "create"),
		{APIGroups: []string{corev1.GroupName, "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch", "update"}},
		// An agent may give up what it is, as one does whose registration did not
		// end well: all its rights go with this role.
		named(rbacv1.GroupName, "clusterroles", RoleName(cluster), "get", "delete"),
	}
}

func secretRules(cluster string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{
			APIGroups: []string{corev1.GroupName}, Resources: []string{"secrets"}, Verbs: []string{"get", "patch", "update"},
			ResourceNames: []string{cluster, cluster + impersonatorSuffix},
		},
		all(corev1.GroupName, "secrets", "create"),
	}
}

func leaseRules(cluster string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{named(coordinationv1.GroupName, "leases", cluster, "get", "update", "patch")}
}

// workRules let an agent report on Works and end them. unregister deletes them with
// the credentials of the agent. What the agent may change of a Work says the admission
// policy karmada-agent.
func workRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		all(workv1alpha1.GroupName, "works", "get", "list", "watch", "update", "patch", "delete"),
		all(workv1alpha1.GroupName, "works/status", "get", "patch", "update"),
	}
}

// namespaced is a role in a namespace and its binding to the agent.
func namespaced(cluster, namespace, name string, rules []rbacv1.PolicyRule) []Object {
	return []Object{
		&rbacv1.Role{TypeMeta: typeMeta("Role"), ObjectMeta: objectMeta(namespace, name), Rules: rules},
		&rbacv1.RoleBinding{TypeMeta: typeMeta("RoleBinding"), ObjectMeta: objectMeta(namespace, name), RoleRef: roleRef("Role", name), Subjects: subjects(cluster)},
	}
}

func named(group, resource, name string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: []string{name}, Verbs: verbs}
}

func all(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

func objectMeta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name,
		Labels: map[string]string{clusterv1alpha1.KarmadaSystemLabel: clusterv1alpha1.KarmadaSystemLabelValue},
	}
}

func roleRef(kind, name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
}

func subjects(cluster string) []rbacv1.Subject {
	return []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: User(cluster)}}
}

// distinct keeps the first of equal names.
func distinct(names ...string) []string {
	var kept []string
	seen := map[string]bool{}
	for _, name := range names {
		if !seen[name] {
			kept = append(kept, name)
		}
		seen[name] = true
	}
	return kept
}
