package install

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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/install/certificates"
	"karmada.io/karmada/internal/install/rendering"
)

// NotInstalledError means that a namespace of the host cluster contains no installation.
type NotInstalledError struct{ Namespace string }

// Error implements error.
func (n *NotInstalledError) Error() string {
	return fmt.Sprintf("namespace %s of %s has no installation of Karmada: install one with the command init or the chart, or choose another namespace with --namespace", n.Namespace, HostName)
}

// partOfLabel and partOf are the label of all objects of the chart.
const partOfLabel, partOf = "app.kubernetes.io/part-of", "karmada"

// Open returns an Installer for the installation in a namespace, with the stored values of its last run. It
// ignores options.Installation.
func Open(ctx context.Context, options Options, namespace string) (*Installer, error) {
	host, err := newHostClient(options.Host)
	if err != nil {
		return nil, err
	}
	secrets := &corev1.SecretList{}
	if err := host.List(ctx, secrets, client.InNamespace(namespace), client.MatchingLabels{partOfLabel: partOf}); err != nil {
		return nil, fmt.Errorf("listing the Secrets in namespace %s of %s: %w", namespace, HostName, err)
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
		return NewInstaller(options)
	}
	return nil, &NotInstalledError{Namespace: namespace}
}

// Certificates returns the stored certificates and the specification of the required ones.
func (i *Installer) Certificates(ctx context.Context) (certificates.Set, certificates.Spec, error) {
	files, err := i.readCertificates(ctx)
	return files, i.settings.spec, err
}

var errNotManaged = errors.New("the values contain the certificates (certs.mode custom): change them there")

// RenewCertificates issues certificates that are missing or due for renewal, stores them, and restarts the
// workloads that use them. It writes nothing if the values contain the certificates, because Helm then
// applies the Secrets.
func (i *Installer) RenewCertificates(ctx context.Context) error {
	if err := i.ensureCertificates(ctx); err != nil || !i.settings.isManaged {
		return err
	}
	return i.storeCertificates(ctx)
}

// WriteCertificates stores certificates, restarts the workloads that use them, waits for the workloads, and
// updates the CA in the control plane's objects. It returns an error if the stored certificates are not
// equal to previous any more.
func (i *Installer) WriteCertificates(ctx context.Context, previous, files certificates.Set) error {
	if !i.settings.isManaged {
		return errNotManaged
	}
	current, err := i.readCertificates(ctx)
	if err != nil {
		return err
	}
	if !maps.EqualFunc(current, previous, slices.Equal) {
		return fmt.Errorf("the certificates in namespace %s of %s have changed in the meantime: run the command again", i.Namespace, HostName)
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

// SetUpControlPlane waits for the API server and applies the objects inside the control plane.
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

// storeCertificates applies the Secrets and restarts the workloads whose files changed.
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
	// Pods that still wait for their first certificates need no restart.
	isChanged := i.hadCertificates && i.written > before
	for _, workload := range slices.Concat(i.objects.servers, i.objects.components) {
		if err := i.restart(ctx, workload, isChanged); err != nil {
			return err
		}
	}
	return nil
}

// configHashPath is the path of the annotation that contains the hash of the mounted files.
var configHashPath = []string{"spec", "template", "metadata", "annotations", clusterv1alpha1.ConfigHashAnnotation}

// restart updates the workload's hash annotation if its files changed, so that its Pods are replaced. A
// workload without the annotation was started by Helm with the stored certificates, so it is restarted only
// if this run changed a Secret. A workload that does not exist is ignored.
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
		return fmt.Errorf("reading %s of %s: %w", Describe(rendered), HostName, err)
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
		return fmt.Errorf("preparing the restart of %s: %w", Describe(rendered), err)
	}
	encoded, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("preparing the restart of %s: %w", Describe(rendered), err)
	}
	if err := i.host.Patch(ctx, existing, client.RawPatch("application/merge-patch+json", encoded),
		client.FieldOwner(InstallationManager+"-certificates")); err != nil {
		return fmt.Errorf("restarting %s of %s: %w", Describe(rendered), HostName, err)
	}
	i.written++
	i.Progressf("%s is restarted with new certificates", Describe(rendered))
	return nil
}

// readConfigHash returns the hash annotation in a workload's Pod template.
func readConfigHash(workload client.Object) (string, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(workload)
	if err != nil {
		return "", fmt.Errorf("encoding %s: %w", Describe(workload), err)
	}
	hash, _, err := unstructured.NestedString(content, configHashPath...)
	if err != nil {
		return "", fmt.Errorf("reading the annotations of %s: %w", Describe(workload), err)
	}
	return hash, nil
}

// DeleteCertificates deletes the Secrets with certificates and kubeconfigs that this installer wrote
// for a release in a namespace. The Secret of etcd has the same name for all releases, so
// hasExternalEtcd must report whether the release has none: another release may have it.
func DeleteCertificates(ctx context.Context, hostConfig *rest.Config, release, namespace string, hasExternalEtcd bool,
	progressf func(string, ...any)) error {
	host, err := newHostClient(hostConfig)
	if err != nil {
		return err
	}
	applier := Applier{API: host, Installer: InstallationManager, Cluster: HostName, Progressf: progressf}
	names := []string{release + "-cert", release + "-webhook-cert", release + "-kubeconfig"}
	if !hasExternalEtcd {
		names = append(names, etcdSecret)
	}
	for _, name := range names {
		if err := applier.Delete(ctx, NewSecret(namespace, name, nil)); err != nil {
			return err
		}
	}
	return nil
}
