package enroll

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
	"karmada.io/karmada/internal/registration/clusterclient"
)

// ReportedAccounts selects the member's accounts whose tokens are stored in the control plane.
type ReportedAccounts struct {
	// Credentials selects the account for the control plane's own requests. Impersonator selects the account
	// that impersonates the cluster proxy's callers.
	Credentials, Impersonator bool
}

// AllAccounts selects both accounts. Features that send requests from the control plane to the member need
// them, such as the cluster proxy.
func AllAccounts() ReportedAccounts { return ReportedAccounts{Credentials: true, Impersonator: true} }

// DefaultTokenTimeout is the default for Grant.Timeout.
const DefaultTokenTimeout = 30 * time.Second

// Grant creates the control plane's accounts in a member.
type Grant struct {
	// Cluster is the member's name. Namespace is the accounts' namespace.
	Cluster, Namespace string
	Member             *clusterclient.Client
	// Config is the member's client configuration.
	Config *rest.Config
	// Timeout limits the wait for the member to issue a token.
	Timeout time.Duration
	// MemberRole is the ClusterRole in the member that limits the control plane's permissions there. If it is
	// empty, the control plane may do everything.
	MemberRole string
}

// IssueTokens creates the namespace and the reported accounts, and returns the accounts' tokens. In a dry
// run, it returns no tokens.
func (g Grant) IssueTokens(ctx context.Context, reported ReportedAccounts) (Credentials, error) {
	keepExisting := func(client.Object) error { return nil }
	if !reported.Credentials && !reported.Impersonator {
		return Credentials{}, nil
	}
	if _, err := g.Member.EnsureShared(ctx, registration.NewNamespace(g.Namespace), keepExisting); err != nil {
		return Credentials{}, err
	}
	var accounts [2]*corev1.ServiceAccount
	for i, wanted := range []struct {
		name     string
		reported bool
		ensure   ensureFunc
	}{
		{ImpersonatorAccount, reported.Impersonator, g.Member.EnsureShared},
		{AccountName(g.Cluster), reported.Credentials, g.Member.EnsureOwned},
	} {
		if !wanted.reported {
			continue
		}
		stored, err := wanted.ensure(ctx, registration.NewServiceAccount(g.Namespace, wanted.name), keepExisting)
		if err != nil {
			return Credentials{}, err
		}
		accounts[i] = stored.(*corev1.ServiceAccount)
	}
	if reported.Credentials {
		if err := g.bindRoles(ctx); err != nil {
			return Credentials{}, err
		}
	}
	if g.Member.DryRun {
		return Credentials{}, nil
	}
	return g.collectTokens(ctx, accounts[0], accounts[1])
}

// ensureFunc is the signature of EnsureOwned and EnsureShared.
type ensureFunc func(ctx context.Context, want client.Object, adopt func(have client.Object) error) (client.Object, error)

// VerifyOwner returns an error if another control plane uses this Cluster's accounts in the member. It
// writes nothing.
func (g Grant) VerifyOwner(ctx context.Context) error {
	return g.Member.VerifyOwner(ctx, Cleanup{Cluster: g.Cluster, Namespace: g.Namespace}.Objects()...)
}

// VerifyMemberRole returns an error if MemberRole is set and does not exist in the member. It writes
// nothing.
func (g Grant) VerifyMemberRole(ctx context.Context) error {
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

// bindRoles gives the control plane's account the permissions of MemberRole, or all permissions if
// MemberRole is empty.
func (g Grant) bindRoles(ctx context.Context) error {
	role, binding := NewClusterRole(g.Cluster), NewClusterRoleBinding(g.Cluster, g.Namespace)
	if g.MemberRole != "" {
		role.Rules = BaseRules()
		memberRoleBinding := NewMemberRoleBinding(g.Cluster, g.Namespace, g.MemberRole)
		if _, err := g.Member.EnsureOwned(ctx, memberRoleBinding,
			func(have client.Object) error { return AdoptBinding(have, memberRoleBinding) }); err != nil {
			return err
		}
	}
	if _, err := g.Member.EnsureOwned(ctx, role, func(have client.Object) error { return AdoptRole(have, role) }); err != nil {
		return err
	}
	_, err := g.Member.EnsureOwned(ctx, binding, func(have client.Object) error { return AdoptBinding(have, binding) })
	return err
}

// collectTokens issues the tokens of the accounts that are not nil.
func (g Grant) collectTokens(ctx context.Context, impersonation, own *corev1.ServiceAccount) (found Credentials, err error) {
	if impersonation != nil {
		impersonating, err := issueToken(ctx, g.Member, g.Member.EnsureShared, impersonation, g.Timeout)
		if err != nil {
			return Credentials{}, err
		}
		found.ImpersonatorToken = impersonating.Data[corev1.ServiceAccountTokenKey]
	}
	if own == nil {
		return found, nil
	}
	acting, err := issueToken(ctx, g.Member, g.Member.EnsureOwned, own, g.Timeout)
	if err != nil {
		return Credentials{}, err
	}
	found.Token = acting.Data[corev1.ServiceAccountTokenKey]
	trusted, err := caBundle(g.Config)
	if err != nil {
		return Credentials{}, err
	}
	authorities := slices.DeleteFunc([][]byte{trusted, acting.Data[corev1.ServiceAccountRootCAKey]},
		func(ca []byte) bool { return len(ca) == 0 })
	// With a nil CA, the system's CA certificates verify the server.
	found.CA, err = g.verifyToken(ctx, found.Token, append(authorities, nil)...)
	return found, err
}

// verifyTimeout limits the retries after the member rejects a new token, because the API server's cache may
// not contain the token yet.
const verifyTimeout = 10 * time.Second

// verifyToken returns the first CA bundle with which the member accepts the token. Its requests use only
// values that the control plane will store, as later requests do.
func (g Grant) verifyToken(ctx context.Context, token []byte, authorities ...[]byte) ([]byte, error) {
	var errs []error
	for _, ca := range authorities {
		err := g.tryToken(ctx, token, ca)
		if err == nil {
			return ca, nil
		}
		errs = append(errs, err)
		if !registration.IsCertificateUntrusted(err) {
			break
		}
	}
	return nil, g.Member.WrapError("using the new token of", registration.NewServiceAccount(g.Namespace, AccountName(g.Cluster)),
		errors.Join(errs...))
}

// tryToken sends a request with the token and the CA bundle to the member.
func (g Grant) tryToken(ctx context.Context, token, ca []byte) error {
	config := &rest.Config{
		Host:            registration.Endpoint(g.Config),
		Proxy:           g.Config.Proxy,
		Timeout:         clusterclient.RequestTimeout,
		BearerToken:     string(token),
		TLSClientConfig: rest.TLSClientConfig{Insecure: g.Config.Insecure},
		ContentConfig:   rest.ContentConfig{GroupVersion: &corev1.SchemeGroupVersion, NegotiatedSerializer: scheme.Codecs.WithoutConversion()},
	}
	if !g.Config.Insecure {
		config.CAData = ca
	}
	api, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return fmt.Errorf("creating a client with the new token: %w", err)
	}
	var lastErr error
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, verifyTimeout, true, func(ctx context.Context) (bool, error) {
		lastErr = api.Get().AbsPath("/api").Do(ctx).Error()
		denied := apierrors.IsUnauthorized(lastErr) || apierrors.IsForbidden(lastErr)
		return lastErr == nil || !denied, nil
	})
	if lastErr != nil {
		return lastErr
	}
	return err
}

// AdoptRole sets the rules and labels of an existing ClusterRole to the wanted ones.
func AdoptRole(have client.Object, want *rbacv1.ClusterRole) error {
	role, ok := have.(*rbacv1.ClusterRole)
	if !ok {
		return fmt.Errorf("it is a %T", have)
	}
	role.Rules = want.Rules
	registration.AddLabels(role, want)
	return nil
}

// AdoptBinding sets the subjects and labels of an existing binding to the wanted ones. It returns an error
// if the binding refers to another role.
func AdoptBinding(have client.Object, want *rbacv1.ClusterRoleBinding) error {
	binding, ok := have.(*rbacv1.ClusterRoleBinding)
	if !ok {
		return fmt.Errorf("it is a %T", have)
	}
	if !equality.Semantic.DeepEqual(binding.RoleRef, want.RoleRef) {
		return fmt.Errorf("it grants %s %s; delete it if it is not in use", binding.RoleRef.Kind, binding.RoleRef.Name)
	}
	binding.Subjects = want.Subjects
	registration.AddLabels(binding, want)
	return nil
}
