package installer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/install"
	"karmada.io/karmada/internal/install/certificates"
	"karmada.io/karmada/internal/install/rendering"
)

// NotInstalledError means that a namespace of the host has no installation.
type NotInstalledError struct{ Namespace string }

// Error implements error.
func (n *NotInstalledError) Error() string {
	return fmt.Sprintf("namespace %s of %s has no installation of Karmada: install one with the command init or the chart, or choose another namespace with --namespace", n.Namespace, hostName)
}

// partOfLabel is the label of all objects of the chart.
const partOfLabel, partOf = "app.kubernetes.io/part-of", "karmada"

// Open returns the installer of the installation in a namespace, with the values of its last run.
// The options need no Installation.
func Open(ctx context.Context, options Options, namespace string) (*Installer, error) {
	host, err := newHostClient(options.Host)
	if err != nil {
		return nil, err
	}
	secrets := &corev1.SecretList{}
	if err := host.List(ctx, secrets, client.InNamespace(namespace), client.MatchingLabels{partOfLabel: partOf}); err != nil {
		return nil, fmt.Errorf("listing the Secrets in namespace %s of %s: %w", namespace, hostName, err)
	}
	for i := range secrets.Items {
		secret := &secrets.Items[i]
		release := string(secret.Data[releaseKey])
		if release == "" || secret.Name != SecretName(release) {
			continue
		}
		found, err := decodeStoredSecret(secret)
		if err != nil {
			return nil, err
		}
		options.Installation = rendering.Installation{Release: release, Namespace: namespace, Version: found.Version, Values: found.Values}
		return New(options)
	}
	return nil, &NotInstalledError{Namespace: namespace}
}

// Certificates returns the stored certificates and the description of those that are needed.
func (i *Installer) Certificates(ctx context.Context) (certificates.Set, certificates.Spec, error) {
	files, err := i.readCertificates(ctx)
	return files, i.settings.spec, err
}

var errNotManaged = errors.New("the values contain the certificates (certs.mode custom): change them there")

// RenewCertificates issues the certificates that are missing or due, stores them, and restarts the
// workloads that use them. If the values contain the certificates, it writes nothing, because Helm
// applies the Secrets with the values.
func (i *Installer) RenewCertificates(ctx context.Context) error {
	if err := i.ensureCertificates(ctx); err != nil || !i.settings.isManaged {
		return err
	}
	return i.storeCertificates(ctx)
}

// WriteCertificates stores certificates, restarts the workloads that use them, waits for them, and
// changes the objects of the control plane that contain the authority. It returns an error if the
// stored certificates are no longer the given previous ones.
func (i *Installer) WriteCertificates(ctx context.Context, previous, files certificates.Set) error {
	if !i.settings.isManaged {
		return errNotManaged
	}
	current, err := i.readCertificates(ctx)
	if err != nil {
		return err
	}
	if !maps.EqualFunc(current, previous, slices.Equal) {
		return fmt.Errorf("the certificates in namespace %s of %s have changed in the meantime: run the command again", i.Namespace, hostName)
	}
	i.files = files
	if err := i.renderHost(); err != nil {
		return err
	}
	if err := i.storeCertificates(ctx); err != nil {
		return err
	}
	if err := i.awaitReady(ctx, slices.Concat(i.objects.servers, i.objects.components)...); err != nil {
		return err
	}
	return i.SetUpControlPlane(ctx)
}

// SetUpControlPlane waits for the API server, and applies the objects inside the control plane.
func (i *Installer) SetUpControlPlane(ctx context.Context) error {
	for _, step := range []func(context.Context) error{i.awaitServers, i.prepareControlPlane, i.registerServers} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// awaitServers waits for etcd and the API server.
func (i *Installer) awaitServers(ctx context.Context) error {
	if err := i.awaitReady(ctx, i.objects.servers...); err != nil {
		return err
	}
	return i.connect(ctx)
}

// storeCertificates applies the Secrets, and restarts the workloads whose files have changed.
func (i *Installer) storeCertificates(ctx context.Context) error {
	before := i.written
	for _, object := range i.objects.passive {
		if object.GetObjectKind().GroupVersionKind().Kind != "Secret" {
			continue
		}
		if err := i.apply(ctx, object); err != nil {
			return err
		}
	}
	// Pods that wait for their first certificates need no restart.
	isChanged := i.hadCertificates && i.written > before
	for _, workload := range slices.Concat(i.objects.servers, i.objects.components) {
		if err := i.restart(ctx, workload, isChanged); err != nil {
			return err
		}
	}
	return nil
}

// configHashPath is the path of the annotation with the hash of the mounted files.
var configHashPath = []string{"spec", "template", "metadata", "annotations", clusterv1alpha1.ConfigHashAnnotation}

// restart sets the annotation of a workload so that its Pods are replaced, if their files have
// changed. A workload without the annotation has been started by Helm with the stored certificates,
// and is restarted only if this run changed a Secret. A workload that does not exist is ignored.
func (i *Installer) restart(ctx context.Context, rendered client.Object, isChanged bool) error {
	want, err := readConfigHash(rendered)
	if err != nil {
		return err
	}
	existing := rendered.DeepCopyObject().(client.Object)
	err = i.host.Get(ctx, client.ObjectKeyFromObject(rendered), existing)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %s of %s: %w", install.Describe(rendered), hostName, err)
	}
	current, err := readConfigHash(existing)
	if err != nil {
		return err
	}
	if current == want || current == "" && !isChanged {
		return nil
	}
	patch := map[string]any{}
	if err := unstructured.SetNestedField(patch, want, configHashPath...); err != nil {
		return fmt.Errorf("preparing the restart of %s: %w", install.Describe(rendered), err)
	}
	encoded, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("preparing the restart of %s: %w", install.Describe(rendered), err)
	}
	if err := i.host.Patch(ctx, existing, client.RawPatch("application/merge-patch+json", encoded), client.FieldOwner(Name+"-certificates")); err != nil {
		return fmt.Errorf("restarting %s of %s: %w", install.Describe(rendered), hostName, err)
	}
	i.written++
	i.Progressf("%s is restarted with new certificates", install.Describe(rendered))
	return nil
}

func readConfigHash(workload client.Object) (string, error) {
	content, err := Unstructured(workload)
	if err != nil {
		return "", err
	}
	hash, _, err := unstructured.NestedString(content.Object, configHashPath...)
	if err != nil {
		return "", fmt.Errorf("reading the annotations of %s: %w", install.Describe(workload), err)
	}
	return hash, nil
}

// DeleteCertificates deletes the Secrets with certificates and kubeconfigs that this installer wrote
// for a release in a namespace. The Secret of etcd has the same name for all releases, so
// hasExternalEtcd must report whether the release has none: another release may have it.
func DeleteCertificates(ctx context.Context, hostConfig *rest.Config, release, namespace string, hasExternalEtcd bool, progressf func(string, ...any)) error {
	host, err := newHostClient(hostConfig)
	if err != nil {
		return err
	}
	applier := install.Applier{API: host, Installer: Name, Cluster: hostName, Progressf: progressf}
	names := []string{release + "-cert", release + "-webhook-cert", release + "-kubeconfig"}
	if !hasExternalEtcd {
		names = append(names, etcdSecret)
	}
	for _, name := range names {
		if err := applier.Delete(ctx, install.NewSecret(namespace, name, nil)); err != nil {
			return err
		}
	}
	return nil
}
