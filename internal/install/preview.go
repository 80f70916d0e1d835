package install

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Preview reports the host cluster's objects that Install would write, and returns their number. It writes
// nothing and does not compare the objects inside the control plane.
func (i *Installer) Preview(ctx context.Context) (written int, err error) {
	// A rejected value would fail both steps with the same error, so return after the first one.
	if err := i.preflight(ctx); err != nil {
		return 0, err
	}
	if err := i.ensureCertificates(ctx); err != nil {
		return 0, err
	}
	i.applier.DryRun = true
	if err := i.ensureNamespace(ctx); err != nil {
		return 0, err
	}
	if err := i.apply(ctx, i.objects.all()...); err != nil {
		return 0, err
	}
	_, obsolete := i.inventory()
	for _, reference := range obsolete {
		i.Progressf("%s would be deleted in %s", Describe(referencedObject(reference)), HostName)
	}
	return i.written + len(obsolete), nil
}

// Render returns the host cluster's objects. The data of Secrets is empty, because it contains private keys.
func (i *Installer) Render(ctx context.Context) ([]client.Object, error) {
	if err := i.ensureCertificates(ctx); err != nil {
		return nil, err
	}
	objects := append([]client.Object{NewNamespace(i.Namespace)}, i.objects.all()...)
	for _, object := range objects {
		if secret, ok := object.(*unstructured.Unstructured); ok && secret.GetKind() == "Secret" {
			redactSecret(secret)
		}
	}
	return objects, nil
}

func redactSecret(secret *unstructured.Unstructured) {
	data, _, _ := unstructured.NestedStringMap(secret.Object, "data")
	for key := range data {
		data[key] = ""
	}
	_ = unstructured.SetNestedStringMap(secret.Object, data, "data")
}
