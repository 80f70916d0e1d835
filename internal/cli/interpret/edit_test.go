package interpret

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	"karmada.io/karmada/internal/cli/command"
)

// An edit changes only the fields that the user changed, and only if the customization
// did not change since it was read.
func TestPatchHasTheResourceVersionAndTheChangedFields(t *testing.T) {
	var contentType string
	var patch map[string]any
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(body, &patch) != nil {
			t.Errorf("the body is no patch: %v", err)
		}
		contentType = r.Header.Get("Content-Type")
		conflict := apierrors.NewConflict(schema.GroupResource{Group: configv1alpha1.GroupName, Resource: "resourceinterpretercustomizations"}, "fleet", nil)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusConflict)
		_ = json.NewEncoder(w).Encode(conflict.ErrStatus)
	}))
	t.Cleanup(server.Close)
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	o := &options{ClientFlags: command.ClientFlags{Program: &command.Program{IOStreams: streams, Kubeconfig: writeKubeconfig(t, server.URL)}}}

	original := customizationWith(map[configv1alpha1.InterpreterOperation]string{"InterpretHealth": "return 1\n", "Retain": "return 1\n"})
	original.ResourceVersion = "7"
	edited := original.DeepCopy()
	file := newScriptFile(original)
	file.scripts["InterpretHealth"], file.scripts["InterpretStatus"] = "return 2", "return 3"
	delete(file.scripts, "Retain")
	file.applyTo(edited)
	err := o.patchCustomization(t.Context(), original, edited)
	if !matches(err, "ResourceInterpreterCustomization fleet changed while you edited it: edit it again") {
		t.Errorf("error %v", err)
	}
	want := map[string]any{
		"metadata": map[string]any{"resourceVersion": "7"},
		"spec": map[string]any{"customizations": map[string]any{
			"healthInterpretation": map[string]any{"luaScript": "return 2\n"},
			"statusReflection":     map[string]any{"luaScript": "return 3\n"},
			"retention":            nil,
		}},
	}
	if diff := cmp.Diff(want, patch); diff != "" || contentType != "application/merge-patch+json" {
		t.Errorf("patch of type %s (-want +got):\n%s", contentType, diff)
	}
}

// writeKubeconfig writes a kubeconfig for the server, and returns its path.
func writeKubeconfig(t *testing.T, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{apiVersion: v1, kind: Config, current-context: karmada, clusters: [{name: karmada, cluster: {server: "` + server + `"}}], contexts: [{name: karmada, context: {cluster: karmada}}]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
