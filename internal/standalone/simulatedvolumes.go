package standalone

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// StorageClassName is the name of a simulated cluster's default StorageClass.
	StorageClassName = "standard"
	// provisioner is the provisioner of this StorageClass, and the driver of its volumes.
	provisioner = "simulated-volumes"
	// Annotations by which the volume controller of Kubernetes and an external provisioner
	// communicate.
	claimProvisionerAnnotation  = "volume.kubernetes.io/storage-provisioner"
	volumeProvisionerAnnotation = "pv.kubernetes.io/provisioned-by"
	defaultClassAnnotation      = "storageclass.kubernetes.io/is-default-class"
)

// addVolumes creates the default StorageClass unless it exists, and adds its provisioner.
func addVolumes(ctx context.Context, mgr manager.Manager) error {
	immediate, reclaim := storagev1.VolumeBindingImmediate, corev1.PersistentVolumeReclaimDelete
	class := &storagev1.StorageClass{
		ObjectMeta:  metav1.ObjectMeta{Name: StorageClassName, Annotations: map[string]string{defaultClassAnnotation: "true"}},
		Provisioner: provisioner, VolumeBindingMode: &immediate, ReclaimPolicy: &reclaim,
	}
	// The cache of the manager does not run yet, and a request to create would be a write at each start.
	err := mgr.GetAPIReader().Get(ctx, client.ObjectKeyFromObject(class), &storagev1.StorageClass{})
	if apierrors.IsNotFound(err) {
		err = mgr.GetClient().Create(ctx, class)
	}
	if err != nil {
		return fmt.Errorf("ensuring StorageClass %q: %w", StorageClassName, err)
	}
	v := &volumes{mgr.GetClient()}
	if err := ctrl.NewControllerManagedBy(mgr).Named("simulated-claims").For(&corev1.PersistentVolumeClaim{}).
		Complete(reconcile.AsReconciler(mgr.GetClient(), reconcilerFunc[*corev1.PersistentVolumeClaim](v.provision))); err != nil {
		return fmt.Errorf("adding the provisioner of volumes: %w", err)
	}
	if err := ctrl.NewControllerManagedBy(mgr).Named("simulated-volumes").For(&corev1.PersistentVolume{}).
		Complete(reconcile.AsReconciler(mgr.GetClient(), reconcilerFunc[*corev1.PersistentVolume](v.reclaim))); err != nil {
		return fmt.Errorf("adding the removal of volumes: %w", err)
	}
	return nil
}

// reconcilerFunc reconciles an object that exists.
type reconcilerFunc[T client.Object] func(ctx context.Context, object T) error

// Reconcile implements reconcile.ObjectReconciler.
func (r reconcilerFunc[T]) Reconcile(ctx context.Context, object T) (reconcile.Result, error) {
	return reconcile.Result{}, r(ctx, object)
}

// volumes is a provisioner of volumes that store no data.
type volumes struct{ cluster client.Client }

// provision creates the volume of a claim for which Kubernetes asks the provisioner.
func (v *volumes) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	if claim.Annotations[claimProvisionerAnnotation] != provisioner || claim.Spec.VolumeName != "" || claim.DeletionTimestamp != nil {
		return nil
	}
	if err := v.cluster.Create(ctx, newVolume(claim)); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the volume of PersistentVolumeClaim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return nil
}

// newVolume returns the volume for a claim. Its name contains the claim's UID, so that each claim gets one
// volume.
func newVolume(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	name := "pvc-" + string(claim.UID)
	var class string
	if claim.Spec.StorageClassName != nil {
		class = *claim.Spec.StorageClassName
	}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{volumeProvisionerAnnotation: provisioner}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    claim.Spec.VolumeMode,
			StorageClassName:              class,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: provisioner, VolumeHandle: name}},
		},
	}
}

// reclaim deletes a volume whose claim no longer exists.
func (v *volumes) reclaim(ctx context.Context, volume *corev1.PersistentVolume) error {
	if volume.Annotations[volumeProvisionerAnnotation] != provisioner || volume.Status.Phase != corev1.VolumeReleased ||
		volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete || volume.DeletionTimestamp != nil {
		return nil
	}
	if err := v.cluster.Delete(ctx, volume, client.Preconditions{UID: &volume.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting the released PersistentVolume %s: %w", volume.Name, err)
	}
	return nil
}
