package memberproxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/fanout"
	"karmada.io/karmada/internal/domain/impersonation"
)

// maxErrorBody limits the part of an error response that is read, in bytes.
const maxErrorBody = 64 << 10

// sendAuthenticated sends a request with the caller's identity. If the member rejects the
// impersonator's token, sendAuthenticated reads the token again without a cache. If the token has
// changed, it sends the request again, because a member that rejects the token did not execute the
// request. It cannot send a body again, so for a request with a body it returns an error with
// Retry-After.
func (c *call) sendAuthenticated(transport http.RoundTripper, req *http.Request) (*http.Response, error) {
	resp, err := transport.RoundTrip(c.withIdentity(req, c.token))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusUnauthorized {
		token, err := c.freshToken(req.Context())
		if err == nil && token != c.token && req.Body != nil && req.Body != http.NoBody {
			err = fanout.WithRetryAfter(fanout.NewUnavailableError(
				"the token for cluster %q was renewed during the request: try again", c.cluster.Name))
		}
		if err != nil {
			_ = resp.Body.Close()
			return nil, err
		}
		if token != c.token {
			_ = resp.Body.Close()
			if resp, err = transport.RoundTrip(c.withIdentity(req, token)); err != nil {
				return nil, err
			}
		}
	}
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		return c.explainUnauthorized(resp)
	case http.StatusForbidden:
		return c.explainForbidden(resp)
	}
	return resp, nil
}

// withIdentity returns a copy of the request with the token and the impersonation headers, and without
// trailers and headers that the member must not receive.
func (c *call) withIdentity(req *http.Request, token string) *http.Request {
	signed := req.Clone(req.Context())
	filterRequestHeader(signed.Header)
	signed.Trailer = nil
	signed.Header.Set("Authorization", "Bearer "+token)
	if c.caller != nil {
		impersonate(signed.Header, c.caller)
	}
	return signed
}

// explainUnauthorized returns an error with a remedy for a member that rejects the current token. If
// the request is for a proxy subresource in the member, it returns the original response, because an
// application that requires a login may have sent it.
func (c *call) explainUnauthorized(resp *http.Response) (*http.Response, error) {
	if c.info.Subresource == "proxy" {
		return resp, nil
	}
	_ = resp.Body.Close()
	ref, owner, remedy := c.cluster.Spec.ImpersonatorSecretRef, "service account "+impersonation.ImpersonatorName, "join the cluster again"
	switch {
	case c.caller == nil:
		ref, owner = c.cluster.Spec.SecretRef, "control plane"
	case c.cluster.Spec.SyncMode == clusterv1alpha1.Pull:
		remedy = "restart its agent"
	}
	return nil, newUnavailableError(c.cluster, fmt.Errorf(
		"the member rejects the token of the control plane: replace key %q of Secret %s/%s by a token of the %s of the member, or %s",
		clusterv1alpha1.SecretTokenKey, ref.Namespace, ref.Name, owner, remedy))
}

// impersonationDenied matches the subject that the impersonator may not impersonate, in all encodings
// of a Status.
var impersonationDenied = regexp.MustCompile(`(users|groups|serviceaccounts) \\?"([^"\\]*)\\?" is forbidden: User \\?"[^"\\]*\\?" cannot impersonate resource`)

// explainForbidden returns an error with a remedy if the impersonator may not impersonate the caller.
// If the caller itself has no permissions in the member, it returns the original response.
func (c *call) explainForbidden(resp *http.Response) (*http.Response, error) {
	// Ignore a read error here, because it occurs again when the rest of the body is read.
	head, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	found := impersonationDenied.FindSubmatch(head)
	if found == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(head), resp.Body), resp.Body}
		return resp, nil
	}
	_ = resp.Body.Close()
	subject := subjectKinds[string(found[1])]
	return nil, fanout.NewStatusError(http.StatusForbidden, metav1.StatusReasonForbidden,
		"cluster %q does not let the control plane impersonate %s %q yet: in the control plane, bind the subject with a ClusterRoleBinding to a ClusterRole that allows clusters/proxy (%s); members are updated within seconds",
		c.cluster.Name, subject.kind, found[2], subject.hint)
}

// subjectKinds maps the resources of subjects that can be impersonated to their kinds and to a hint
// about missing permissions.
var subjectKinds = map[string]struct{ kind, hint string }{
	"users":           {"User", "by its own name: a binding of one of its groups is not enough"},
	"groups":          {"Group", `the verb "impersonate" is enough for a group without access of its own`},
	"serviceaccounts": {"ServiceAccount", "by its own name: a binding of one of its groups is not enough"},
}

// impersonate adds the impersonation headers for the caller. It does not send the caller's UID and
// extra fields, because the impersonator's role in the member covers only users, service accounts and
// groups.
func impersonate(header http.Header, caller user.Info) {
	header.Set(authenticationv1.ImpersonateUserHeader, caller.GetName())
	for _, group := range impersonatedGroups(caller) {
		header.Add(authenticationv1.ImpersonateGroupHeader, group)
	}
}

// impersonatedGroups returns the caller's groups that the member does not add itself. The member adds
// system:authenticated to every impersonated user, except to system:anonymous. If a ServiceAccount is
// impersonated without groups, the member adds the groups of its namespace. Sending these groups would
// require the permission to impersonate the groups of all ServiceAccounts.
func impersonatedGroups(caller user.Info) []string {
	groups := slices.DeleteFunc(slices.Clone(caller.GetGroups()), func(group string) bool {
		return group == user.AllAuthenticated || group == user.AllUnauthenticated
	})
	namespace, _, err := serviceaccount.SplitUsername(caller.GetName())
	if err != nil {
		return groups
	}
	implied := serviceaccount.MakeGroupNames(namespace)
	if slices.ContainsFunc(groups, func(group string) bool { return !slices.Contains(implied, group) }) {
		// If the request contains any group, the member adds no groups, so all groups must be sent.
		return groups
	}
	return nil
}

// readToken reads the token of the member's impersonator ServiceAccount, or the control plane's own
// token for the member if isOwn is true.
func readToken(ctx context.Context, cluster *clusterv1alpha1.Cluster, isOwn bool, secrets SecretGetter) (string, error) {
	fail := func(format string, args ...any) (string, error) {
		return "", newUnavailableError(cluster, fmt.Errorf(format, args...))
	}
	ref, field, kind := cluster.Spec.ImpersonatorSecretRef, "spec.impersonatorSecretRef", "impersonator secret"
	remedy, refRemedy := fmt.Sprintf("write the token of the service account %s of the member to key %q of the Secret",
		impersonation.ImpersonatorName, clusterv1alpha1.SecretTokenKey), "join the cluster again"
	switch {
	case isOwn:
		ref, field, kind, remedy = cluster.Spec.SecretRef, "spec.secretRef", "secret", "join the cluster again"
	case cluster.Spec.SyncMode == clusterv1alpha1.Pull:
		remedy, refRemedy = "restart its agent, which writes the token to the Secret",
			"start the agent with --report-secrets including KubeImpersonator"
	}
	if ref == nil {
		return fail("%s is empty: %s", field, refRemedy)
	}
	secret, err := secrets(ctx, ref.Namespace, ref.Name)
	switch {
	case apierrors.IsNotFound(err):
		return fail("reading %s %s/%s: %w: %s", kind, ref.Namespace, ref.Name, err, remedy)
	case err != nil:
		return fail("reading %s %s/%s: %w", kind, ref.Namespace, ref.Name, err)
	}
	// A token that was read from a file may end with a newline.
	token := bytes.TrimSpace(secret.Data[clusterv1alpha1.SecretTokenKey])
	if len(token) == 0 {
		return fail("%s %s/%s has no key %q: %s", kind, ref.Namespace, ref.Name, clusterv1alpha1.SecretTokenKey, remedy)
	}
	return string(token), nil
}

// caBundle reads the CA certificates that verify the member's API server. A nil result means the
// system's CA certificates.
func caBundle(ctx context.Context, cluster *clusterv1alpha1.Cluster, secrets SecretGetter) ([]byte, error) {
	ref := cluster.Spec.SecretRef
	if ref == nil || cluster.Spec.InsecureSkipTLSVerification {
		return nil, nil
	}
	secret, err := secrets(ctx, ref.Namespace, ref.Name)
	if err != nil {
		return nil, newUnavailableError(cluster, fmt.Errorf("reading secret %s/%s: %w", ref.Namespace, ref.Name, err))
	}
	return secret.Data[clusterv1alpha1.SecretCADataKey], nil
}

// NewSecretGetters returns two readers for the clusters' credentials. cached reads Secrets in the
// namespace karmada-cluster from an informer cache, and all other Secrets from the Karmada API server.
// fresh always reads from the Karmada API server. start starts the informer, which runs until its
// context ends.
func NewSecretGetters(karmada kubernetes.Interface) (cached, fresh SecretGetter, start func(context.Context)) {
	factory := informers.NewSharedInformerFactoryWithOptions(karmada, 0,
		informers.WithNamespace(clusterv1alpha1.NamespaceKarmadaCluster),
		informers.WithTransform(cache.TransformStripManagedFields()))
	lister := factory.Core().V1().Secrets().Lister()
	fresh = func(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
		return karmada.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	}
	cached = func(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
		if secret, err := lister.Secrets(namespace).Get(name); err == nil {
			return secret, nil
		}
		return fresh(ctx, namespace, name)
	}
	return cached, fresh, factory.StartWithContext
}
