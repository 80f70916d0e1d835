package clusterclient_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/clusterclient"
)

func TestWrapError(t *testing.T) {
	member, err := clusterclient.NewMember("east", &rest.Config{Host: "https://10.0.0.1:6443"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	cause := apierrors.NewUnauthorized("no")
	got := member.WrapError("creating", registration.NewServiceAccount("karmada-cluster", "karmada-east"), cause)
	if !errors.Is(got, cause) {
		t.Error("the cause is lost")
	}
	want := `creating ServiceAccount karmada-cluster/karmada-east in member "east" (https://10.0.0.1:6443): no` + "\n" +
		`The credentials for member "east" are wrong or have expired: get a new kubeconfig.`
	if got.Error() != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// The search for remaining objects lists every kind, including deprecated kinds.
func TestWarningsOfInternalRequestsAreDropped(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		responses := map[string]string{
			"/api":                               `{"kind": "APIVersions", "versions": ["v1"]}`,
			"/apis":                              `{"kind": "APIGroupList", "apiVersion": "v1"}`,
			"/api/v1":                            `{"kind": "APIResourceList", "groupVersion": "v1", "resources": [{"name": "endpoints", "kind": "Endpoints", "namespaced": true, "verbs": ["list", "delete"]}]}`,
			"/api/v1/namespaces/karmada-cluster": `{"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "karmada-cluster"}}`,
			"/api/v1/namespaces/karmada-cluster/endpoints": `{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}`,
		}
		w.Header().Set("Content-Type", "application/json")
		if strings.HasPrefix(r.URL.Path, "/api/v1/") {
			w.Header().Set("Warning", `299 - "old"`)
		}
		fmt.Fprint(w, responses[r.URL.Path])
	}))
	defer server.Close()
	var logged []string
	log := func(format string, args ...any) { logged = append(logged, fmt.Sprintf(format, args...)) }
	member, err := clusterclient.NewMember("east", &rest.Config{Host: server.URL}, log)
	if err != nil {
		t.Fatal(err)
	}
	if remaining, err := member.FindRemainingObject(t.Context(), "karmada-cluster"); err != nil || remaining != "" {
		t.Fatalf("remaining object %q: %v", remaining, err)
	}
	if len(logged) > 0 {
		t.Errorf("logged warnings of internal requests: %q", logged)
	}
	if _, err := member.Get(t.Context(), registration.NewNamespace("karmada-cluster")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{`warning from member "east": old`}, logged); diff != "" {
		t.Errorf("logged (-want +got):\n%s", diff)
	}
}
