// Package interpreter is a kit for authors of interpreter webhooks. A webhook tells Karmada how to
// interpret the objects of a kind: replicas, status, health, dependencies.
//
//	http.Handle("/interpret", interpreter.NewWebhook(interpreter.Operations{
//		configv1alpha1.InterpreterOperationInterpretHealth: isHealthy,
//	}))
//
//	func isHealthy(_ context.Context, request interpreter.Request) interpreter.Response {
//		object := &unstructured.Unstructured{}
//		if err := request.Decode(object); err != nil {
//			return interpreter.Errored(http.StatusBadRequest, err)
//		}
//		ready, _, err := unstructured.NestedBool(object.Object, "status", "ready")
//		if err != nil {
//			return interpreter.Errored(http.StatusUnprocessableEntity, err)
//		}
//		response := interpreter.Succeeded("")
//		response.Healthy = &ready
//		return response
//	}
//
// A ResourceInterpreterWebhookConfiguration registers the webhook in the control plane.
package interpreter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
)

// Request asks a webhook to perform one operation on one object.
type Request struct {
	configv1alpha1.ResourceInterpreterRequest
}

// Decode decodes the object of the request into a pointer to a typed or unstructured object.
func (r *Request) Decode(into any) error { return decode("object", &r.Object, into) }

// DecodeObserved decodes the observed object of a Retain request.
func (r *Request) DecodeObserved(into any) error {
	return decode("observedObject", r.ObservedObject, into)
}

func decode(field string, raw *runtime.RawExtension, into any) error {
	if raw == nil || len(raw.Raw) == 0 {
		return fmt.Errorf("request.%s is missing", field)
	}
	if err := json.Unmarshal(raw.Raw, into); err != nil {
		return fmt.Errorf("decoding request.%s: %w", field, err)
	}
	return nil
}

// Response is the response to a Request. The Webhook sets the UID. If the status code is 0, the Webhook sets it to 200 for a
// successful response and to 403 otherwise.
type Response struct {
	configv1alpha1.ResourceInterpreterResponse
}

// Handler interprets objects. It must be safe for concurrent use.
type Handler interface {
	// Handle returns the response to a request. The context ends when the request ends.
	Handle(ctx context.Context, request Request) Response
}

// HandlerFunc is a function that is a Handler.
type HandlerFunc func(context.Context, Request) Response

// Handle implements Handler.
func (h HandlerFunc) Handle(ctx context.Context, request Request) Response { return h(ctx, request) }

// Operations is a Handler that calls one function for each operation. It responds to other operations with code 400.
type Operations map[configv1alpha1.InterpreterOperation]HandlerFunc

// Handle implements Handler.
func (o Operations) Handle(ctx context.Context, request Request) Response {
	handle, found := o[request.Operation]
	if !found {
		return Errored(http.StatusBadRequest, fmt.Errorf("operation %q is not supported: remove it from the rules of the webhook",
			request.Operation))
	}
	return handle(ctx, request)
}

// Succeeded returns a successful response. The caller sets the fields that the operation requires. The message may be empty. If a
// successful response to ReviseReplica, Retain or AggregateStatus has no patch, the object stays unchanged.
func Succeeded(message string) Response { return ValidationResponse(true, message) }

// Errored returns the response for an operation that failed. code is an HTTP status code.
func Errored(code int32, err error) Response {
	if err == nil {
		err = errors.New("no reason is given")
	}
	response := ValidationResponse(false, err.Error())
	response.Status.Code = code
	return response
}

// ValidationResponse returns a response with the code 200 if it is successful, and 403 if not.
func ValidationResponse(successful bool, message string) Response {
	code := int32(http.StatusForbidden)
	if successful {
		code = http.StatusOK
	}
	return Response{configv1alpha1.ResourceInterpreterResponse{
		Successful: successful,
		Status:     &configv1alpha1.RequestStatus{Message: message, Code: code},
	}}
}

// PatchResponseFromRaw returns a response with the JSON Patch from the original to the current document. Integers of any size
// stay exact. If both documents are equal, the response has no patch.
//
// current must come from an unstructured object or from raw JSON. A typed object lacks the fields that its type does not know, so
// the patch would remove them.
func PatchResponseFromRaw(original, current []byte) Response {
	patch, err := createPatch(original, current)
	if err != nil {
		return Errored(http.StatusInternalServerError, err)
	}
	response := Succeeded("")
	if patch != nil {
		response.Patch, response.PatchType = patch, new(configv1alpha1.PatchTypeJSONPatch)
	}
	return response
}

// complete returns the response with defaults for the fields that the handler may omit.
func (r Response) complete(request *configv1alpha1.ResourceInterpreterRequest) Response {
	r.UID = request.UID
	status := configv1alpha1.RequestStatus{}
	if r.Status != nil {
		status = *r.Status
	}
	if status.Code == 0 {
		status.Code = ValidationResponse(r.Successful, "").Status.Code
	}
	r.Status = &status
	return r
}
