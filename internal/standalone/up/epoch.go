package up

import (
	"context"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	domain "karmada.io/karmada/internal/domain/epoch"
)

// errNotConfirmable means that no restore waits for confirmation.
var errNotConfirmable = errors.New("no restore of the control plane waits for confirmation")

// clientConfig returns the client configuration for the control plane.
func (r *restoreOptions) clientConfig(ctx context.Context, dir dataDir) (*rest.Config, error) {
	if r.kubeconfig != "" {
		config, err := clientcmd.BuildConfigFromFlags("", r.kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("reading the kubeconfig %s: %w", r.kubeconfig, err)
		}
		return config, nil
	}
	pid, err := dir.runningProcess(ctx)
	if err != nil {
		return nil, err
	}
	if pid == 0 {
		return nil, fmt.Errorf("%w on %s: start it with `karmada up --detach --data-dir %s`, or select another control plane with --kubeconfig",
			errNotRunning, dir.path, dir.quoted())
	}
	config, err := clientcmd.BuildConfigFromFlags("", dir.karmadaKubeconfig())
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of the control plane: %w", err)
	}
	return config, nil
}

// readEpoch returns the control plane's epoch and the ConfigMap that contains it. The ConfigMap is nil
// if it does not exist.
func readEpoch(ctx context.Context, karmada kubernetes.Interface) (domain.Epoch, *corev1.ConfigMap, error) {
	stored, err := karmada.CoreV1().ConfigMaps(clusterv1alpha1.NamespaceKarmadaSystem).Get(ctx, clusterv1alpha1.EpochName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return domain.Epoch{}, nil, nil
	}
	if err != nil {
		return domain.Epoch{}, nil, fmt.Errorf("reading ConfigMap %s/%s: %w", clusterv1alpha1.NamespaceKarmadaSystem, clusterv1alpha1.EpochName,
			err)
	}
	return domain.Read(stored.Data, stored.Annotations), stored, nil
}

// confirmRestore confirms the restore, so that objects in members may be deleted again.
func (r *restoreOptions) confirmRestore(ctx context.Context, dir dataDir, out io.Writer) error {
	config, err := r.clientConfig(ctx, dir)
	if err != nil {
		return err
	}
	karmada, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("creating a client of the control plane: %w", err)
	}
	var confirmed domain.Epoch
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		e, stored, err := readEpoch(ctx, karmada)
		if err != nil {
			return err
		}
		if !e.NeedsConfirmation() {
			return errNotConfirmable
		}
		if e.ID == "" {
			return fmt.Errorf("ConfigMap %s/%s has no key %s: add the key to its data", stored.Namespace, stored.Name, clusterv1alpha1.EpochIDKey)
		}
		if stored.Annotations == nil {
			stored.Annotations = map[string]string{}
		}
		stored.Annotations[clusterv1alpha1.ConfirmRestoreAnnotation], confirmed = e.ID, e
		_, err = karmada.CoreV1().ConfigMaps(stored.Namespace).Update(ctx, stored, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("confirming the restore: %w", err)
	}
	fmt.Fprintf(out, "The restore is confirmed: the control plane is %s. Held deletions in member clusters are executed within a minute.\n",
		confirmed.DescribeOrigin())
	return nil
}
