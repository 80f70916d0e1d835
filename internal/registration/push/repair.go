package push

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/patch"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/grant"
	"karmada.io/karmada/internal/registration/side"
)

// renewal is what a registered cluster needs for its credentials to work.
type renewal struct {
	// cluster is the Cluster as it is stored.
	cluster *clusterv1alpha1.Cluster
	// acting and impersonating are the Secrets of the control plane that the Cluster
	// refers to, with what they hold now.
	acting, impersonating *corev1.Secret
	// reissue names the accounts that need another token.
	reissue grant.Reported
	// causes has a line for each finding.
	causes []string
}

// repair gives the control plane new credentials for a cluster that is registered and
// refuses the stored ones. It returns the RegisteredError if they work.
func (j Join) repair(ctx context.Context, karmada, member *side.Side, taken *registration.RegisteredError) error {
	found, err := j.examine(ctx, karmada, member, &taken.By)
	if err != nil {
		return fmt.Errorf("%w; whether its credentials work is not known: %w", taken, err)
	}
	if len(found.causes) == 0 {
		return taken
	}
	j.logf("Cluster %q is this cluster, and its credentials do not work:\n- %s", j.Name, strings.Join(found.causes, "\n- "))
	j.MemberRole = cmp.Or(j.MemberRole, taken.By.Annotations[clusterv1alpha1.MemberRoleAnnotation])
	g := j.grant(member, found.acting.Namespace)
	if err := g.CheckMemberRole(ctx); err != nil {
		return err
	}
	if err := g.DropRefused(ctx, found.reissue); err != nil {
		return err
	}
	credentials, err := g.Issue(ctx, found.reissue)
	if err != nil {
		return err
	}
	return j.renew(ctx, karmada, found, credentials)
}

// examine reads the stored credentials of a Cluster and tries them in the member.
func (j Join) examine(ctx context.Context, karmada, member *side.Side, cluster *clusterv1alpha1.Cluster) (*renewal, error) {
	acting, impersonating := grant.Access{}.Secrets(j.Name, j.ClusterNamespace)
	found := &renewal{cluster: cluster, acting: acting, impersonating: impersonating}
	if cluster.Spec.SecretRef == nil {
		found.add(&found.reissue.Credentials, "spec.secretRef of the Cluster is empty")
	}
	point(acting, cluster.Spec.SecretRef)
	point(impersonating, cluster.Spec.ImpersonatorSecretRef)
	g := j.grant(member, acting.Namespace)
	if cluster.Spec.SecretRef != nil {
		if err := found.try(ctx, g, karmada, acting, &found.reissue.Credentials); err != nil {
			return nil, err
		}
	}
	if cluster.Spec.ImpersonatorSecretRef != nil {
		if err := found.try(ctx, g, karmada, impersonating, &found.reissue.Impersonator); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// point makes a Secret the one that a Cluster refers to.
func point(secret *corev1.Secret, reference *clusterv1alpha1.LocalSecretReference) {
	if reference != nil {
		secret.Namespace, secret.Name = reference.Namespace, reference.Name
	}
}

func (r *renewal) add(reissue *bool, cause string) {
	*reissue = true
	r.causes = append(r.causes, cause)
}

// try reads a Secret of the control plane and tries its token in the member.
func (r *renewal) try(ctx context.Context, g grant.Grant, karmada *side.Side, secret *corev1.Secret, reissue *bool) error {
	have, err := karmada.Get(ctx, secret)
	if err != nil {
		return err
	}
	stored, ok := have.(*corev1.Secret)
	where := karmada.Describe(secret)
	if !ok {
		r.add(reissue, where+" is gone")
		return nil
	}
	secret.Data = stored.Data
	token := stored.Data[clusterv1alpha1.SecretTokenKey]
	refused, err := g.Refuses(ctx, token)
	switch {
	case err != nil:
		return err
	case len(token) == 0:
		r.add(reissue, where+" holds no token")
	case refused:
		r.add(reissue, g.Member.Name+" refuses the token in "+where)
	case secret == r.acting && r.atHome(g) && !g.TrustsMember(ctx, token, stored.Data[clusterv1alpha1.SecretCADataKey]):
		r.add(reissue, "the CA certificates in "+where+" do not verify the certificate of "+g.Member.Name)
	}
	return nil
}

// atHome reports whether the kubeconfig of the member leads to the address at which the
// control plane reaches the member and verifies it. At another address the member may
// show another certificate.
func (r *renewal) atHome(g grant.Grant) bool {
	return !r.cluster.Spec.InsecureSkipTLSVerification && r.cluster.Spec.APIEndpoint == registration.Endpoint(g.Config)
}

// renew stores the new credentials in the Secrets that the Cluster refers to.
func (j Join) renew(ctx context.Context, karmada *side.Side, found *renewal, credentials grant.Access) error {
	g := grant.Grant{Config: j.Member}
	if known := found.acting.Data[clusterv1alpha1.SecretCADataKey]; len(known) > 0 && !found.atHome(g) {
		credentials.CA = known
	}
	acting, impersonating := credentials.Secrets(j.Name, j.ClusterNamespace)
	var renewed []string
	for _, each := range []struct {
		wanted     *corev1.Secret
		at         *corev1.Secret
		isReissued bool
	}{{impersonating, found.impersonating, found.reissue.Impersonator}, {acting, found.acting, found.reissue.Credentials}} {
		if !each.isReissued {
			continue
		}
		each.wanted.Namespace, each.wanted.Name = each.at.Namespace, each.at.Name
		renewed = append(renewed, karmada.Describe(each.wanted))
		if j.DryRun {
			continue
		}
		if _, err := karmada.Ensure(ctx, registration.Namespace(each.wanted.Namespace), asIs); err != nil {
			return err
		}
		if err := grant.Keep(ctx, karmada, each.wanted, found.cluster); err != nil {
			return err
		}
	}
	if j.DryRun {
		j.logf("would store a new token in %s in %s", strings.Join(renewed, " and "), karmada.Name)
		return nil
	}
	if err := found.refer(ctx, karmada); err != nil {
		return err
	}
	j.logf("repaired the credentials of Cluster %q: there is a new token in %s in %s", j.Name, strings.Join(renewed, " and "), karmada.Name)
	return nil
}

// refer makes a Cluster that refers to no credentials refer to the new ones.
func (r *renewal) refer(ctx context.Context, karmada *side.Side) error {
	if r.cluster.Spec.SecretRef != nil {
		return nil
	}
	wanted := r.cluster.DeepCopy()
	wanted.Spec.SecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: r.acting.Namespace, Name: r.acting.Name}
	if _, err := patch.Object(ctx, karmada.API, r.cluster, wanted); err != nil {
		return karmada.Explain("changing", wanted, err)
	}
	return nil
}

// repairable returns the error that a cluster is registered if the registration is one
// that join can repair: of the same cluster, in Push mode, and not being deleted.
func repairable(err error) (*registration.RegisteredError, bool) {
	var taken *registration.RegisteredError
	if !errors.As(err, &taken) {
		return nil, false
	}
	return taken, taken.Same() && taken.By.Spec.SyncMode == clusterv1alpha1.Push && taken.By.DeletionTimestamp.IsZero()
}
