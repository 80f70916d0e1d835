package aggregated_test

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// fakeKarmadaAPI implements the parts of a Karmada API server that the aggregated API server
// needs: it publishes the authentication configuration, reviews tokens (the token is the name
// of the user) and permissions (alice may do everything), and serves Secrets.
type fakeKarmadaAPI struct {
	authentication map[string]string
	secrets        []corev1.Secret
}

// start serves the API until the test ends.
func (f *fakeKarmadaAPI) start(t *testing.T) *rest.Config {
	t.Helper()
	server := httptest.NewTLSServer(f)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
}

func (f *fakeKarmadaAPI) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	query := req.URL.Query()
	switch {
	case strings.HasSuffix(req.URL.Path, "/subjectaccessreviews"):
		writeReview[authorizationv1.SubjectAccessReview](w, req, func(r *authorizationv1.SubjectAccessReview) {
			r.Status.Allowed = r.Spec.User == "alice"
		})
	case strings.HasSuffix(req.URL.Path, "/tokenreviews"):
		writeReview[authenticationv1.TokenReview](w, req, func(r *authenticationv1.TokenReview) {
			r.Status.Authenticated = true
			r.Status.User.Username = r.Spec.Token
		})
	case query.Get("sendInitialEvents") != "":
		writeJSON(w, http.StatusUnprocessableEntity, metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity})
	case query.Get("watch") != "":
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-req.Context().Done()
	case strings.HasSuffix(req.URL.Path, "/configmaps/extension-apiserver-authentication"):
		writeJSON(w, http.StatusOK, f.configMap())
	case strings.HasSuffix(req.URL.Path, "/configmaps"):
		writeJSON(w, http.StatusOK, corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []corev1.ConfigMap{f.configMap()}})
	case strings.HasSuffix(req.URL.Path, "/secrets"):
		writeJSON(w, http.StatusOK, corev1.SecretList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: f.secrets})
	default:
		writeJSON(w, http.StatusOK, corev1.List{ListMeta: metav1.ListMeta{ResourceVersion: "1"}})
	}
}

func (f *fakeKarmadaAPI) configMap() corev1.ConfigMap {
	return corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "extension-apiserver-authentication", ResourceVersion: "1"},
		Data:       f.authentication,
	}
}

func writeReview[R any](w http.ResponseWriter, req *http.Request, decide func(*R)) {
	var r R
	if err := json.NewDecoder(req.Body).Decode(&r); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	decide(&r)
	writeJSON(w, http.StatusCreated, r)
}

func writeJSON(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

// jsonList encodes strings as the Karmada API server publishes lists.
func jsonList(items ...string) string {
	raw, _ := json.Marshal(slices.Clip(items))
	return string(raw)
}
