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

// absencePause is the time between two looks at a member that does not answer.
const absencePause = 500 * time.Millisecond

// persist tries again as long as a server is not there: a member whose process was
// killed is started again.
func persist(ctx context.Context, try func() error) error {
	for {
		err := try()
		if err == nil || !absent(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(absencePause):
		}
	}
}

// absent tells whether a request failed because the server was not there, or ended.
func absent(err error) bool {
	return utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err)
}

// takeUp looks at what an interrupted registration has left. It reports whether the
// agent is there and does the rest; else it takes back what stands in the way of
// another try.
func takeUp(ctx context.Context, left remains, karmada, member *rest.Config) (there bool, err error) {
	karmadaClient, err := client.New(karmada, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return false, fmt.Errorf("making client of the control plane: %w", err)
	}
	memberClient, err := client.New(member, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return false, fmt.Errorf("making client of member %q: %w", left.cluster, err)
	}
	// Nobody may begin with the token any more.
	if err := discard(ctx, karmadaClient, tokenSecret(left.token)); err != nil {
		return false, err
	}
	if err := left.find(ctx, karmadaClient, memberClient); err != nil {
		return false, fmt.Errorf("looking for what an interrupted registration of %q has left: %w", left.cluster, err)
	}
	if left.goesOn() {
		return true, nil
	}
	fromKarmada, fromMember := left.discarded()
	if err := discard(ctx, memberClient, fromMember...); err != nil {
		return false, err
	}
	return false, discard(ctx, karmadaClient, fromKarmada...)
}

// find reads what there is.
func (r *remains) find(ctx context.Context, karmada, member client.Client) (err error) {
	requests := &certificatesv1.CertificateSigningRequestList{}
	if err := karmada.List(ctx, requests); err != nil {
		return err
	}
	r.requests = requests.Items
	if r.role, err = found(ctx, karmada, "", agent.RoleName(r.cluster), &rbacv1.ClusterRole{}); err != nil {
		return err
	}
	const namespace = clusterv1alpha1.NamespaceKarmadaSystem
	if r.secret, err = found(ctx, member, namespace, pull.AgentKubeconfig, &corev1.Secret{}); err != nil {
		return err
	}
	if r.account, err = found(ctx, member, namespace, pull.AgentAccount, &corev1.ServiceAccount{}); err != nil {
		return err
	}
	r.deployment, err = found(ctx, member, namespace, pull.AgentName, &appsv1.Deployment{})
	return err
}

// found reads an object; it is nil if there is none, or soon none.
func found[T client.Object](ctx context.Context, side client.Client, namespace, name string, into T) (none T, err error) {
	err = side.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into)
	if apierrors.IsNotFound(err) || err == nil && into.GetDeletionTimestamp() != nil {
		return none, nil
	}
	return into, err
}

func tokenSecret(id string) client.Object {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: bootstraputil.BootstrapTokenSecretName(id)}}
}

// discard deletes the objects that were looked at, in their order.
func discard(ctx context.Context, side client.Client, objects ...client.Object) error {
	for _, object := range objects {
		var looked client.Preconditions
		if uid := object.GetUID(); uid != "" {
			looked.UID = &uid
		}
		if err := client.IgnoreNotFound(side.Delete(ctx, object, looked)); err != nil {
			return fmt.Errorf("deleting %T %q of an interrupted registration: %w", object, object.GetName(), err)
		}
	}
	return nil
}
