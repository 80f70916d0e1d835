package install

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"karmada.io/karmada/api/crds"
)

const (
	establishTimeout = time.Minute
	establishPoll    = 50 * time.Millisecond
	// stuckTimeout is how long a CRD with accepted names may stay unserved before it counts as stuck. An API
	// server starts to serve a CRD when it observes the CRD's change to accepted names. If the API server is
	// killed between writing and observing this change, it does not serve the CRD after its next start.
	stuckTimeout = 2 * time.Second
)

var errNotServed = errors.New("is not served yet")

// Conversion configures the webhook that converts resources between versions.
type Conversion struct {
	// URL is the webhook's URL, including its path.
	URL string
	// CABundle verifies the webhook's certificate, in PEM.
	CABundle []byte
}

// ApplyCRDs applies CRDs to the control plane and waits until they are served. If definitions is nil, it
// applies this version's CRDs. It returns the number of CRDs that it changed.
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

func waitForCRDs(ctx context.Context, karmada *rest.Config, objects []client.Object) error {
	extensions, err := apiextensionsclient.NewForConfig(karmada)
	if err != nil {
		return fmt.Errorf("creating a client of the control plane: %w", err)
	}
	kinds, err := servedKinds(objects)
	if err != nil {
		return err
	}
	lastErr := errNotServed
	err = wait.PollUntilContextTimeout(ctx, establishPoll, establishTimeout, true, func(ctx context.Context) (bool, error) {
		notServed := ensureCRDsServed(ctx, extensions, objects, time.Now())
		if notServed == nil {
			notServed = verifyKindsDiscovered(extensions.Discovery(), kinds)
		}
		if notServed == nil || ctx.Err() == nil {
			lastErr = notServed
		}
		return notServed == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for CRDs to be served: %w", errors.Join(err, lastErr))
	}
	return nil
}

// ensureCRDsServed returns an error if a CRD is not served. It updates the status of stuck CRDs, because the
// API server starts to serve a CRD when it observes a change.
func ensureCRDsServed(ctx context.Context, extensions apiextensionsclient.Interface, wanted []client.Object, now time.Time) error {
	crds := extensions.ApiextensionsV1().CustomResourceDefinitions()
	list, err := crds.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing CRDs: %w", err)
	}
	stored := make(map[string]*apiextensionsv1.CustomResourceDefinition, len(list.Items))
	for i := range list.Items {
		stored[list.Items[i].Name] = &list.Items[i]
	}
	var missing error
	for _, object := range wanted {
		crd := stored[object.GetName()]
		if crd != nil && findTrueCondition(crd, apiextensionsv1.Established) != nil {
			continue
		}
		missing = fmt.Errorf("CRD %s %w", object.GetName(), errNotServed)
		if crd == nil {
			continue
		}
		accepted := findTrueCondition(crd, apiextensionsv1.NamesAccepted)
		if accepted == nil || now.Sub(accepted.LastTransitionTime.Time) < stuckTimeout {
			continue
		}
		accepted.LastTransitionTime = metav1.NewTime(now)
		if _, err := crds.UpdateStatus(ctx, crd, metav1.UpdateOptions{FieldManager: FieldManager}); err != nil && !apierrors.IsConflict(err) {
			return fmt.Errorf("updating CRD %s so that it is served: %w", crd.Name, err)
		}
	}
	return missing
}

// servedKinds returns the CRDs' kinds in each served version.
func servedKinds(objects []client.Object) ([]schema.GroupVersionKind, error) {
	var kinds []schema.GroupVersionKind
	for _, object := range objects {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return nil, fmt.Errorf("reading CRD %s: %w", object.GetName(), err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &crd); err != nil {
			return nil, fmt.Errorf("reading CRD %s: %w", object.GetName(), err)
		}
		for i := range crd.Spec.Versions {
			if version := &crd.Spec.Versions[i]; version.Served {
				kinds = append(kinds, schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind})
			}
		}
	}
	return kinds, nil
}

// verifyKindsDiscovered returns an error if discovery does not contain a kind. The Established condition
// does not suffice, because the API server sets it before it adds the kind to discovery. Until then, clients
// cannot map the kind to its resource.
func verifyKindsDiscovered(karmada discovery.DiscoveryInterface, wanted []schema.GroupVersionKind) error {
	// An unavailable aggregated API server makes only its own groups fail, so the CRDs' groups are complete.
	_, lists, err := discovery.ServerGroupsAndResources(karmada)
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return fmt.Errorf("reading the discovery of the control plane: %w", err)
	}
	discovered := sets.New[schema.GroupVersionKind]()
	for _, list := range lists {
		for i := range list.APIResources {
			discovered.Insert(schema.FromAPIVersionAndKind(list.GroupVersion, list.APIResources[i].Kind))
		}
	}
	for _, kind := range wanted {
		if !discovered.Has(kind) {
			return fmt.Errorf("%s %w", kind, errNotServed)
		}
	}
	return nil
}

// findTrueCondition returns the CRD's condition of the given type if its status is True, and nil otherwise.
func findTrueCondition(crd *apiextensionsv1.CustomResourceDefinition,
	kind apiextensionsv1.CustomResourceDefinitionConditionType) *apiextensionsv1.CustomResourceDefinitionCondition {
	for i := range crd.Status.Conditions {
		if c := &crd.Status.Conditions[i]; c.Type == kind && c.Status == apiextensionsv1.ConditionTrue {
			return c
		}
	}
	return nil
}
