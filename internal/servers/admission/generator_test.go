package admission

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"karmada.io/karmada/internal/domain/agent"
)

func TestGeneratorWritesNothingForExistingCluster(t *testing.T) {
	roles := schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	works := schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	tests := map[string]struct {
		user     string
		resource schema.GroupVersionResource
		name     string
		err      error
		code     int32
	}{
		"the role of a new cluster":            {agent.GeneratorUser, roles, "system:karmada:west:agent", nil, 0},
		"the role of a cluster that exists":    {agent.GeneratorUser, roles, "system:karmada:east:agent", nil, http.StatusForbidden},
		"its role for Works":                   {agent.GeneratorUser, works, "system:karmada:east:agent-work", nil, http.StatusForbidden},
		"its namespace":                        {agent.GeneratorUser, namespaces, "karmada-es-east", nil, http.StatusForbidden},
		"the namespace of the Secrets":         {agent.GeneratorUser, namespaces, "karmada-cluster", nil, 0},
		"Clusters cannot be read":              {agent.GeneratorUser, roles, "system:karmada:east:agent", errors.New("timeout"), http.StatusInternalServerError},
		"an administrator":                     {"system:admin", roles, "system:karmada:east:agent", nil, 0},
		"another agent, which has no RBAC yet": {agent.User("west"), roles, "system:karmada:east:agent", nil, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			reviewer := Reviewer{ClusterExists: func(_ context.Context, cluster string) (bool, error) { return cluster == "east", test.err }}
			object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": test.name}}}
			for _, operation := range []admission.Operation{admission.Create, admission.Update} {
				attributes := admission.NewAttributesRecord(object, nil, schema.GroupVersionKind{}, "", test.name, test.resource, "", operation, nil, false, &user.DefaultInfo{Name: test.user})
				if code := statusCode(reviewer.validateAgent(t.Context(), attributes)); code != test.code {
					t.Errorf("%s: code %d, want %d", operation, code, test.code)
				}
			}
			raw, err := json.Marshal(object.Object)
			if err != nil {
				t.Fatal(err)
			}
			request, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "/", http.NoBody)
			response := reviewer.reviewAgentWrite(request, &admissionv1.AdmissionRequest{
				UserInfo: authenticationv1.UserInfo{Username: test.user}, Object: runtime.RawExtension{Raw: raw},
				Resource: metav1.GroupVersionResource{Group: test.resource.Group, Version: "v1", Resource: test.resource.Resource},
			})
			if response.Allowed != (test.code == 0) || response.Result != nil && response.Result.Code != test.code {
				t.Errorf("the webhook returns %+v, want code %d", response, test.code)
			}
		})
	}
}

// A response to such a write would contain the credentials.
func TestAgentsCannotWritePushCredentials(t *testing.T) {
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	secret := func(labels map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "karmada-cluster", "name": "east", "labels": labels}}}
	}
	push := map[string]any{"cluster.karmada.io/push-credentials": "true"}
	tests := map[string]struct {
		user   string
		stored *unstructured.Unstructured
		code   int32
	}{
		"the Secret of a cluster in push mode": {agent.User("east"), secret(push), http.StatusForbidden},
		"its own Secret":                       {agent.User("east"), secret(map[string]any{"karmada.io/system": "true"}), 0},
		"an administrator":                     {"system:admin", secret(push), 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			written := secret(map[string]any{})
			attributes := admission.NewAttributesRecord(written, test.stored, schema.GroupVersionKind{}, "karmada-cluster", "east", secrets, "", admission.Update, nil, false, &user.DefaultInfo{Name: test.user})
			if code := statusCode((Reviewer{}).validateAgent(t.Context(), attributes)); code != test.code {
				t.Errorf("plugin: code %d, want %d", code, test.code)
			}
			encode := func(object *unstructured.Unstructured) runtime.RawExtension {
				raw, err := json.Marshal(object.Object)
				if err != nil {
					t.Fatal(err)
				}
				return runtime.RawExtension{Raw: raw}
			}
			request, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "/", http.NoBody)
			response := (Reviewer{}).reviewAgentWrite(request, &admissionv1.AdmissionRequest{
				UserInfo: authenticationv1.UserInfo{Username: test.user}, Object: encode(written), OldObject: encode(test.stored),
				Resource: metav1.GroupVersionResource{Version: "v1", Resource: "secrets"},
			})
			if response.Allowed != (test.code == 0) {
				t.Errorf("webhook: %+v", response)
			}
		})
	}
}
