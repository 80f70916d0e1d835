package installer

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/install"
)

// Preview reports the objects of the host that Install would write, and returns their number. It
// changes nothing. The objects inside the control plane are not compared.
func (i *Installer) Preview(ctx context.Context) (written int, err error) {
	// preflight renders the chart with the same values as ensureCertificates, so the errors could be equal.
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
		i.Progressf("%s would be deleted in %s", install.Describe(referencedObject(reference)), hostName)
	}
	return i.written + len(obsolete), nil
}

// Render returns the objects of the host. The data of Secrets is empty, because it contains private
// keys.
func (i *Installer) Render(ctx context.Context) ([]client.Object, error) {
	if err := i.ensureCertificates(ctx); err != nil {
		return nil, err
	}
	objects := append([]client.Object{install.NewNamespace(i.Namespace)}, i.objects.all()...)
	for _, object := range objects {
		if secret, ok := object.(*unstructured.Unstructured); ok && secret.GetKind() == "Secret" {
			hideData(secret)
		}
	}
	return objects, nil
}

func hideData(secret *unstructured.Unstructured) {
	data, _, _ := unstructured.NestedStringMap(secret.Object, "data")
	for key := range data {
		data[key] = ""
	}
	_ = unstructured.SetNestedStringMap(secret.Object, data, "data")
}

// Unstructured returns the content of an object.
func Unstructured(object client.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", install.Describe(object), err)
	}
	return &unstructured.Unstructured{Object: content}, nil
}
