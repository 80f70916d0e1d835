package pull

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/registration/grant"
	"karmada.io/karmada/internal/registration/side"
)

// limits are the role and the bindings of an agent that may do in the member what
// MemberRole allows. Their names are those of this cluster, for an agent of another
// control plane in the same member may do everything.
func (r Register) limits() (base *rbacv1.ClusterRole, bindings []*rbacv1.ClusterRoleBinding) {
	base, bound, limited := r.role(), r.binding(), r.binding()
	base.Name += ":" + r.Name
	base.Rules = append(grant.BaseRules(), rbacv1.PolicyRule{
		APIGroups: []string{corev1.GroupName}, Resources: []string{"secrets"}, ResourceNames: []string{AgentKubeconfig}, Verbs: []string{"get", "update", "patch"},
	})
	bound.Name, bound.RoleRef.Name = base.Name, base.Name
	limited.Name, limited.RoleRef.Name = base.Name+":member-role", r.MemberRole
	return base, []*rbacv1.ClusterRoleBinding{bound, limited}
}

// grantLimits gives the agent what MemberRole allows, and what every agent needs.
func (r Register) grantLimits(ctx context.Context, member *side.Side) error {
	base, bindings := r.limits()
	if _, err := member.Ensure(ctx, base, func(have client.Object) error { return grant.AdoptRole(have, base) }); err != nil {
		return err
	}
	for _, binding := range bindings {
		if _, err := member.Ensure(ctx, binding, func(have client.Object) error { return grant.AdoptBinding(have, binding) }); err != nil {
			return err
		}
	}
	return nil
}

// leaveLimits deletes what grantLimits has created.
func (r Register) leaveLimits(ctx context.Context, member *side.Side) error {
	base, bindings := r.limits()
	var errs []error
	for _, binding := range bindings {
		errs = append(errs, member.Delete(ctx, binding))
	}
	return errors.Join(append(errs, member.Delete(ctx, base))...)
}

// checkMemberRole returns an error if the member has no ClusterRole MemberRole.
func (r Register) checkMemberRole(ctx context.Context, member *side.Side) error {
	return grant.Grant{Member: member, MemberRole: r.MemberRole}.CheckMemberRole(ctx)
}
