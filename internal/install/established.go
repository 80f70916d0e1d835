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
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	establishTimeout = time.Minute
	establishPoll    = 50 * time.Millisecond
	// stuckAfter is when a CRD whose names are accepted is served, or never. An API
	// server serves it when it sees it change; one that was killed in between sees at
	// its next start a CRD that does not.
	stuckAfter = 2 * time.Second
)

var errNotServed = errors.New("is not served yet")

func awaitEstablished(ctx context.Context, karmada *rest.Config, objects []client.Object) error {
	extensions, err := apiextensionsclient.NewForConfig(karmada)
	if err != nil {
		return fmt.Errorf("making client of the control plane: %w", err)
	}
	last := errNotServed
	err = wait.PollUntilContextTimeout(ctx, establishPoll, establishTimeout, true, func(ctx context.Context) (bool, error) {
		wrong := establish(ctx, extensions, objects, time.Now())
		if wrong == nil || ctx.Err() == nil {
			last = wrong
		}
		return wrong == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for CRDs to be served: %w", errors.Join(err, last))
	}
	return nil
}

// establish returns which CRD is not served, and has those looked at again that the
// API server has forgotten.
func establish(ctx context.Context, extensions apiextensionsclient.Interface, wanted []client.Object, now time.Time) error {
	crds := extensions.ApiextensionsV1().CustomResourceDefinitions()
	list, err := crds.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing CRDs: %w", err)
	}
	known := make(map[string]*apiextensionsv1.CustomResourceDefinition, len(list.Items))
	for i := range list.Items {
		known[list.Items[i].Name] = &list.Items[i]
	}
	var missing error
	for _, object := range wanted {
		crd := known[object.GetName()]
		if crd != nil && conditionOf(crd, apiextensionsv1.Established) != nil {
			continue
		}
		missing = fmt.Errorf("CRD %s %w", object.GetName(), errNotServed)
		if crd == nil {
			continue
		}
		accepted := conditionOf(crd, apiextensionsv1.NamesAccepted)
		if accepted == nil || now.Sub(accepted.LastTransitionTime.Time) < stuckAfter {
			continue
		}
		accepted.LastTransitionTime = metav1.NewTime(now)
		if _, err := crds.UpdateStatus(ctx, crd, metav1.UpdateOptions{FieldManager: FieldManager}); err != nil && !apierrors.IsConflict(err) {
			return fmt.Errorf("having CRD %s served: %w", crd.Name, err)
		}
	}
	return missing
}

// conditionOf is a condition of a CRD that is true, nil if it is not.
func conditionOf(crd *apiextensionsv1.CustomResourceDefinition, kind apiextensionsv1.CustomResourceDefinitionConditionType) *apiextensionsv1.CustomResourceDefinitionCondition {
	for i := range crd.Status.Conditions {
		if c := &crd.Status.Conditions[i]; c.Type == kind && c.Status == apiextensionsv1.ConditionTrue {
			return c
		}
	}
	return nil
}
