package enroll

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
	"karmada.io/karmada/internal/registration/clusterclient"
)

// issueToken creates a token Secret for the account and waits until the member has written a token to it.
// The token does not expire.
func issueToken(ctx context.Context, s *clusterclient.Client, ensure ensureFunc, account *corev1.ServiceAccount,
	timeout time.Duration) (*corev1.Secret, error) {
	waiting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request := NewTokenSecret(account)
	for {
		stored, err := ensure(waiting, request, func(have client.Object) error { return verifyTokenSecret(have, request) })
		if err != nil {
			return nil, err
		}
		secret, err := awaitToken(waiting, s, request, account.UID)
		if err != nil || secret != nil {
			return secret, err
		}
		// Retry, because the watch may end early, and the deletion of a Secret may take some time.
		select {
		case <-waiting.Done():
		case <-time.After(200 * time.Millisecond):
		}
		if waiting.Err() != nil && ctx.Err() == nil {
			return nil, fmt.Errorf("%s issued no token in %s within %s: its kube-controller-manager issues tokens, check that it is running",
				s.Name, s.Describe(stored), timeout)
		}
		if ctx.Err() != nil {
			return nil, s.WrapError("waiting for", request, context.Cause(ctx))
		}
	}
}

// verifyTokenSecret returns an error if the existing Secret is not a token Secret for the wanted account.
func verifyTokenSecret(have client.Object, want *corev1.Secret) error {
	secret, ok := have.(*corev1.Secret)
	if !ok || secret.Type != want.Type {
		return fmt.Errorf("it is not of type %s", want.Type)
	}
	if owner := secret.Annotations[corev1.ServiceAccountNameKey]; owner != want.Name {
		return fmt.Errorf("it belongs to service account %q", owner)
	}
	return nil
}

// awaitToken waits until the Secret contains a token for the account with the given UID. It returns nil if
// the watch ends or the Secret is deleted, because the member's token controller deletes a Secret for an
// earlier account of the same name. The caller then creates the Secret again.
func awaitToken(ctx context.Context, s *clusterclient.Client, request *corev1.Secret, account types.UID) (*corev1.Secret, error) {
	// A watch without a resource version first returns the stored objects.
	events, err := s.API.Watch(ctx, &corev1.SecretList{}, client.InNamespace(request.Namespace),
		client.MatchingFields{"metadata.name": request.Name})
	if ctx.Err() != nil {
		return nil, nil
	}
	if err != nil {
		return nil, s.WrapError("waiting for", request, err)
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
				return nil, s.WrapError("waiting for", request, apierrors.FromObject(event.Object))
			}
		}
	}
	return nil, nil
}

// caBundle returns the client configuration's CA certificates.
func caBundle(config *rest.Config) ([]byte, error) {
	config = rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("reading the CA certificates of the member's kubeconfig: %w", err)
	}
	return config.CAData, nil
}

// EnsureSecret stores a Secret that the Cluster owns.
func EnsureSecret(ctx context.Context, s *clusterclient.Client, secret *corev1.Secret, cluster *clusterv1alpha1.Cluster) error {
	owner := *metav1.NewControllerRef(cluster, clusterv1alpha1.GroupVersion.WithKind(clusterv1alpha1.ResourceKindCluster))
	wanted := secret.DeepCopy()
	wanted.OwnerReferences = []metav1.OwnerReference{owner}
	_, err := s.Ensure(ctx, wanted, func(have client.Object) error {
		if err := AdoptSecret(have, wanted, cluster.Name, cluster.UID); err != nil {
			return err
		}
		owners := have.GetOwnerReferences()
		if !slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return o.UID == cluster.UID }) {
			have.SetOwnerReferences(append(owners, owner))
		}
		return nil
	})
	return err
}

// AdoptSecret sets the data and labels of an existing Secret in the control plane to the wanted ones. It
// returns an error if another Cluster owns the Secret. It keeps an owner reference to the Cluster with the
// given UID.
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
		// The owner is a deleted Cluster of the same name. Remove the reference, because the garbage collector
		// would delete the Secret.
	}
	secret.OwnerReferences = owners
	secret.Data = want.Data
	registration.AddLabels(secret, want)
	return nil
}
