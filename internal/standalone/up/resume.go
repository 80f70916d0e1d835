package up

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/registration/pull"
)

// unavailableRetryInterval is the interval between attempts to reach an unavailable member.
const unavailableRetryInterval = 500 * time.Millisecond

// retryUnavailable calls attempt until its error no longer means that the server is unavailable. If a
// member's process was killed, the member becomes available again after its restart.
func retryUnavailable(ctx context.Context, attempt func() error) error {
	for {
		err := attempt()
		if err == nil || !isUnavailable(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(unavailableRetryInterval):
		}
	}
}

// isUnavailable reports whether a request failed because the server is not running or ended during the
// request.
func isUnavailable(err error) bool {
	return utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) ||
		utilnet.IsHTTP2ConnectionLost(err)
}

// resumeInterrupted continues an interrupted registration. It returns true if the agent is installed
// and will complete the registration. Otherwise it deletes the objects that prevent another
// registration.
func resumeInterrupted(ctx context.Context, interrupted interruptedRegistration, karmada, member *rest.Config) (installed bool, err error) {
	karmadaClient, err := client.New(karmada, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return false, fmt.Errorf("creating a client of the control plane: %w", err)
	}
	memberClient, err := client.New(member, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return false, fmt.Errorf("creating a client of member %q: %w", interrupted.cluster, err)
	}
	// Delete the token first, so that no new registration can start with it.
	if err := deleteObjects(ctx, karmadaClient, tokenSecret(interrupted.token)); err != nil {
		return false, err
	}
	if err := interrupted.readObjects(ctx, karmadaClient, memberClient); err != nil {
		return false, fmt.Errorf("reading the objects of an interrupted registration of %q: %w", interrupted.cluster, err)
	}
	if interrupted.canContinue() {
		return true, nil
	}
	fromKarmada, fromMember := interrupted.objectsToDelete()
	if err := deleteObjects(ctx, memberClient, fromMember...); err != nil {
		return false, err
	}
	return false, deleteObjects(ctx, karmadaClient, fromKarmada...)
}

// readObjects reads the registration's existing objects.
func (r *interruptedRegistration) readObjects(ctx context.Context, karmada, member client.Client) (err error) {
	requests := &certificatesv1.CertificateSigningRequestList{}
	if err := karmada.List(ctx, requests); err != nil {
		return err
	}
	r.requests = requests.Items
	if r.role, err = getLive(ctx, karmada, "", agent.RoleName(r.cluster), &rbacv1.ClusterRole{}); err != nil {
		return err
	}
	const namespace = clusterv1alpha1.NamespaceKarmadaSystem
	if r.secret, err = getLive(ctx, member, namespace, pull.AgentKubeconfig, &corev1.Secret{}); err != nil {
		return err
	}
	if r.account, err = getLive(ctx, member, namespace, pull.AgentAccount, &corev1.ServiceAccount{}); err != nil {
		return err
	}
	r.deployment, err = getLive(ctx, member, namespace, pull.AgentName, &appsv1.Deployment{})
	return err
}

// getLive reads an object. It returns nil if the object does not exist or is being deleted.
func getLive[T client.Object](ctx context.Context, reader client.Client, namespace, name string, into T) (none T, err error) {
	err = reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into)
	if apierrors.IsNotFound(err) || err == nil && into.GetDeletionTimestamp() != nil {
		return none, nil
	}
	return into, err
}

func tokenSecret(id string) client.Object {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: bootstraputil.BootstrapTokenSecretName(id)}}
}

// deleteObjects deletes the objects in the given order. It does not delete an object that was replaced
// by a new object in the meantime.
func deleteObjects(ctx context.Context, writer client.Client, objects ...client.Object) error {
	for _, object := range objects {
		var preconditions client.Preconditions
		if uid := object.GetUID(); uid != "" {
			preconditions.UID = &uid
		}
		if err := client.IgnoreNotFound(writer.Delete(ctx, object, preconditions)); err != nil {
			return fmt.Errorf("deleting %T %q of an interrupted registration: %w", object, object.GetName(), err)
		}
	}
	return nil
}
