// Package impersonation answers "whom may the control plane act for in a member
// cluster?": a request that comes through the control plane is sent on with the
// impersonator's token and the caller's name, and the member lets that pass only
// for callers that a role of its own lists. This package makes that role.
//
// Invariants:
//   - Nobody is listed for a cluster who has no way to it through a
//     ClusterRoleBinding. Roles and RoleBindings give no way.
//   - The order of the given objects does not matter, so that an unchanged control
//     plane makes an unchanged role.
//   - Being listed gives nothing in the member by itself: what a caller may do
//     there, the member decides.
package impersonation

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// searchGroup is the API group that reads from all clusters at once.
const searchGroup = "search.karmada.io"

// everyCluster is the name under which the proxy leads to all clusters.
const everyCluster = "*"

// serviceAccount begins the user names of service accounts, namespace and name
// follow.
const serviceAccount = "system:serviceaccount:"

// Subjects are those who may be impersonated: names, sorted and distinct. A
// service account is named without its namespace.
type Subjects struct {
	Users, ServiceAccounts, Groups []string
}

// Concerns tells whether rules open the way to any cluster. Others need not be
// handed to SubjectsOf.
func Concerns(rules []rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool { return proxies(rule) || searches(rule) })
}

// Reaches tells whether rules open the way to the cluster of that name: to its
// proxy, to that of all clusters, or to the proxy of search, which leads to all.
// Verbs are not looked at, for each of them needs an identity in the member.
func Reaches(rules []rbacv1.PolicyRule, cluster string) bool {
	return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
		return searches(rule) || proxies(rule) && (len(rule.ResourceNames) == 0 || containsAny(rule.ResourceNames, cluster, everyCluster))
	})
}

func proxies(rule rbacv1.PolicyRule) bool { return covers(rule, clusterv1alpha1.GroupName, "clusters") }

func searches(rule rbacv1.PolicyRule) bool { return covers(rule, searchGroup, "proxying") }

// covers tells whether a rule is about the proxy of that resource. Besides *,
// authorization knows */proxy for the proxies of all resources.
func covers(rule rbacv1.PolicyRule, group, resource string) bool {
	return containsAny(rule.APIGroups, rbacv1.APIGroupAll, group) &&
		containsAny(rule.Resources, rbacv1.ResourceAll, resource+"/proxy", "*/proxy")
}

func containsAny(list []string, wanted ...string) bool {
	return slices.ContainsFunc(wanted, func(one string) bool { return slices.Contains(list, one) })
}

// SubjectsOf are the subjects of all bindings to roles that reach the cluster.
// Bindings to roles that are not given count for nothing.
func SubjectsOf(roles []rbacv1.ClusterRole, bindings []rbacv1.ClusterRoleBinding, cluster string) Subjects {
	reaching := map[string]bool{}
	for i := range roles {
		reaching[roles[i].Name] = Reaches(roles[i].Rules, cluster)
	}
	var found Subjects
	for i := range bindings {
		if ref := bindings[i].RoleRef; ref.Kind == "ClusterRole" && reaching[ref.Name] {
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

// addUser adds a user. A service account may be bound by its user name, but acting
// for it is a right of its own.
func (s *Subjects) addUser(name string) {
	if account, ok := strings.CutPrefix(name, serviceAccount); ok {
		if namespace, account, ok := strings.Cut(account, ":"); ok && namespace != "" && account != "" {
			s.ServiceAccounts = append(s.ServiceAccounts, account)
			return
		}
	}
	s.Users = append(s.Users, name)
}
