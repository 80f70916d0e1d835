package grant

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/side"
)

// token makes the member issue a token for the account that does not expire, and
// waits for it.
func token(ctx context.Context, s *side.Side, account *corev1.ServiceAccount, timeout time.Duration) (*corev1.Secret, error) {
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request := TokenRequest(account)
	for {
		stored, err := s.Ensure(waiting, request, func(have client.Object) error { return fitTokenRequest(have, request) })
		if err != nil {
			return nil, err
		}
		secret, err := awaitToken(waiting, s, request, account.UID)
		if err != nil || secret != nil {
			return secret, err
		}
		// A watch may end early, and a Secret that goes away may do so slowly.
		select {
		case <-waiting.Done():
		case <-time.After(200 * time.Millisecond):
		}
		if waiting.Err() != nil && ctx.Err() == nil {
			return nil, fmt.Errorf("%s issued no token into %s within %s: its kube-controller-manager does that, see whether it is running",
				s.Name, s.Describe(stored), timeout)
		}
		if ctx.Err() != nil {
			return nil, s.Explain("waiting for", request, context.Cause(ctx))
		}
	}
}

// fitTokenRequest accepts a Secret that holds, or will hold, the token of the
// wanted account.
func fitTokenRequest(have client.Object, want *corev1.Secret) error {
	secret, ok := have.(*corev1.Secret)
	if !ok || secret.Type != want.Type {
		return fmt.Errorf("it is not of type %s", want.Type)
	}
	if of := secret.Annotations[corev1.ServiceAccountNameKey]; of != want.Name {
		return fmt.Errorf("it belongs to service account %q", of)
	}
	return nil
}

// awaitToken waits until the Secret holds the token of exactly this account. It
// returns nil when the Secret disappears, as one does that was left by an account
// of the same name, and when the watch ends.
func awaitToken(ctx context.Context, s *side.Side, request *corev1.Secret, account types.UID) (*corev1.Secret, error) {
	// A watch from no given version begins with what exists.
	events, err := s.API.Watch(ctx, &corev1.SecretList{}, client.InNamespace(request.Namespace), client.MatchingFields{"metadata.name": request.Name})
	if ctx.Err() != nil {
		return nil, nil
	}
	if err != nil {
		return nil, s.Explain("waiting for", request, err)
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		switch secret := event.Object.(type) {
		case *corev1.Secret:
			if event.Type == watch.Deleted {
				return nil, nil
			}
			if len(secret.Data[corev1.ServiceAccountTokenKey]) > 0 && secret.Annotations[corev1.ServiceAccountUIDKey] == string(account) {
				return secret, nil
			}
		default:
			if event.Type == watch.Error {
				return nil, s.Explain("waiting for", request, apierrors.FromObject(event.Object))
			}
		}
	}
	return nil, nil
}

// caOf is what the kubeconfig trusts.
func caOf(config *rest.Config) ([]byte, error) {
	config = rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("reading the CA certificates of the member's kubeconfig: %w", err)
	}
	return config.CAData, nil
}

// Keep makes a Secret of a Cluster hold what it should and go with the Cluster.
func Keep(ctx context.Context, s *side.Side, secret *corev1.Secret, of *clusterv1alpha1.Cluster) error {
	owner := *metav1.NewControllerRef(of, clusterv1alpha1.GroupVersion.WithKind(clusterv1alpha1.ResourceKindCluster))
	wanted := secret.DeepCopy()
	wanted.OwnerReferences = []metav1.OwnerReference{owner}
	_, err := s.Ensure(ctx, wanted, func(have client.Object) error {
		if err := AdoptSecret(have, wanted, of.Name, of.UID); err != nil {
			return err
		}
		owners := have.GetOwnerReferences()
		if !slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return o.UID == of.UID }) {
			have.SetOwnerReferences(append(owners, owner))
		}
		return nil
	})
	return err
}

// AdoptSecret makes a Secret of the control plane hold what the wanted one holds.
// One that serves another Cluster is not taken. An owner that is the Cluster with
// the given UID stays.
func AdoptSecret(have client.Object, want *corev1.Secret, cluster string, owner types.UID) error {
	secret, ok := have.(*corev1.Secret)
	if !ok {
		return fmt.Errorf("it is a %T", have)
	}
	owners := secret.OwnerReferences[:0:0]
	for _, reference := range secret.OwnerReferences {
		if reference.Kind != clusterv1alpha1.ResourceKindCluster || reference.Name == cluster && owner != "" && reference.UID == owner {
			owners = append(owners, reference)
			continue
		}
		if reference.Name != cluster {
			return fmt.Errorf("it belongs to Cluster %q", reference.Name)
		}
		// Left by a Cluster of this name that is gone; it would take the Secret
		// with it.
	}
	secret.OwnerReferences = owners
	secret.Data = want.Data
	registration.AddLabels(secret, want)
	return nil
}
