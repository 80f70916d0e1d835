package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/interpreter"
)

// contextKind is the kind in requests and responses.
var contextKind = configv1alpha1.GroupVersion.WithKind("ResourceInterpreterContext")

// maxMessageBytes is the maximum length of a webhook's text in an error.
const maxMessageBytes = 500

// Decode decodes a response body.
func Decode(body []byte) (*configv1alpha1.ResourceInterpreterContext, error) {
	if err := decode(body, &quantityTexts{}); err != nil {
		return nil, err
	}
	received := &configv1alpha1.ResourceInterpreterContext{}
	return received, decode(body, received)
}

func decode(body []byte, into any) error {
	err := json.Unmarshal(body, into)
	var wrongType *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrongType):
		return fmt.Errorf("the response has a wrong type: %s is a JSON %s: correct the field in the webhook", wrongType.Field, wrongType.Value)
	case err != nil:
		return fmt.Errorf("the response is no ResourceInterpreterContext in JSON: %w: check that the address is that of the webhook", err)
	}
	return nil
}

// quantityTexts validates the quantities in a response while it is decoded.
type quantityTexts struct {
	Response struct {
		ReplicaRequirements interpreter.RequirementTexts `json:"replicaRequirements"`
		Components          interpreter.ComponentTexts   `json:"components"`
	} `json:"response"`
}

// successful returns the response in the received context, or an error if the response does not belong
// to the request with the given UID, or if the webhook reports a failure.
func successful(received *configv1alpha1.ResourceInterpreterContext, uid types.UID) (*configv1alpha1.ResourceInterpreterResponse, error) {
	switch {
	case received == nil || received.Response == nil:
		return nil, nilFieldError("")
	case received.Kind != "" && received.Kind != contextKind.Kind,
		received.APIVersion != "" && received.APIVersion != contextKind.GroupVersion().String():
		return nil, fmt.Errorf("webhook returned kind %q of %q: return %s of %s, or leave both fields out",
			limit(received.Kind), limit(received.APIVersion), contextKind.Kind, contextKind.GroupVersion())
	}
	response := received.Response
	switch {
	case response.UID == "":
		return nil, errors.New(`expected response.uid as in the request, got "": copy request.uid to response.uid`)
	case response.UID != uid:
		// The error does not contain the UIDs, because they differ for each call, so the error would
		// change the binding's condition each time.
		return nil, errors.New("expected response.uid as in the request, got another one: copy request.uid to response.uid")
	case response.Successful:
		return response, nil
	case response.Status == nil:
		return nil, errors.New("webhook returned nil response.status for a call that is not successful: set its message and code")
	}
	return nil, fmt.Errorf("webhook call failed, get status code: %d, msg: %s", response.Status.Code, limit(response.Status.Message))
}

func limit(text string) string { return conditions.Truncate(text, maxMessageBytes) }

// nilFieldError returns the error for a missing field of the response, or for a missing response if field
// is empty.
func nilFieldError(field string) error {
	path := "response"
	if field != "" {
		path += "." + field
	}
	return fmt.Errorf("webhook returned nil %s: set it, or remove the operation from the rules of the webhook", path)
}

func validateComponents(components []workv1alpha2.Component) error {
	names := make(map[string]struct{}, len(components))
	for i := range components {
		component := &components[i]
		_, isDuplicate := names[component.Name]
		switch {
		case component.Name == "":
			return fmt.Errorf("webhook returned response.components[%d] without a name: set it", i)
		case isDuplicate:
			return fmt.Errorf("webhook returned two components with the name %q in response.components: use each name once", limit(component.Name))
		case component.Replicas < 0:
			return fmt.Errorf("webhook returned response.components[%d].replicas %d: return 0 or more", i, component.Replicas)
		case component.ReplicaRequirements != nil:
			if err := interpreter.ValidateRequests(component.ReplicaRequirements.ResourceRequest); err != nil {
				return fmt.Errorf("reading response.components[%d].replicaRequirements: %w", i, err)
			}
		}
		names[component.Name] = struct{}{}
	}
	return nil
}

// patchedObject applies the response's patch to a copy of the object. It returns the object itself if
// nothing changes.
func patchedObject(
	object *unstructured.Unstructured, response *configv1alpha1.ResourceInterpreterResponse,
) (*unstructured.Unstructured, error) {
	hasType := response.PatchType != nil
	switch {
	case len(response.Patch) == 0 && !hasType:
		return object, nil
	case !hasType:
		return nil, errors.New("webhook returned nil response.patchType with response.patch: set both fields, or none if nothing changes")
	case len(response.Patch) == 0:
		return nil, errors.New("webhook returned nil response.patch with response.patchType: set both fields, or none if nothing changes")
	case *response.PatchType != configv1alpha1.PatchTypeJSONPatch:
		return nil, fmt.Errorf("webhook returned response.patchType %q: only %q is supported",
			limit(string(*response.PatchType)), configv1alpha1.PatchTypeJSONPatch)
	}
	patched, err := applyPatch(object.Object, response.Patch)
	if err != nil {
		return nil, fmt.Errorf("applying response.patch: %w", err)
	}
	if equalJSON(patched, object.Object) {
		return object, nil
	}
	changed := &unstructured.Unstructured{Object: patched}
	if err := validateIdentity(object, changed); err != nil {
		return nil, err
	}
	return changed, nil
}

// validateIdentity returns an error if the patch changed the object's apiVersion, kind, namespace or name.
func validateIdentity(object, patched *unstructured.Unstructured) error {
	if _, isObject := patched.Object["metadata"].(map[string]any); !isObject && patched.Object["metadata"] != nil {
		return errors.New("response.patch replaces metadata by a value that is no object: patch single fields of metadata")
	}
	for _, field := range [][]string{{"apiVersion"}, {"kind"}, {"metadata", "namespace"}, {"metadata", "name"}} {
		before, existed, _ := unstructured.NestedFieldNoCopy(object.Object, field...)
		after, exists, _ := unstructured.NestedFieldNoCopy(patched.Object, field...)
		if existed != exists || !reflect.DeepEqual(before, after) {
			return fmt.Errorf("response.patch changes %s, which identifies the object: remove this operation from the patch",
				strings.Join(field, "."))
		}
	}
	return nil
}

// withStatusOf returns a copy of the template with the patched template's status, or the template itself
// if the status is the same.
func withStatusOf(template, patched *unstructured.Unstructured) *unstructured.Unstructured {
	status, exists := patched.Object["status"]
	if before, existed := template.Object["status"]; existed == exists && equalJSON(before, status) {
		return template
	}
	aggregated := template.DeepCopy()
	delete(aggregated.Object, "status")
	if exists {
		aggregated.Object["status"] = status
	}
	return aggregated
}
