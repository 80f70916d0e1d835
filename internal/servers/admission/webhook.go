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

// maxBodyBytes bounds a request: two objects of the size that an API server
// accepts, with room for what surrounds them.
const maxBodyBytes = 16 << 20

// Webhook answers AdmissionReviews (admission.k8s.io/v1), one path for each
// question, and ConversionReviews on /convert. A body that is no review is
// answered with HTTP status 400; everything else is answered within the review.
func Webhook(reviewer Reviewer) http.Handler {
	mux := http.NewServeMux()
	table := kinds()
	for i := range table {
		kind := &table[i]
		if kind.mutate != nil {
			mux.Handle("POST "+kind.mutatePath(), review(reviewer.answerMutate(kind)))
		}
		if kind.validate != nil {
			mux.Handle("POST "+kind.validatePath(), review(reviewer.answerValidate(kind)))
		}
	}
	mux.Handle("POST "+deletionPath, review(answerDelete))
	mux.Handle("POST "+agentPath, review(reviewer.answerAgent))
	mux.Handle("POST "+ConversionPath, Conversion())
	return mux
}

// Conversion answers ConversionReviews on /convert, and nothing else.
func Conversion() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+ConversionPath, serveConversion)
	return mux
}

// answer answers one request. The uid is filled in by review.
type answer func(*http.Request, *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse

func review(answer answer) http.Handler {
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
		body.Response = answer(r, body.Request)
		body.Response.UID = body.Request.UID
		body.Request = nil
		body.TypeMeta = metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"}
		writeJSON(w, body)
	})
}

// writeJSON cannot tell anybody that the caller has gone away.
func writeJSON(w http.ResponseWriter, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		http.Error(w, "encoding the answer: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data)
}

func (r Reviewer) answerMutate(kind *kind) answer {
	return func(_ *http.Request, question *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		content, old, err := contents(question)
		if err != nil {
			return refused(err)
		}
		version := question.Resource.Version
		if err := r.complete(kind, version, content, old); err != nil {
			return refused(&undecodableError{err})
		}
		response, err := patched(question.Object.Raw, content)
		if err != nil {
			return refused(err)
		}
		if kind.validate != nil {
			return response
		}
		response.Warnings = r.warnings(kind, version, content, old)
		return response
	}
}

func patched(original []byte, content map[string]any) (*admissionv1.AdmissionResponse, error) {
	completed, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encoding the completed object: %w", err)
	}
	operations, err := jsonpatch.CreatePatch(original, completed)
	if err != nil {
		return nil, fmt.Errorf("comparing the object with the completed one: %w", err)
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

func (r Reviewer) answerValidate(kind *kind) answer {
	return func(request *http.Request, question *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		content, old, err := contents(question)
		if err != nil {
			return refused(err)
		}
		dryRun := question.DryRun != nil && *question.DryRun
		warnings, err := r.judge(request.Context(), kind, question.Resource.Version, content, old, dryRun)
		response := &admissionv1.AdmissionResponse{Allowed: true}
		if err != nil {
			response = refused(err)
		}
		response.Warnings = warnings
		return response
	}
}

func answerDelete(_ *http.Request, question *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	object := metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(question.OldObject.Raw, &object); err != nil {
		return refused(&undecodableError{fmt.Errorf("decoding the object to delete: %w", err)})
	}
	if err := rules.Deletable(&object); err != nil {
		return refused(err)
	}
	return &admissionv1.AdmissionResponse{Allowed: true}
}

// contents decodes the object and its earlier state, which is nil on creation.
func contents(question *admissionv1.AdmissionRequest) (object, old map[string]any, err error) {
	if object, err = content(question.Object.Raw); err != nil {
		return nil, nil, err
	}
	if object == nil {
		return nil, nil, &undecodableError{errors.New("the request holds no object")}
	}
	old, err = content(question.OldObject.Raw)
	return object, old, err
}

// refused turns an error into an answer: as a failure of the server when it could
// not judge, with the error's own status when it has one, as a bad request when the
// object could not be read, else as forbidden.
func refused(err error) *admissionv1.AdmissionResponse {
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
