package install

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// hostObjects groups the host cluster's objects by the step that applies them.
type hostObjects struct {
	// passive are the objects without Pods, on which the others depend.
	passive []client.Object
	// servers are etcd and the API server, on which the components depend.
	servers []client.Object
	// components are the other workloads.
	components []client.Object
}

func (h hostObjects) all() []client.Object {
	return slices.Concat(h.passive, h.servers, h.components)
}

// renderHost renders and groups the host cluster's objects.
func (i *Installer) renderHost() error {
	installation := i.Installation
	if i.settings.isManaged {
		var err error
		if installation, err = withCertificates(installation, i.files); err != nil {
			return err
		}
	}
	objects, err := installation.Host()
	if err != nil {
		return err
	}
	if err := addConfigHashes(objects); err != nil {
		return err
	}
	i.objects = hostObjects{}
	for _, object := range objects {
		labelSecret(object)
		switch {
		case !IsWorkload(object):
			i.objects.passive = append(i.objects.passive, object)
		case object.GetName() == etcd:
			// etcd comes first, because the API server is not ready without it.
			i.objects.servers = append([]client.Object{object}, i.objects.servers...)
		case object.GetName() == i.settings.apiServer:
			i.objects.servers = append(i.objects.servers, object)
		default:
			i.objects.components = append(i.objects.components, object)
		}
	}
	return nil
}

// labelSecret replaces the value of a Secret's BootstrappingLabel, which differs from that of other objects.
func labelSecret(object *unstructured.Unstructured) {
	labels := object.GetLabels()
	if object.GetKind() != "Secret" || labels[clusterv1alpha1.BootstrappingLabel] == "" {
		return
	}
	labels[clusterv1alpha1.BootstrappingLabel] = clusterv1alpha1.BootstrappingSecret
	object.SetLabels(labels)
}

// etcd is the name of etcd's StatefulSet.
const etcd = "etcd"

// configHashBytes is the length of the hash of a Pod's files.
const configHashBytes = 8

// addConfigHashes annotates each workload's Pod template with a hash of the rendered Secrets that its Pods
// mount, so that the Pods are replaced when a certificate or a kubeconfig changes.
func addConfigHashes(objects []*unstructured.Unstructured) error {
	secrets := map[string]map[string]string{}
	for _, object := range objects {
		if object.GetKind() != "Secret" {
			continue
		}
		data, _, err := unstructured.NestedStringMap(object.Object, "data")
		if err != nil {
			return fmt.Errorf("reading rendered Secret %s: %w", object.GetName(), err)
		}
		secrets[object.GetName()] = data
	}
	for _, object := range objects {
		if !IsWorkload(object) {
			continue
		}
		hash, found, err := hashMountedFiles(object, secrets)
		if err != nil {
			return fmt.Errorf("reading the volumes of rendered %s: %w", Describe(object), err)
		}
		if !found {
			continue
		}
		if err := unstructured.SetNestedField(object.Object, hash, "spec", "template", "metadata", "annotations",
			clusterv1alpha1.ConfigHashAnnotation); err != nil {
			return fmt.Errorf("annotating rendered %s: %w", Describe(object), err)
		}
	}
	return nil
}

// hashMountedFiles returns a hash of the Secret keys that a workload mounts. found is false if it mounts
// none of the given Secrets.
func hashMountedFiles(workload *unstructured.Unstructured, secrets map[string]map[string]string) (hash string, found bool, err error) {
	volumes, _, err := unstructured.NestedSlice(workload.Object, "spec", "template", "spec", "volumes")
	if err != nil {
		return "", false, err
	}
	digest := sha256.New()
	for _, entry := range volumes {
		volume, _ := entry.(map[string]any)
		name, _, _ := unstructured.NestedString(volume, "secret", "secretName")
		data, ok := secrets[name]
		if !ok {
			continue
		}
		items, _, err := unstructured.NestedSlice(volume, "secret", "items")
		if err != nil {
			return "", false, err
		}
		found = true
		for _, entry := range items {
			item, _ := entry.(map[string]any)
			key, _ := item["key"].(string)
			fmt.Fprintf(digest, "%q %q %q\n", name, key, data[key])
		}
	}
	return hex.EncodeToString(digest.Sum(nil)[:configHashBytes]), found, nil
}
