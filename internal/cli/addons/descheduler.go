package addons

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/install"
)

// errorNoSecret is the error about a missing Secret that an installation creates.
func errorNoSecret(name, namespace string) error {
	return fmt.Errorf("Secret %s is missing in namespace %s of %s: install the control plane there first (karmadactl init), or set its namespace with --namespace", name, namespace, hostName) //nolint:staticcheck // Secret is a kind
}

// readSecret returns the Secret, or nil if it does not exist.
func readSecret(ctx context.Context, cluster client.Client, clusterName, namespace, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := cluster.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s/%s of %s: %w", namespace, name, clusterName, err)
	}
	return secret, nil
}

// readInstallation returns the Secret with the control plane's certificates. It returns an error if this
// Secret or the component's kubeconfig Secret does not exist.
func (s *session) readInstallation(ctx context.Context, component string) (certificates *corev1.Secret, err error) {
	for _, name := range []string{install.ConfigSecret(component), clusterv1alpha1.CertificateSecret} {
		secret, err := readSecret(ctx, s.host, hostName, s.hostFlags.Namespace, name)
		if err != nil {
			return nil, err
		}
		if secret == nil {
			return nil, errorNoSecret(name, s.hostFlags.Namespace)
		}
		certificates = secret
	}
	return certificates, nil
}

// deschedulerKey is the descheduler's key in the chart values.
const deschedulerKey = "descheduler"

func enableDescheduler(ctx context.Context, s *session, o *enableOptions) (written int, err error) {
	if _, err := s.readInstallation(ctx, install.DeschedulerProgram); err != nil {
		return 0, err
	}
	objects, err := s.renderAddon(ctx, deschedulerKey, o.componentValues(install.DeschedulerProgram), nil)
	if err != nil {
		return 0, err
	}
	if written, err = s.hostApplier().Apply(ctx, objects...); err != nil {
		return written, err
	}
	return written, s.awaitReady(ctx, install.DeschedulerProgram, o.podTimeoutDuration())
}

func disableDescheduler(ctx context.Context, s *session) error {
	objects, err := s.renderAddon(ctx, deschedulerKey, values{}, nil)
	if err != nil {
		return err
	}
	return s.hostApplier().Delete(ctx, objects...)
}

// awaitReady waits for the Pods of a Deployment in the host cluster.
func (s *session) awaitReady(ctx context.Context, deployment string, timeout time.Duration) error {
	workload := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.hostFlags.Namespace, Name: deployment}}
	return install.AwaitReady(ctx, s.host, workload, timeout)
}
