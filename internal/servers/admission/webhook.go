package admission

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rules "karmada.io/karmada/internal/domain/admission"
)

// maxBodyBytes limits the size of a request. A request can contain two objects of the maximum size
// of an API server, and the other fields of the AdmissionReview.
const maxBodyBytes = 16 << 20

// NewWebhookHandler serves AdmissionReviews (admission.k8s.io/v1), with one path for each webhook,
// and ConversionReviews on /convert. If a review is invalid, the HTTP status is 400. All other
// errors are returned in the review.
func NewWebhookHandler(reviewer Reviewer) http.Handler {
	mux := http.NewServeMux()
	table := kinds()
	for i := range table {
		kind := &table[i]
		if kind.mutate != nil {
			mux.Handle("POST "+kind.mutatePath(), handleReview(reviewer.mutateReview(kind)))
		}
		if kind.validate != nil {
			mux.Handle("POST "+kind.validatePath(), handleReview(reviewer.validateReview(kind)))
		}
	}
	mux.Handle("POST "+deletionPath, handleReview(reviewDelete))
	mux.Handle("POST "+agentPath, handleReview(reviewer.reviewAgentWrite))
	mux.Handle("POST "+ConversionPath, ConversionHandler())
	return mux
}

// ConversionHandler serves only ConversionReviews on /convert.
func ConversionHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+ConversionPath, serveConversion)
	return mux
}

// reviewFunc handles one request. Its caller handleReview sets the UID of the response.
type reviewFunc func(*http.Request, *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse

func handleReview(handle reviewFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := admissionv1.AdmissionReview{}
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBodyBytes)).Decode(&body); err != nil {
			http.Error(w, "decoding the AdmissionReview: "+err.Error(), http.StatusBadRequest)
			return
		}
		if body.Request == nil {
			http.Error(w, "the AdmissionReview has no request", http.StatusBadRequest)
			return
		}
		body.Response = handle(r, body.Request)
		body.Response.UID = body.Request.UID
		body.Request = nil
		body.TypeMeta = metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"}
		writeJSON(w, body)
	})
}

// writeJSON writes a JSON response. It ignores write errors, because they only mean that the
// caller disconnected.
func writeJSON(w http.ResponseWriter, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		http.Error(w, "encoding the response: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data)
}

func (r Reviewer) mutateReview(kind *kind) reviewFunc {
	return func(_ *http.Request, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		content, old, err := decodeObjects(request)
		if err != nil {
			return errorResponse(err)
		}
		version := request.Resource.Version
		if err := r.applyDefaults(kind, version, content, old); err != nil {
			return errorResponse(&undecodableError{err})
		}
		response, err := patchResponse(request.Object.Raw, content)
		if err != nil {
			return errorResponse(err)
		}
		if kind.validate != nil {
			return response
		}
		response.Warnings = r.creationWarnings(kind, version, content, old)
		return response
	}
}

func patchResponse(original []byte, content map[string]any) (*admissionv1.AdmissionResponse, error) {
	defaulted, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encoding the defaulted object: %w", err)
	}
	operations, err := jsonpatch.CreatePatch(original, defaulted)
	if err != nil {
		return nil, fmt.Errorf("computing the patch: %w", err)
	}
	response := &admissionv1.AdmissionResponse{Allowed: true}
	if len(operations) == 0 {
		return response, nil
	}
	if response.Patch, err = json.Marshal(operations); err != nil {
		return nil, fmt.Errorf("encoding the patch: %w", err)
	}
	response.PatchType = new(admissionv1.PatchTypeJSONPatch)
	return response, nil
}

func (r Reviewer) validateReview(kind *kind) reviewFunc {
	return func(httpRequest *http.Request, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		content, old, err := decodeObjects(request)
		if err != nil {
			return errorResponse(err)
		}
		dryRun := request.DryRun != nil && *request.DryRun
		warnings, err := r.validate(httpRequest.Context(), kind, request.Resource.Version, content, old, dryRun)
		response := &admissionv1.AdmissionResponse{Allowed: true}
		if err != nil {
			response = errorResponse(err)
		}
		response.Warnings = warnings
		return response
	}
}

func reviewDelete(_ *http.Request, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	object := metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(request.OldObject.Raw, &object); err != nil {
		return errorResponse(&undecodableError{fmt.Errorf("decoding the object to delete: %w", err)})
	}
	if err := rules.CheckDeletionProtection(&object); err != nil {
		return errorResponse(err)
	}
	return &admissionv1.AdmissionResponse{Allowed: true}
}

// decodeObjects decodes the new object and the old object of a request. The old object is nil on
// creation.
func decodeObjects(request *admissionv1.AdmissionRequest) (object, old map[string]any, err error) {
	if object, err = decodeJSON(request.Object.Raw); err != nil {
		return nil, nil, err
	}
	if object == nil {
		return nil, nil, &undecodableError{errors.New("the request has no object")}
	}
	old, err = decodeJSON(request.OldObject.Raw)
	return object, old, err
}

// errorResponse converts an error to a response: unavailableError becomes an internal error, an
// error with an API status is returned with this status, undecodableError becomes a bad request,
// and any other error becomes Forbidden.
func errorResponse(err error) *admissionv1.AdmissionResponse {
	if isUnavailable(err) {
		err = apierrors.NewInternalError(err)
	}
	var known apierrors.APIStatus
	if errors.As(err, &known) {
		status := known.Status()
		return &admissionv1.AdmissionResponse{Result: &status}
	}
	code, reason := int32(http.StatusForbidden), metav1.StatusReasonForbidden
	if isUndecodable(err) {
		code, reason = http.StatusBadRequest, metav1.StatusReasonBadRequest
	}
	return &admissionv1.AdmissionResponse{Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: err.Error(),
	}}
}
