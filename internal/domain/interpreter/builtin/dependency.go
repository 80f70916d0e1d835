package builtin

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
)

// podDependencies returns the rule that finds the dependencies of kinds with a Pod template at path.
func podDependencies(path ...string) func(context.Context, *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
	return func(_ context.Context, template *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
		pod, err := typed[corev1.PodTemplateSpec](template.Object, path...)
		if err != nil {
			return nil, err
		}
		return PodDependencies(&pod, template.GetNamespace()), nil
	}
}

// PodDependencies returns references to all ConfigMaps, PersistentVolumeClaims, Secrets and
// ServiceAccounts in the namespace that a Pod from the template needs, sorted by kind and name and
// without duplicates. The ServiceAccount default is omitted, because every namespace has one.
func PodDependencies(template *corev1.PodTemplateSpec, namespace string) []configv1alpha1.DependentObjectReference {
	found := references{}
	found.addPod(&template.Spec)
	return found.sorted(namespace)
}

// reference identifies an object of the core group in the Pod's namespace.
type reference struct{ kind, name string }

type references map[reference]struct{}

const (
	kindConfigMap      = "ConfigMap"
	kindSecret         = "Secret"
	kindClaim          = "PersistentVolumeClaim"
	kindServiceAccount = "ServiceAccount"
)

func (r references) add(kind, name string) {
	if name != "" {
		r[reference{kind: kind, name: name}] = struct{}{}
	}
}

func (r references) sorted(namespace string) []configv1alpha1.DependentObjectReference {
	if len(r) == 0 {
		return nil
	}
	list := make([]configv1alpha1.DependentObjectReference, 0, len(r))
	for key := range r {
		list = append(list, configv1alpha1.DependentObjectReference{
			APIVersion: "v1", Kind: key.kind, Namespace: namespace, Name: key.name,
		})
	}
	slices.SortFunc(list, func(a, b configv1alpha1.DependentObjectReference) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return list
}

func (r references) addPod(spec *corev1.PodSpec) {
	for i := range spec.InitContainers {
		r.addEnvironment(spec.InitContainers[i].Env, spec.InitContainers[i].EnvFrom)
	}
	for i := range spec.Containers {
		r.addEnvironment(spec.Containers[i].Env, spec.Containers[i].EnvFrom)
	}
	for i := range spec.EphemeralContainers {
		r.addEnvironment(spec.EphemeralContainers[i].Env, spec.EphemeralContainers[i].EnvFrom)
	}
	for i := range spec.Volumes {
		r.addVolume(&spec.Volumes[i].VolumeSource)
		r.addVolumeSecret(&spec.Volumes[i].VolumeSource)
	}
	for _, pull := range spec.ImagePullSecrets {
		r.add(kindSecret, pull.Name)
	}
	if spec.ServiceAccountName != "default" {
		r.add(kindServiceAccount, spec.ServiceAccountName)
	}
}

func (r references) addEnvironment(variables []corev1.EnvVar, sources []corev1.EnvFromSource) {
	for i := range variables {
		from := variables[i].ValueFrom
		if from == nil {
			continue
		}
		if from.ConfigMapKeyRef != nil {
			r.add(kindConfigMap, from.ConfigMapKeyRef.Name)
		}
		if from.SecretKeyRef != nil {
			r.add(kindSecret, from.SecretKeyRef.Name)
		}
	}
	for i := range sources {
		if sources[i].ConfigMapRef != nil {
			r.add(kindConfigMap, sources[i].ConfigMapRef.Name)
		}
		if sources[i].SecretRef != nil {
			r.add(kindSecret, sources[i].SecretRef.Name)
		}
	}
}

// addVolume adds references to the objects whose content the volume mounts.
func (r references) addVolume(volume *corev1.VolumeSource) {
	if volume.ConfigMap != nil {
		r.add(kindConfigMap, volume.ConfigMap.Name)
	}
	if volume.Secret != nil {
		r.add(kindSecret, volume.Secret.SecretName)
	}
	if volume.PersistentVolumeClaim != nil {
		r.add(kindClaim, volume.PersistentVolumeClaim.ClaimName)
	}
	if volume.Projected == nil {
		return
	}
	for i := range volume.Projected.Sources {
		if source := volume.Projected.Sources[i].ConfigMap; source != nil {
			r.add(kindConfigMap, source.Name)
		}
		if source := volume.Projected.Sources[i].Secret; source != nil {
			r.add(kindSecret, source.Name)
		}
	}
}

// addVolumeSecret adds a reference to the Secret with the volume's credentials.
func (r references) addVolumeSecret(volume *corev1.VolumeSource) {
	var secret *corev1.LocalObjectReference
	switch {
	case volume.AzureFile != nil:
		r.add(kindSecret, volume.AzureFile.SecretName)
	case volume.CephFS != nil:
		secret = volume.CephFS.SecretRef
	case volume.Cinder != nil:
		secret = volume.Cinder.SecretRef
	case volume.FlexVolume != nil:
		secret = volume.FlexVolume.SecretRef
	case volume.RBD != nil:
		secret = volume.RBD.SecretRef
	case volume.ScaleIO != nil:
		secret = volume.ScaleIO.SecretRef
	case volume.ISCSI != nil:
		secret = volume.ISCSI.SecretRef
	case volume.StorageOS != nil:
		secret = volume.StorageOS.SecretRef
	case volume.CSI != nil:
		secret = volume.CSI.NodePublishSecretRef
	}
	if secret != nil {
		r.add(kindSecret, secret.Name)
	}
}
