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
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// Conversion is the webhook that converts resources of several versions.
type Conversion struct {
	// URL is the URL of the webhook, including its path.
	URL string
	// CABundle verifies the certificate of the webhook, in PEM.
	CABundle []byte
}

// ApplyCRDs applies CRDs to the control plane and waits until they are served. nil means the CRDs of
// this version. It returns the number of CRDs that differed.
func ApplyCRDs(ctx context.Context, karmada *rest.Config, definitions []crds.CRD, conversion Conversion) (written int, err error) {
	if definitions == nil {
		if definitions, err = crds.All(); err != nil {
			return 0, fmt.Errorf("reading CRDs: %w", err)
		}
	}
	objects, err := customResourceObjects(definitions, conversion)
	if err != nil {
		return 0, err
	}
	if written, err = Apply(ctx, karmada, objects...); err != nil {
		return written, err
	}
	return written, waitForCRDs(ctx, karmada, objects)
}

func customResourceObjects(definitions []crds.CRD, conversion Conversion) ([]client.Object, error) {
	var objects []client.Object
	for _, crd := range definitions {
		if crd.Group == crds.Operator {
			continue
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(crd.YAML, &object.Object); err != nil {
			return nil, fmt.Errorf("reading CRD %s: %w", crd.Name(), err)
		}
		if crd.NeedsConversion() {
			if err := addConversion(object, conversion); err != nil {
				return nil, fmt.Errorf("adding conversion to CRD %s: %w", crd.Name(), err)
			}
		}
		objects = append(objects, object)
	}
	return objects, nil
}

func addConversion(object *unstructured.Unstructured, conversion Conversion) error {
	patch, err := crds.ConversionPatch(conversion.URL, conversion.CABundle)
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

// Apply applies several objects in parallel with server-side apply, and joins the errors. It returns
// the number of objects that differed.
func Apply(ctx context.Context, karmada *rest.Config, objects ...client.Object) (written int, err error) {
	karmadaClient, err := client.New(karmada, client.Options{Scheme: runtime.NewScheme()})
	if err != nil {
		return 0, fmt.Errorf("making client of the control plane: %w", err)
	}
	errs := make([]error, len(objects))
	var changes atomic.Int64
	var writers errgroup.Group
	writers.SetLimit(maxParallelWrites)
	for i, object := range objects {
		writers.Go(func() error {
			changed, err := apply(ctx, karmadaClient, object)
			if changed {
				changes.Add(1)
			}
			errs[i] = err
			return nil
		})
	}
	_ = writers.Wait()
	return int(changes.Load()), errors.Join(errs...)
}

// apply applies one object and reports whether it differed.
func apply(ctx context.Context, karmadaClient client.Client, object client.Object) (changed bool, err error) {
	content, err := encode(object)
	if err != nil {
		return false, err
	}
	existing := &metav1.PartialObjectMetadata{}
	existing.SetGroupVersionKind(content.GroupVersionKind())
	err = karmadaClient.Get(ctx, client.ObjectKeyFromObject(content), existing)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading %s %s: %w", content.GetKind(), client.ObjectKeyFromObject(content), err)
	}
	configuration := client.ApplyConfigurationFromUnstructured(content)
	if err := karmadaClient.Apply(ctx, configuration, client.FieldOwner(FieldManager), client.ForceOwnership); err != nil {
		return false, fmt.Errorf("applying %s %s: %w", content.GetKind(), client.ObjectKeyFromObject(content), err)
	}
	// The API server does not store an object without a difference, so its version stays the same.
	return content.GetResourceVersion() != existing.ResourceVersion, nil
}

// encode returns an object without the fields that the API server sets, because server-side apply
// owns every field in the request.
func encode(object client.Object) (*unstructured.Unstructured, error) {
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("encoding %T %q: %w", object, object.GetName(), err)
	}
	content := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(raw)}
	unstructured.RemoveNestedField(content.Object, "status")
	unstructured.RemoveNestedField(content.Object, "metadata", "creationTimestamp")
	return content, nil
}
