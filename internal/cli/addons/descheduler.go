package addons

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/install/hosted"
)

// errorNoSecret is the error for a Secret that an installation of a control plane creates.
func errorNoSecret(name, namespace string) error {
	return fmt.Errorf("Secret %s is missing in namespace %s of %s: install the control plane there first (karmadactl init), or set its namespace with --namespace", name, namespace, hostName) //nolint:staticcheck // Secret is a kind
}

// readSecret returns a Secret, or nil if it does not exist.
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

func enableDescheduler(ctx context.Context, s *session, o *enableOptions) (written int, err error) {
	for _, name := range []string{hosted.ConfigSecret(hosted.DeschedulerProgram), clusterv1alpha1.CertificateSecret} {
		secret, err := readSecret(ctx, s.host, hostName, s.namespace, name)
		if err != nil {
			return 0, err
		}
		if secret == nil {
			return 0, errorNoSecret(name, s.namespace)
		}
	}
	descheduler := hosted.Descheduler{Workload: o.workload(s.namespace, hosted.DeschedulerProgram)}
	if written, err = s.hostApplier().Apply(ctx, descheduler.Objects()...); err != nil {
		return written, err
	}
	return written, hosted.AwaitReady(ctx, s.host, client.ObjectKey{Namespace: s.namespace, Name: hosted.DeschedulerProgram}, o.podTimeoutDuration())
}

func disableDescheduler(ctx context.Context, s *session) error {
	return s.hostApplier().Delete(ctx, hosted.Descheduler{Workload: hosted.Workload{Namespace: s.namespace}}.Objects()...)
}
