// Package impersonation determines which users the control plane may impersonate in a member
// cluster. The control plane forwards requests to a member with the token of the impersonator and
// the name of the user. The member accepts such requests only for users that a ClusterRole of the
// member lists. This package creates that ClusterRole.
//
// Invariants:
//   - The ClusterRole of a cluster contains only users who can access the cluster by a
//     ClusterRoleBinding. Roles and RoleBindings are ignored.
//   - The result does not depend on the order of the given objects, so an unchanged control plane
//     creates an unchanged ClusterRole.
//   - The ClusterRole itself grants no access to objects of the member. The member authorizes every
//     request of the impersonated user.
package impersonation

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	searchv1alpha1 "karmada.io/karmada/api/search/v1alpha1"
)

// everyCluster is the resource name that means the proxy to all clusters.
const everyCluster = "*"

// serviceAccountPrefix is the prefix of user names of service accounts. The user name ends with the
// namespace and the name of the service account.
const serviceAccountPrefix = "system:serviceaccount:"

// Subjects holds the names of the subjects that may be impersonated, sorted and unique. The names
// of service accounts are stored without the namespace.
type Subjects struct {
	Users, ServiceAccounts, Groups []string
}

// AllowsAnyCluster reports whether rules allow access to any cluster. Roles without such rules
// need not be passed to SubjectsOf.
func AllowsAnyCluster(rules []rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool { return allowsClusterProxy(rule) || allowsSearchProxy(rule) })
}

// AllowsCluster reports whether rules allow access to the cluster of that name: to the proxy of the
// cluster, to the proxy for all clusters, or to the proxy of karmada-search. Verbs are ignored,
// because the user of a request with any verb must be impersonated in the member.
func AllowsCluster(rules []rbacv1.PolicyRule, cluster string) bool {
	return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
		return allowsSearchProxy(rule) || allowsClusterProxy(rule) &&
			(len(rule.ResourceNames) == 0 || containsAny(rule.ResourceNames, cluster, everyCluster))
	})
}

func allowsClusterProxy(rule rbacv1.PolicyRule) bool {
	return allowsProxy(rule, clusterv1alpha1.GroupName, "clusters")
}

func allowsSearchProxy(rule rbacv1.PolicyRule) bool {
	return allowsProxy(rule, searchv1alpha1.GroupName, "proxying")
}

// allowsProxy reports whether a rule includes the proxy subresource of the given resource. RBAC
// also supports */proxy for the proxies of all resources.
func allowsProxy(rule rbacv1.PolicyRule, group, resource string) bool {
	return containsAny(rule.APIGroups, rbacv1.APIGroupAll, group) &&
		containsAny(rule.Resources, rbacv1.ResourceAll, resource+"/proxy", "*/proxy")
}

func containsAny(list []string, wanted ...string) bool {
	return slices.ContainsFunc(wanted, func(value string) bool { return slices.Contains(list, value) })
}

// SubjectsOf returns the subjects of all bindings to roles that allow access to the cluster.
// Bindings whose role is not in roles are ignored.
func SubjectsOf(roles []rbacv1.ClusterRole, bindings []rbacv1.ClusterRoleBinding, cluster string) Subjects {
	allowed := map[string]bool{}
	for i := range roles {
		allowed[roles[i].Name] = AllowsCluster(roles[i].Rules, cluster)
	}
	var found Subjects
	for i := range bindings {
		if ref := bindings[i].RoleRef; ref.Kind == "ClusterRole" && allowed[ref.Name] {
			found.add(bindings[i].Subjects)
		}
	}
	for _, names := range []*[]string{&found.Users, &found.ServiceAccounts, &found.Groups} {
		slices.Sort(*names)
		*names = slices.Compact(*names)
	}
	return found
}

func (s *Subjects) add(subjects []rbacv1.Subject) {
	for _, subject := range subjects {
		switch subject.Kind {
		case rbacv1.UserKind:
			s.addUser(subject.Name)
		case rbacv1.ServiceAccountKind:
			s.ServiceAccounts = append(s.ServiceAccounts, subject.Name)
		case rbacv1.GroupKind:
			s.Groups = append(s.Groups, subject.Name)
		}
	}
}

// addUser adds a user. If the user name is that of a service account, addUser adds the service
// account, because the permission to impersonate service accounts is separate from the one for
// users.
func (s *Subjects) addUser(name string) {
	if account, ok := strings.CutPrefix(name, serviceAccountPrefix); ok {
		if namespace, account, ok := strings.Cut(account, ":"); ok && namespace != "" && account != "" {
			s.ServiceAccounts = append(s.ServiceAccounts, account)
			return
		}
	}
	s.Users = append(s.Users, name)
}
