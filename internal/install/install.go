// Package install answers "which objects does a Karmada API server need before the components can
// work?". It contains the CRDs, namespaces, roles and registration objects as data, and one
// function that applies them.
//
// All objects are applied server-side. A second installation upgrades the objects of an older
// version, keeps the fields of other managers, and writes no object that is up to date.
package install

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"karmada.io/karmada/api/crds"
)

// FieldManager is the field manager of an installation.
const FieldManager = "karmada-install"

const maxParallelWrites = 8

// ApplyCRDs applies the CRDs of the control plane and waits until they are served. conversionURL
// is the URL of the conversion webhook. caBundle verifies the certificate of this webhook.
func ApplyCRDs(ctx context.Context, karmada *rest.Config, conversionURL string, caBundle []byte) error {
	objects, err := customResourceObjects(conversionURL, caBundle)
	if err != nil {
		return err
	}
	if err := Apply(ctx, karmada, objects...); err != nil {
		return err
	}
	return waitForCRDs(ctx, karmada, objects)
}

func customResourceObjects(conversionURL string, caBundle []byte) ([]client.Object, error) {
	all, err := crds.All()
	if err != nil {
		return nil, fmt.Errorf("reading CRDs: %w", err)
	}
	var objects []client.Object
	for _, crd := range all {
		if crd.Group == crds.Operator {
			continue
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(crd.YAML, &object.Object); err != nil {
			return nil, fmt.Errorf("reading CRD %s: %w", crd.Name(), err)
		}
		if crd.NeedsConversion() {
			if err := addConversion(object, conversionURL, caBundle); err != nil {
				return nil, fmt.Errorf("adding conversion to CRD %s: %w", crd.Name(), err)
			}
		}
		objects = append(objects, object)
	}
	return objects, nil
}

func addConversion(object *unstructured.Unstructured, url string, caBundle []byte) error {
	patch, err := crds.ConversionPatch(url, caBundle)
	if err != nil {
		return err
	}
	var change struct {
		Spec struct {
			Conversion map[string]any `json:"conversion"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(patch, &change); err != nil {
		return err
	}
	return unstructured.SetNestedMap(object.Object, change.Spec.Conversion, "spec", "conversion")
}

// Apply applies several objects in parallel with server-side apply, and joins the errors.
func Apply(ctx context.Context, karmada *rest.Config, objects ...client.Object) error {
	karmadaClient, err := client.New(karmada, client.Options{Scheme: runtime.NewScheme()})
	if err != nil {
		return fmt.Errorf("making client of the control plane: %w", err)
	}
	errs := make([]error, len(objects))
	var writers errgroup.Group
	writers.SetLimit(maxParallelWrites)
	for i, object := range objects {
		writers.Go(func() error {
			errs[i] = apply(ctx, karmadaClient, object)
			return nil
		})
	}
	_ = writers.Wait()
	return errors.Join(errs...)
}

func apply(ctx context.Context, karmadaClient client.Client, object client.Object) error {
	content, ok := object.(*unstructured.Unstructured)
	if !ok {
		raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return fmt.Errorf("encoding %T %q: %w", object, object.GetName(), err)
		}
		content = &unstructured.Unstructured{Object: raw}
	}
	// Server-side apply owns every field in the request, so remove the fields that the API server
	// sets.
	unstructured.RemoveNestedField(content.Object, "status")
	unstructured.RemoveNestedField(content.Object, "metadata", "creationTimestamp")
	configuration := client.ApplyConfigurationFromUnstructured(content)
	if err := karmadaClient.Apply(ctx, configuration, client.FieldOwner(FieldManager), client.ForceOwnership); err != nil {
		return fmt.Errorf("applying %s %s: %w", content.GetKind(), client.ObjectKeyFromObject(content), err)
	}
	return nil
}
