package pull

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/registration/clusterclient"
	"karmada.io/karmada/internal/registration/enroll"
)

// limitedRole returns the role and the bindings of an agent that is limited to MemberRole. Their names
// contain the cluster's name, because another control plane may have an agent with all permissions in
// the same member.
func (r Register) limitedRole() (base *rbacv1.ClusterRole, bindings []*rbacv1.ClusterRoleBinding) {
	base, baseBinding, memberRoleBinding := r.agentRole(), r.agentBinding(), r.agentBinding()
	base.Name += ":" + r.Name
	base.Rules = append(enroll.BaseRules(), rbacv1.PolicyRule{
		APIGroups: []string{corev1.GroupName}, Resources: []string{"secrets"}, ResourceNames: []string{AgentKubeconfig},
		Verbs: []string{"get", "update", "patch"},
	})
	baseBinding.Name, baseBinding.RoleRef.Name = base.Name, base.Name
	memberRoleBinding.Name, memberRoleBinding.RoleRef.Name = base.Name+":member-role", r.MemberRole
	return base, []*rbacv1.ClusterRoleBinding{baseBinding, memberRoleBinding}
}

// grantMemberRole grants the agent the permissions of MemberRole, and the permissions that every agent
// needs.
func (r Register) grantMemberRole(ctx context.Context, member *clusterclient.Client) error {
	base, bindings := r.limitedRole()
	if _, err := member.EnsureOwned(ctx, base, func(have client.Object) error { return enroll.AdoptRole(have, base) }); err != nil {
		return err
	}
	for _, binding := range bindings {
		if _, err := member.EnsureOwned(ctx, binding, func(have client.Object) error { return enroll.AdoptBinding(have, binding) }); err != nil {
			return err
		}
	}
	return nil
}

// revokeMemberRole deletes the objects that grantMemberRole created.
func (r Register) revokeMemberRole(ctx context.Context, member *clusterclient.Client) error {
	base, bindings := r.limitedRole()
	var errs []error
	for _, binding := range bindings {
		errs = append(errs, member.DeleteOwned(ctx, binding))
	}
	return errors.Join(append(errs, member.DeleteOwned(ctx, base))...)
}

// verifyMemberRole returns an error if the ClusterRole MemberRole does not exist in the member.
func (r Register) verifyMemberRole(ctx context.Context, member *clusterclient.Client) error {
	return enroll.Grant{Member: member, MemberRole: r.MemberRole}.VerifyMemberRole(ctx)
}
