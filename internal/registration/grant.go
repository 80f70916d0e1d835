package registration

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
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
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

// grant gives the control plane accounts in a member.
type grant struct {
	// cluster is the member's name, namespace where the accounts are.
	cluster, namespace string
	member             *side
	config             *rest.Config
	// timeout is how long the member may take to issue a token.
	timeout time.Duration
}

// issue makes the namespace and the reported accounts, and returns what the
// control plane needs to use them. A dry run returns nothing.
func (g grant) issue(ctx context.Context, reported Reported) (access, error) {
	asIs := func(client.Object) error { return nil }
	if _, err := g.member.ensure(ctx, namespace(g.namespace), asIs); err != nil {
		return access{}, err
	}
	var accounts [2]*corev1.ServiceAccount
	for i, wanted := range []struct {
		name     string
		reported bool
	}{{impersonator, reported.Impersonator}, {accountName(g.cluster), reported.Credentials}} {
		if !wanted.reported {
			continue
		}
		stored, err := g.member.ensure(ctx, account(g.namespace, wanted.name), asIs)
		if err != nil {
			return access{}, err
		}
		accounts[i] = stored.(*corev1.ServiceAccount)
	}
	if reported.Credentials {
		if err := g.empower(ctx); err != nil {
			return access{}, err
		}
	}
	if g.member.dryRun {
		return access{}, nil
	}
	return g.collect(ctx, accounts[0], accounts[1])
}

// empower lets the account of the control plane do everything.
func (g grant) empower(ctx context.Context) error {
	rights, bound := role(g.cluster), roleBinding(g.cluster, g.namespace)
	if _, err := g.member.ensure(ctx, rights, func(have client.Object) error { return adoptRole(have, rights) }); err != nil {
		return err
	}
	_, err := g.member.ensure(ctx, bound, func(have client.Object) error { return adoptBinding(have, bound) })
	return err
}

// collect waits for the tokens of the accounts that are not nil.
func (g grant) collect(ctx context.Context, impersonation, own *corev1.ServiceAccount) (found access, err error) {
	if impersonation != nil {
		impersonating, err := g.member.token(ctx, impersonation, g.timeout)
		if err != nil {
			return access{}, err
		}
		found.impersonatorToken = impersonating.Data[corev1.ServiceAccountTokenKey]
	}
	if own == nil {
		return found, nil
	}
	acting, err := g.member.token(ctx, own, g.timeout)
	if err != nil {
		return access{}, err
	}
	found.token = acting.Data[corev1.ServiceAccountTokenKey]
	trusted, err := caOf(g.config)
	if err != nil {
		return access{}, err
	}
	authorities := slices.DeleteFunc([][]byte{trusted, acting.Data[corev1.ServiceAccountRootCAKey]}, func(ca []byte) bool { return len(ca) == 0 })
	// No CA at all means those that the system trusts.
	found.ca, err = g.verify(ctx, found.token, append(authorities, nil)...)
	return found, err
}

// verifyTimeout is how long a new token may be refused: API servers learn of it
// through a cache.
const verifyTimeout = 10 * time.Second

// verify finds the CA certificates with which the member can be reached by
// nothing but what will be stored in the control plane, and proves that its token
// is accepted.
func (g grant) verify(ctx context.Context, token []byte, authorities ...[]byte) ([]byte, error) {
	var errs []error
	for _, ca := range authorities {
		err := g.tryToken(ctx, token, ca)
		if err == nil {
			return ca, nil
		}
		errs = append(errs, err)
		if !isUntrusted(err) {
			break
		}
	}
	return nil, g.member.explain("using the new token of", account(g.namespace, accountName(g.cluster)), errors.Join(errs...))
}

func (g grant) tryToken(ctx context.Context, token, ca []byte) error {
	config := &rest.Config{
		Host:            endpoint(g.config),
		Proxy:           g.config.Proxy,
		Timeout:         requestTimeout,
		BearerToken:     string(token),
		TLSClientConfig: rest.TLSClientConfig{Insecure: g.config.Insecure},
		ContentConfig:   rest.ContentConfig{GroupVersion: &corev1.SchemeGroupVersion, NegotiatedSerializer: scheme.Codecs.WithoutConversion()},
	}
	if !g.config.Insecure {
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

func adoptRole(have client.Object, want *rbacv1.ClusterRole) error {
	role, ok := have.(*rbacv1.ClusterRole)
	if !ok {
		return fmt.Errorf("it is a %T", have)
	}
	role.Rules = want.Rules
	addLabels(role, want)
	return nil
}

func adoptBinding(have client.Object, want *rbacv1.ClusterRoleBinding) error {
	binding, ok := have.(*rbacv1.ClusterRoleBinding)
	if !ok {
		return fmt.Errorf("it is a %T", have)
	}
	if !equality.Semantic.DeepEqual(binding.RoleRef, want.RoleRef) {
		return fmt.Errorf("it grants %s %s; delete it if nobody needs it", binding.RoleRef.Kind, binding.RoleRef.Name)
	}
	binding.Subjects = want.Subjects
	addLabels(binding, want)
	return nil
}
