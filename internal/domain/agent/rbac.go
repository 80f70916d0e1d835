package agent

import (
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/work"
)

const (
	roleNamePrefix     = "system:karmada:"
	impersonatorSuffix = "-impersonator"

	// LeaderLeasePrefix is the prefix of the Lease for leader election between an agent's replicas. The
	// cluster's name follows it.
	LeaderLeasePrefix = "karmada-agent-"
)

// Object is an object of the API.
type Object interface {
	metav1.Object
	runtime.Object
}

// RoleName returns the name of an agent's ClusterRole. This role owns all other RBAC objects of the agent,
// so they are deleted with the role.
func RoleName(cluster string) string { return roleNamePrefix + cluster + ":agent" }

// RBACObjects returns the roles and role bindings for a cluster's agent, the ClusterRole first.
// clusterNamespace is the namespace of the cluster's Secrets. The cluster's Lease is always in
// karmada-cluster.
//
// Each rule contains the names of its objects unless RBAC cannot check them, as for create requests and
// events.
func RBACObjects(cluster, clusterNamespace string) []Object {
	role := RoleName(cluster)
	space := work.ExecutionNamespace(cluster)
	objects := []Object{
		&rbacv1.ClusterRole{TypeMeta: typeMeta("ClusterRole"), ObjectMeta: objectMeta("", role), Rules: generalRules(cluster, clusterNamespace)},
		&rbacv1.ClusterRoleBinding{TypeMeta: typeMeta("ClusterRoleBinding"), ObjectMeta: objectMeta("", role),
			RoleRef: roleRef("ClusterRole", role), Subjects: agentSubjects(cluster)},
	}
	objects = append(objects, namespacedRole(cluster, clusterNamespace, role+"-secret", secretRules(cluster))...)
	objects = append(objects, namespacedRole(cluster, clusterv1alpha1.NamespaceKarmadaCluster, role+"-lease", leaseRules(cluster))...)
	objects = append(objects, epochObjects(cluster)...)
	return append(objects, namespacedRole(cluster, space, role+"-work", workRules())...)
}

// RemovalObjects returns the Roles and RoleBindings that let a cluster's agent delete objects, for an agent
// that another release registered. Such an agent must be able to read the control plane's epoch and to
// remove finalizers from Works.
func RemovalObjects(cluster string) []Object {
	return append(epochObjects(cluster), namespacedRole(cluster, work.ExecutionNamespace(cluster), RoleName(cluster)+"-removal",
		workRules())...)
}

// Bindings returns the role bindings in RBACObjects.
func Bindings(cluster, clusterNamespace string) []Object {
	return slices.DeleteFunc(RBACObjects(cluster, clusterNamespace), func(object Object) bool {
		switch object.(type) {
		case *rbacv1.ClusterRoleBinding, *rbacv1.RoleBinding:
			return false
		}
		return true
	})
}

// Binds reports whether a role binding has a cluster's agent as a subject.
func Binds(binding metav1.Object, cluster string) bool {
	var subjects []rbacv1.Subject
	switch binding := binding.(type) {
	case *rbacv1.ClusterRoleBinding:
		subjects = binding.Subjects
	case *rbacv1.RoleBinding:
		subjects = binding.Subjects
	}
	return slices.Contains(subjects, agentSubjects(cluster)[0])
}

// epochObjects returns the Role with which the agent of a cluster reads the control plane's epoch, and its
// RoleBinding. Without this permission, the agent deletes no objects.
func epochObjects(cluster string) []Object {
	return namespacedRole(cluster, clusterv1alpha1.NamespaceKarmadaSystem, RoleName(cluster)+"-epoch", []rbacv1.PolicyRule{
		ruleForName(corev1.GroupName, "configmaps", clusterv1alpha1.EpochName, "get", "list", "watch"),
	})
}

// generalRules returns the rules of an agent's ClusterRole: the rules for the Cluster itself, and for
// objects that are not in a namespace of this cluster.
func generalRules(cluster, clusterNamespace string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		ruleForName(clusterv1alpha1.GroupName, "clusters", cluster, "get", "list", "watch", "update", "patch", "delete"),
		ruleForAll(clusterv1alpha1.GroupName, "clusters", "create"),
		ruleForName(clusterv1alpha1.GroupName, "clusters/status", cluster, "get", "update", "patch"),
		{
			APIGroups: []string{configv1alpha1.GroupName},
			Resources: []string{"resourceinterpreterwebhookconfigurations", "resourceinterpretercustomizations"},
			Verbs:     []string{"get", "list", "watch"},
		},
		{
			APIGroups: []string{corev1.GroupName}, Resources: []string{"namespaces"}, Verbs: []string{"get"},
			// The UID of kube-system is the control plane's ID.
			ResourceNames: withoutDuplicates(work.ExecutionNamespace(cluster), clusterNamespace, clusterv1alpha1.NamespaceKarmadaCluster,
				metav1.NamespaceSystem),
		},
		ruleForName(coordinationv1.GroupName, "leases", LeaderLeasePrefix+cluster, "get", "update", "patch"),
		ruleForAll(coordinationv1.GroupName, "leases", "create"),
		ruleForAll(certificatesv1.GroupName, "certificatesigningrequests", "get", "create"),
		{APIGroups: []string{corev1.GroupName, "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch", "update"}},
		// An agent may delete its own role, for example after a failed registration. All its permissions
		// are deleted with this role.
		ruleForName(rbacv1.GroupName, "clusterroles", RoleName(cluster), "get", "delete"),
	}
}

func secretRules(cluster string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{
			APIGroups: []string{corev1.GroupName}, Resources: []string{"secrets"}, Verbs: []string{"get", "patch", "update"},
			ResourceNames: []string{cluster, cluster + impersonatorSuffix},
		},
		ruleForAll(corev1.GroupName, "secrets", "create"),
	}
}

func leaseRules(cluster string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{ruleForName(coordinationv1.GroupName, "leases", cluster, "get", "update", "patch")}
}

// workRules returns the rules that let an agent write the status of Works and delete Works. The command
// unregister deletes Works with the agent's credentials. The admission policy karmada-agent restricts which
// fields of a Work the agent may change.
func workRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		ruleForAll(workv1alpha1.GroupName, "works", "get", "list", "watch", "update", "patch", "delete"),
		ruleForAll(workv1alpha1.GroupName, "works/status", "get", "patch", "update"),
	}
}

// namespacedRole returns a Role in a namespace and the RoleBinding that binds the Role to the
// agent.
func namespacedRole(cluster, namespace, name string, rules []rbacv1.PolicyRule) []Object {
	return []Object{
		&rbacv1.Role{TypeMeta: typeMeta("Role"), ObjectMeta: objectMeta(namespace, name), Rules: rules},
		&rbacv1.RoleBinding{TypeMeta: typeMeta("RoleBinding"), ObjectMeta: objectMeta(namespace, name), RoleRef: roleRef("Role", name),
			Subjects: agentSubjects(cluster)},
	}
}

func ruleForName(group, resource, name string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: []string{name}, Verbs: verbs}
}

func ruleForAll(group, resource string, verbs ...string) rbacv1.PolicyRule {
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

func agentSubjects(cluster string) []rbacv1.Subject {
	return []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: User(cluster)}}
}

// withoutDuplicates keeps the first of equal names.
func withoutDuplicates(names ...string) []string {
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
