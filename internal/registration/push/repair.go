package push

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/loop/patch"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/clusterclient"
	"karmada.io/karmada/internal/registration/enroll"
)

// credentialCheck is the result of using a registered cluster's stored credentials.
type credentialCheck struct {
	// cluster is the stored Cluster.
	cluster *clusterv1alpha1.Cluster
	// credentials and impersonator are the Secrets to which the Cluster refers, with their stored data.
	credentials, impersonator *corev1.Secret
	// reissue selects the accounts that need a new token.
	reissue enroll.ReportedAccounts
	// causes has one line for each reason why an account needs a new token.
	causes []string
}

// repair replaces the stored credentials of a registered cluster if the member rejects them. It
// returns the RegisteredError if the credentials work.
func (j Join) repair(ctx context.Context, karmada, member *clusterclient.Client, registered *registration.RegisteredError) error {
	found, err := j.verifyCredentials(ctx, karmada, member, &registered.Existing)
	if err != nil {
		return fmt.Errorf("%w; its credentials could not be checked: %w", registered, err)
	}
	if len(found.causes) == 0 {
		return registered
	}
	j.logf("Cluster %q is this cluster, but its credentials do not work:\n- %s", j.Name, strings.Join(found.causes, "\n- "))
	j.MemberRole = cmp.Or(j.MemberRole, registered.Existing.Annotations[clusterv1alpha1.MemberRoleAnnotation])
	accounts := j.newGrant(member, found.credentials.Namespace)
	if err := errors.Join(accounts.VerifyOwner(ctx), accounts.VerifyMemberRole(ctx)); err != nil {
		return err
	}
	if err := accounts.DeleteRejectedTokens(ctx, found.reissue); err != nil {
		return err
	}
	credentials, err := accounts.IssueTokens(ctx, found.reissue)
	if err != nil {
		return err
	}
	return j.storeCredentials(ctx, karmada, found, credentials)
}

// verifyCredentials reads the stored credentials of a Cluster and uses them for requests to the
// member.
func (j Join) verifyCredentials(ctx context.Context, karmada, member *clusterclient.Client,
	cluster *clusterv1alpha1.Cluster) (*credentialCheck, error) {
	credentials, impersonator := enroll.Credentials{}.Secrets(j.Name, j.ClusterNamespace)
	found := &credentialCheck{cluster: cluster, credentials: credentials, impersonator: impersonator}
	if cluster.Spec.SecretRef == nil {
		found.addCause(&found.reissue.Credentials, "spec.secretRef of the Cluster is empty")
	}
	setReferencedName(credentials, cluster.Spec.SecretRef)
	setReferencedName(impersonator, cluster.Spec.ImpersonatorSecretRef)
	g := j.newGrant(member, credentials.Namespace)
	if cluster.Spec.SecretRef != nil {
		if err := found.verifySecret(ctx, g, karmada, credentials, &found.reissue.Credentials); err != nil {
			return nil, err
		}
	}
	if cluster.Spec.ImpersonatorSecretRef != nil {
		if err := found.verifySecret(ctx, g, karmada, impersonator, &found.reissue.Impersonator); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// setReferencedName sets a Secret's namespace and name to those in the Cluster's reference.
func setReferencedName(secret *corev1.Secret, reference *clusterv1alpha1.LocalSecretReference) {
	if reference != nil {
		secret.Namespace, secret.Name = reference.Namespace, reference.Name
	}
}

// addCause records why an account needs a new token.
func (c *credentialCheck) addCause(reissue *bool, cause string) {
	*reissue = true
	c.causes = append(c.causes, cause)
}

// verifySecret reads a Secret of the control plane and uses its token for requests to the member.
func (c *credentialCheck) verifySecret(ctx context.Context, g enroll.Grant, karmada *clusterclient.Client, secret *corev1.Secret,
	reissue *bool) error {
	have, err := karmada.Get(ctx, secret)
	if err != nil {
		return err
	}
	stored, ok := have.(*corev1.Secret)
	description := karmada.Describe(secret)
	if !ok {
		c.addCause(reissue, description+" is gone")
		return nil
	}
	secret.Data = stored.Data
	token := stored.Data[clusterv1alpha1.SecretTokenKey]
	rejected, err := g.RejectsToken(ctx, token)
	switch {
	case err != nil:
		return err
	case len(token) == 0:
		c.addCause(reissue, description+" holds no token")
	case rejected:
		c.addCause(reissue, g.Member.Name+" rejects the token in "+description)
	case secret == c.credentials && c.isSameEndpoint(g) && !g.IsServerTrusted(ctx, token, stored.Data[clusterv1alpha1.SecretCADataKey]):
		c.addCause(reissue, "the CA certificates in "+description+" do not verify the certificate of "+g.Member.Name)
	}
	return nil
}

// isSameEndpoint reports whether the control plane reaches the member at the kubeconfig's address and
// verifies its certificate. At another address, the member may present another certificate.
func (c *credentialCheck) isSameEndpoint(g enroll.Grant) bool {
	return !c.cluster.Spec.InsecureSkipTLSVerification && c.cluster.Spec.APIEndpoint == registration.Endpoint(g.Config)
}

// storeCredentials stores the new credentials in the Secrets that the Cluster refers to.
func (j Join) storeCredentials(ctx context.Context, karmada *clusterclient.Client, found *credentialCheck,
	credentials enroll.Credentials) error {
	g := enroll.Grant{Config: j.Member}
	if storedCA := found.credentials.Data[clusterv1alpha1.SecretCADataKey]; len(storedCA) > 0 && !found.isSameEndpoint(g) {
		credentials.CA = storedCA
	}
	credentialsSecret, impersonatorSecret := j.newSecrets(credentials)
	var renewed []string
	for _, each := range []struct {
		wanted     *corev1.Secret
		stored     *corev1.Secret
		isReissued bool
	}{{impersonatorSecret, found.impersonator, found.reissue.Impersonator},
		{credentialsSecret, found.credentials, found.reissue.Credentials}} {
		if !each.isReissued {
			continue
		}
		each.wanted.Namespace, each.wanted.Name = each.stored.Namespace, each.stored.Name
		renewed = append(renewed, karmada.Describe(each.wanted))
		if j.DryRun {
			continue
		}
		if _, err := karmada.Ensure(ctx, registration.NewNamespace(each.wanted.Namespace), keepExisting); err != nil {
			return err
		}
		if err := enroll.EnsureSecret(ctx, karmada, each.wanted, found.cluster); err != nil {
			return err
		}
	}
	if j.DryRun {
		j.logf("would store a new token in %s in %s", strings.Join(renewed, " and "), karmada.Name)
		return nil
	}
	if err := found.setSecretRef(ctx, karmada); err != nil {
		return err
	}
	j.logf("repaired the credentials of Cluster %q: stored a new token in %s in %s", j.Name, strings.Join(renewed, " and "), karmada.Name)
	return nil
}

// setSecretRef sets spec.secretRef of the Cluster if it is empty.
func (c *credentialCheck) setSecretRef(ctx context.Context, karmada *clusterclient.Client) error {
	if c.cluster.Spec.SecretRef != nil {
		return nil
	}
	wanted := c.cluster.DeepCopy()
	wanted.Spec.SecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: c.credentials.Namespace, Name: c.credentials.Name}
	if _, err := patch.Object(ctx, karmada.API, c.cluster, wanted); err != nil {
		return karmada.WrapError("changing", wanted, err)
	}
	return nil
}

// asRepairable returns the RegisteredError in err, and reports whether join can repair the registration. It
// can if the same cluster is registered in push mode and its Cluster is not being deleted.
func asRepairable(err error) (*registration.RegisteredError, bool) {
	var registered *registration.RegisteredError
	if !errors.As(err, &registered) {
		return nil, false
	}
	return registered, registered.IsSameCluster() && registered.Existing.Spec.SyncMode == clusterv1alpha1.Push &&
		registered.Existing.DeletionTimestamp.IsZero()
}
