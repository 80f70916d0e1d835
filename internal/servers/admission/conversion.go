package admission

import (
	"encoding/json"
	"fmt"
	"net/http"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// ConversionPath is the path of the conversion webhook for bindings.
const ConversionPath = "/convert"

// maxConversionBytes limits the size of a ConversionReview, which may contain a whole list.
const maxConversionBytes = 256 << 20

func serveConversion(w http.ResponseWriter, r *http.Request) {
	body := apiextensionsv1.ConversionReview{}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxConversionBytes)).Decode(&body); err != nil {
		http.Error(w, "decoding the ConversionReview: "+err.Error(), http.StatusBadRequest)
		return
	}
	if body.Request == nil {
		http.Error(w, "the ConversionReview has no request", http.StatusBadRequest)
		return
	}
	body.Response = convertAll(body.Request)
	body.Request = nil
	body.TypeMeta = metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "ConversionReview"}
	writeJSON(w, body)
}

// convertAll converts all objects. If it cannot convert one of them, it returns no object.
func convertAll(request *apiextensionsv1.ConversionRequest) *apiextensionsv1.ConversionResponse {
	response := &apiextensionsv1.ConversionResponse{
		UID:              request.UID,
		ConvertedObjects: make([]runtime.RawExtension, 0, len(request.Objects)),
		Result:           metav1.Status{Status: metav1.StatusSuccess},
	}
	for i := range request.Objects {
		converted, err := convert(request.Objects[i].Raw, request.DesiredAPIVersion)
		if err != nil {
			response.ConvertedObjects = nil
			response.Result = metav1.Status{Status: metav1.StatusFailure, Message: fmt.Sprintf("converting object %d: %v", i, err)}
			return response
		}
		response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Raw: converted})
	}
	return response
}

// convert converts an object to the desired version. If the object has this version, convert
// returns it unchanged.
func convert(raw []byte, desired string) ([]byte, error) {
	var meta metav1.TypeMeta
	if err := json.Unmarshal(raw, &meta); err != nil {
		return nil, fmt.Errorf("decoding the kind: %w", err)
	}
	if meta.APIVersion == desired {
		return raw, nil
	}
	to, from := schema.FromAPIVersionAndKind(desired, meta.Kind), meta.GroupVersionKind()
	v1alpha1, v1alpha2 := workv1alpha1.GroupVersion, workv1alpha2.GroupVersion
	switch {
	case from == v1alpha1.WithKind("ResourceBinding") && to.GroupVersion() == v1alpha2:
		return convertJSON(raw, (*workv1alpha1.ResourceBinding).ToV1alpha2)
	case from == v1alpha2.WithKind("ResourceBinding") && to.GroupVersion() == v1alpha1:
		return convertJSON(raw, workv1alpha1.ResourceBindingFromV1alpha2)
	case from == v1alpha1.WithKind("ClusterResourceBinding") && to.GroupVersion() == v1alpha2:
		return convertJSON(raw, (*workv1alpha1.ClusterResourceBinding).ToV1alpha2)
	case from == v1alpha2.WithKind("ClusterResourceBinding") && to.GroupVersion() == v1alpha1:
		return convertJSON(raw, workv1alpha1.ClusterResourceBindingFromV1alpha2)
	}
	return nil, fmt.Errorf("no conversion from %s to version %q", from, desired)
}

func convertJSON[From, To any](raw []byte, convert func(*From) *To) ([]byte, error) {
	from := new(From)
	if err := json.Unmarshal(raw, from); err != nil {
		return nil, fmt.Errorf("decoding the object: %w", err)
	}
	converted, err := json.Marshal(convert(from))
	if err != nil {
		return nil, fmt.Errorf("encoding the converted object: %w", err)
	}
	return converted, nil
}
