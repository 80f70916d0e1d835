package install

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/install/rendering"
)

// Keys of the Secret that describes an installation.
const (
	valuesKey    = "values.yaml"
	versionKey   = "version"
	releaseKey   = "release"
	inventoryKey = "objects.json"
	// completedKey is the version that the last complete run installed. It is missing before the first
	// complete run.
	completedKey = "completed"
)

// SecretName returns the name of the Secret that describes a release's installation.
func SecretName(release string) string { return release + "-installation" }

// stored is an installation's description in the host cluster.
type stored struct {
	Release, Version string
	Values           rendering.Values
	// IsCompleted means that an earlier run completed the installation.
	IsCompleted bool
	// Inventory lists the host cluster's objects that the last run wrote or still had to delete.
	Inventory []corev1.ObjectReference
}

func referenceTo(object client.Object) corev1.ObjectReference {
	version, kind := object.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	return corev1.ObjectReference{APIVersion: version, Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// referencedObject returns an object with the reference's kind, namespace and name only.
func referencedObject(reference corev1.ObjectReference) client.Object {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: reference.APIVersion, Kind: reference.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: reference.Namespace, Name: reference.Name},
	}
}

// readStored reads an installation's description. It returns nil if there is no installation.
func readStored(ctx context.Context, host client.Client, namespace, release string) (*stored, error) {
	secret := &corev1.Secret{}
	err := host.Get(ctx, client.ObjectKey{Namespace: namespace, Name: SecretName(release)}, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the installation in namespace %s of %s: %w", namespace, HostName, err)
	}
	return decodeStoredSecret(secret)
}

// StoredValues returns the values of the installation in a namespace of the host cluster. They are nil if
// there is no installation.
func StoredValues(ctx context.Context, host client.Client, namespace, release string) (rendering.Values, error) {
	s, err := readStored(ctx, host, namespace, release)
	if err != nil || s == nil {
		return nil, err
	}
	return s.Values, nil
}

func decodeStoredSecret(secret *corev1.Secret) (*stored, error) {
	s := &stored{Release: string(secret.Data[releaseKey]), Version: string(secret.Data[versionKey]),
		IsCompleted: len(secret.Data[completedKey]) > 0}
	if err := yaml.Unmarshal(secret.Data[valuesKey], &s.Values); err != nil {
		return nil, fmt.Errorf("reading key %s of Secret %s/%s of %s: %w", valuesKey, secret.Namespace, secret.Name, HostName, err)
	}
	if inventory := secret.Data[inventoryKey]; len(inventory) > 0 {
		if err := json.Unmarshal(inventory, &s.Inventory); err != nil {
			return nil, fmt.Errorf("reading key %s of Secret %s/%s of %s: %w", inventoryKey, secret.Namespace, secret.Name, HostName, err)
		}
	}
	return s, nil
}

// isFirst reports whether no earlier run completed the installation.
func (i *Installer) isFirst() bool { return i.stored == nil || !i.stored.IsCompleted }

// store writes the installation's description with the given inventory.
func (i *Installer) store(ctx context.Context, inventory []corev1.ObjectReference, isCompleted bool) error {
	values, err := yaml.Marshal(i.Values)
	if err != nil {
		return fmt.Errorf("encoding the values of the installation: %w", err)
	}
	objects, err := json.Marshal(inventory)
	if err != nil {
		return fmt.Errorf("encoding the objects of the installation: %w", err)
	}
	data := map[string][]byte{valuesKey: values, versionKey: []byte(i.Version), releaseKey: []byte(i.Release), inventoryKey: objects}
	if isCompleted {
		data[completedKey] = []byte(i.Version)
	}
	secret := NewSecret(i.Namespace, SecretName(i.Release), data)
	secret.Labels = map[string]string{clusterv1alpha1.BootstrappingLabel: clusterv1alpha1.BootstrappingSecret, partOfLabel: partOf}
	return i.apply(ctx, secret)
}

// inventory returns references to all objects: the wanted ones and the obsolete ones of earlier runs, which
// must be deleted.
func (i *Installer) inventory() (all, obsolete []corev1.ObjectReference) {
	for _, object := range i.objects.all() {
		all = append(all, referenceTo(object))
	}
	if i.stored != nil {
		for _, reference := range i.stored.Inventory {
			if !slices.Contains(all, reference) {
				obsolete = append(obsolete, reference)
			}
		}
	}
	return append(all, obsolete...), obsolete
}

// deleteObsolete deletes objects of earlier runs that the values no longer describe.
func (i *Installer) deleteObsolete(ctx context.Context) error {
	_, obsolete := i.inventory()
	for _, reference := range obsolete {
		if err := i.applier.Delete(ctx, referencedObject(reference)); err != nil {
			return err
		}
		i.written++
	}
	return nil
}

// complete records that the installation is complete.
func (i *Installer) complete(ctx context.Context) error {
	all, obsolete := i.inventory()
	return i.store(ctx, all[:len(all)-len(obsolete)], true)
}
