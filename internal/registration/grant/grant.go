// Package grant answers "what does a member let the control plane do, and how is that
// taken back?".
//
// The control plane gets two accounts: one to act, one to impersonate the callers of
// the cluster proxy. Its copies of their tokens are in Secrets that go with the Cluster.
package grant

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/side"
)

// Reported says which accounts of a member the control plane is told the tokens
// of.
type Reported struct {
	// Credentials are of the account that may do everything, Impersonator of the
	// one that acts for the callers of the cluster proxy.
	Credentials, Impersonator bool
}

// ReportAll reports both accounts, as the features that go through the control
// plane need them.
func ReportAll() Reported { return Reported{Credentials: true, Impersonator: true} }

// DefaultTokenTimeout is how long a member may take to issue a token.
const DefaultTokenTimeout = 30 * time.Second

// Grant gives the control plane accounts in a member.
type Grant struct {
	// Cluster is the member's name, Namespace where the accounts are.
	Cluster, Namespace string
	Member             *side.Side
	// Config leads to the member.
	Config *rest.Config
	// Timeout is how long the member may take to issue a token.
	Timeout time.Duration
	// MemberRole is the ClusterRole of the member that limits what the control plane
	// may do there. Empty lets it do everything.
	MemberRole string
}

// Issue makes the namespace and the reported accounts, and returns what the
// control plane needs to use them. A dry run returns nothing.
func (g Grant) Issue(ctx context.Context, reported Reported) (Access, error) {
	asIs := func(client.Object) error { return nil }
	if !reported.Credentials && !reported.Impersonator {
		return Access{}, nil
	}
	if _, err := g.Member.Ensure(ctx, registration.Namespace(g.Namespace), asIs); err != nil {
		return Access{}, err
	}
	var accounts [2]*corev1.ServiceAccount
	for i, wanted := range []struct {
		name     string
		reported bool
	}{{Impersonator, reported.Impersonator}, {AccountName(g.Cluster), reported.Credentials}} {
		if !wanted.reported {
			continue
		}
		stored, err := g.Member.Ensure(ctx, registration.Account(g.Namespace, wanted.name), asIs)
		if err != nil {
			return Access{}, err
		}
		accounts[i] = stored.(*corev1.ServiceAccount)
	}
	if reported.Credentials {
		if err := g.empower(ctx); err != nil {
			return Access{}, err
		}
	}
	if g.Member.DryRun {
		return Access{}, nil
	}
	return g.collect(ctx, accounts[0], accounts[1])
}

// CheckMemberRole returns an error if the member has no ClusterRole MemberRole. Nothing
// is changed.
func (g Grant) CheckMemberRole(ctx context.Context) error {
	if g.MemberRole == "" {
		return nil
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: g.MemberRole}}
	have, err := g.Member.Get(ctx, role)
	if err != nil {
		return err
	}
	if have == nil {
		return fmt.Errorf("%s (%s) has no ClusterRole %q: create it there first, or leave out --member-role, which lets the control plane do everything", g.Member.Name, g.Member.Host, g.MemberRole)
	}
	return nil
}

// empower lets the account of the control plane do everything, or what MemberRole
// allows.
func (g Grant) empower(ctx context.Context) error {
	rights, bound := Role(g.Cluster), RoleBinding(g.Cluster, g.Namespace)
	if g.MemberRole != "" {
		rights.Rules = BaseRules()
		limited := MemberRoleBinding(g.Cluster, g.Namespace, g.MemberRole)
		if _, err := g.Member.Ensure(ctx, limited, func(have client.Object) error { return AdoptBinding(have, limited) }); err != nil {
			return err
		}
	}
	if _, err := g.Member.Ensure(ctx, rights, func(have client.Object) error { return AdoptRole(have, rights) }); err != nil {
		return err
	}
	_, err := g.Member.Ensure(ctx, bound, func(have client.Object) error { return AdoptBinding(have, bound) })
	return err
}

// collect waits for the tokens of the accounts that are not nil.
func (g Grant) collect(ctx context.Context, impersonation, own *corev1.ServiceAccount) (found Access, err error) {
	if impersonation != nil {
		impersonating, err := token(ctx, g.Member, impersonation, g.Timeout)
		if err != nil {
			return Access{}, err
		}
		found.ImpersonatorToken = impersonating.Data[corev1.ServiceAccountTokenKey]
	}
	if own == nil {
		return found, nil
	}
	acting, err := token(ctx, g.Member, own, g.Timeout)
	if err != nil {
		return Access{}, err
	}
	found.Token = acting.Data[corev1.ServiceAccountTokenKey]
	trusted, err := caOf(g.Config)
	if err != nil {
		return Access{}, err
	}
	authorities := slices.DeleteFunc([][]byte{trusted, acting.Data[corev1.ServiceAccountRootCAKey]}, func(ca []byte) bool { return len(ca) == 0 })
	// No CA at all means those that the system trusts.
	found.CA, err = g.verify(ctx, found.Token, append(authorities, nil)...)
	return found, err
}

// verifyTimeout is how long a new token may be refused: API servers learn of it
// through a cache.
const verifyTimeout = 10 * time.Second

// verify finds the CA certificates with which the member can be reached by
// nothing but what will be stored in the control plane, and proves that its token
// is accepted.
func (g Grant) verify(ctx context.Context, token []byte, authorities ...[]byte) ([]byte, error) {
	var errs []error
	for _, ca := range authorities {
		err := g.tryToken(ctx, token, ca)
		if err == nil {
			return ca, nil
		}
		errs = append(errs, err)
		if !registration.IsUntrusted(err) {
			break
		}
	}
	return nil, g.Member.Explain("using the new token of", registration.Account(g.Namespace, AccountName(g.Cluster)), errors.Join(errs...))
}

func (g Grant) tryToken(ctx context.Context, token, ca []byte) error {
	config := &rest.Config{
		Host:            registration.Endpoint(g.Config),
		Proxy:           g.Config.Proxy,
		Timeout:         side.RequestTimeout,
		BearerToken:     string(token),
		TLSClientConfig: rest.TLSClientConfig{Insecure: g.Config.Insecure},
		ContentConfig:   rest.ContentConfig{GroupVersion: &corev1.SchemeGroupVersion, NegotiatedSerializer: scheme.Codecs.WithoutConversion()},
	}
	if !g.Config.Insecure {
		config.CAData = ca
	}
	api, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return fmt.Errorf("making a client with the new token: %w", err)
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, verifyTimeout, true, func(ctx context.Context) (bool, error) {
		last = api.Get().AbsPath("/api").Do(ctx).Error()
		refused := apierrors.IsUnauthorized(last) || apierrors.IsForbidden(last)
		return last == nil || !refused, nil
	})
	if last != nil {
		return last
	}
	return err
}

// AdoptRole makes a role that is there be the wanted one.
func AdoptRole(have client.Object, want *rbacv1.ClusterRole) error {
	role, ok := have.(*rbacv1.ClusterRole)
	if !ok {
		return fmt.Errorf("it is a %T", have)
	}
	role.Rules = want.Rules
	registration.AddLabels(role, want)
	return nil
}

// AdoptBinding makes a binding that is there bind whom the wanted one does. One that
// grants another role is not taken.
func AdoptBinding(have client.Object, want *rbacv1.ClusterRoleBinding) error {
	binding, ok := have.(*rbacv1.ClusterRoleBinding)
	if !ok {
		return fmt.Errorf("it is a %T", have)
	}
	if !equality.Semantic.DeepEqual(binding.RoleRef, want.RoleRef) {
		return fmt.Errorf("it grants %s %s; delete it if nobody needs it", binding.RoleRef.Kind, binding.RoleRef.Name)
	}
	binding.Subjects = want.Subjects
	registration.AddLabels(binding, want)
	return nil
}
