package admission

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

func post(t *testing.T, path string, body any) *httptest.ResponseRecorder {
	t.Helper()
	return postTo(t, NewWebhookHandler(reviewer()), path, body)
}

func postTo(t *testing.T, webhook http.Handler, path string, body any) *httptest.ResponseRecorder {
	t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	if text, ok := body.(string); ok {
		data = []byte(text)
	}
	recorder := httptest.NewRecorder()
	webhook.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, bytes.NewReader(data)))
	return recorder
}

func raw(t *testing.T, text string) runtime.RawExtension {
	t.Helper()
	if text == "" {
		return runtime.RawExtension{}
	}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: data}
}

func reviewObject(t *testing.T, path, object, old string) *admissionv1.AdmissionResponse {
	t.Helper()
	request := &admissionv1.AdmissionRequest{UID: "u", Object: raw(t, object), OldObject: raw(t, old)}
	request.Resource = metav1.GroupVersionResource{Version: "v1alpha1"}
	recorder := post(t, path, admissionv1.AdmissionReview{Request: request})
	if recorder.Code != http.StatusOK {
		t.Fatalf("status %d: %s", recorder.Code, recorder.Body)
	}
	review := admissionv1.AdmissionReview{}
	if err := json.Unmarshal(recorder.Body.Bytes(), &review); err != nil {
		t.Fatal(err)
	}
	if review.Kind != "AdmissionReview" || review.APIVersion != "admission.k8s.io/v1" || review.Response == nil || review.Response.UID != "u" || review.Request != nil {
		t.Fatalf("not a response to the review: %s", recorder.Body)
	}
	return review.Response
}

func TestWebhookReturnsPatch(t *testing.T) {
	response := reviewObject(t, "/mutate-propagationpolicy", newPolicy, "")
	if !response.Allowed || response.PatchType == nil || *response.PatchType != admissionv1.PatchTypeJSONPatch {
		t.Fatalf("response = %+v", response)
	}
	patch, err := jsonpatch.DecodePatch(response.Patch)
	if err != nil {
		t.Fatal(err)
	}
	patched, err := patch.Apply(raw(t, newPolicy).Raw)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeJSON(patched)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(parse(t, completePolicy).Object, got); diff != "" {
		t.Errorf("patched object differs (-want +got):\n%s", diff)
	}
	if unchanged := reviewObject(t, "/mutate-propagationpolicy", completePolicy, completePolicy); !unchanged.Allowed || unchanged.Patch != nil {
		t.Errorf("a complete object is patched: %s", unchanged.Patch)
	}
}

func TestWebhookValidates(t *testing.T) {
	tests := map[string]struct {
		path, object, old string
		code              int32
		want              string
		warnings          int
	}{
		"a valid policy is allowed":                             {path: "/validate-propagationpolicy", object: completePolicy, warnings: 1},
		"a violated rule is denied":                             {path: "/validate-propagationpolicy", object: invalidPolicy, code: http.StatusForbidden, want: "spec.resourceSelectors[0].namespace", warnings: 1},
		"an undecodable object is a bad request":                {path: "/validate-propagationpolicy", object: undecodablePolicy, code: http.StatusBadRequest, want: "priority"},
		"an undecodable object has no patch":                    {path: "/mutate-propagationpolicy", object: undecodablePolicy, code: http.StatusBadRequest, want: "priority"},
		"a missing object is a bad request":                     {path: "/mutate-propagationpolicy", code: http.StatusBadRequest, want: "no object"},
		"an unprotected object may be deleted":                  {path: "/validate-resourcedeletionprotection", old: `{metadata: {labels: {a: b}}}`},
		"a protected object may not be deleted":                 {path: "/validate-resourcedeletionprotection", old: `{metadata: {labels: {resourcetemplate.karmada.io/deletion-protected: Always}}}`, code: http.StatusForbidden, want: "protected"},
		"a kind that is not implemented gets a warning":         {path: "/validate-federatedhpa", object: objectWithSpec("FederatedHPA", "autoscaling", `scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, minReplicas: 1, maxReplicas: 2`), warnings: 1},
		"a customization is allowed":                            {path: "/validate-resourceinterpretercustomization", object: interpreter},
		"a Work outside of execution namespaces gets a warning": {path: "/mutate-work", object: workOutsideExecutionNamespace, warnings: 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			response := reviewObject(t, test.path, test.object, test.old)
			if response.Allowed != (test.code == 0) {
				t.Fatalf("allowed = %v: %+v", response.Allowed, response.Result)
			}
			if test.code != 0 && (response.Result.Code != test.code || !strings.Contains(response.Result.Message, test.want)) {
				t.Errorf("result = %+v, want code %d and %q", response.Result, test.code, test.want)
			}
			if len(response.Warnings) != test.warnings {
				t.Errorf("warnings = %q, want %d", response.Warnings, test.warnings)
			}
		})
	}
}

func TestWebhookRejectsInvalidReviews(t *testing.T) {
	for _, path := range []string{"/mutate-work", "/validate-propagationpolicy", "/validate-resourcedeletionprotection", "/convert"} {
		for _, body := range []string{"", "{", "{}", `{"request":1}`} {
			if got := post(t, path, body); got.Code != http.StatusBadRequest {
				t.Errorf("%s with %q: status %d, want 400", path, body, got.Code)
			}
		}
	}
	if got := post(t, "/mutate-pod", "{}"); got.Code != http.StatusNotFound {
		t.Errorf("an unknown path: status %d, want 404", got.Code)
	}
}

func TestConversionServesOnlyConversions(t *testing.T) {
	for path, want := range map[string]int{"/convert": http.StatusBadRequest, "/validate-agentquota": http.StatusNotFound, "/mutate-work": http.StatusNotFound} {
		recorder := httptest.NewRecorder()
		ConversionHandler().ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader("{}")))
		if recorder.Code != want {
			t.Errorf("%s: status %d, want %d", path, recorder.Code, want)
		}
	}
}

func TestConversion(t *testing.T) {
	const newBinding = `{apiVersion: work.karmada.io/v1alpha2, kind: ResourceBinding, metadata: {name: b, namespace: shop}, spec: {replicas: 2, resource: {apiVersion: v1, kind: Pod, namespace: shop, name: p}}}`
	tests := map[string]struct {
		objects []string
		desired string
		fails   bool
	}{
		"to the stored version":                 {objects: []string{oldBinding}, desired: "work.karmada.io/v1alpha2"},
		"to the old version":                    {objects: []string{newBinding, newBinding}, desired: "work.karmada.io/v1alpha1"},
		"from both to one":                      {objects: []string{newBinding, oldBinding}, desired: "work.karmada.io/v1alpha2"},
		"of cluster bindings":                   {objects: []string{strings.Replace(newBinding, "ResourceBinding", "ClusterResourceBinding", 1)}, desired: "work.karmada.io/v1alpha1"},
		"of cluster bindings, upwards":          {objects: []string{strings.Replace(oldBinding, "ResourceBinding", "ClusterResourceBinding", 1)}, desired: "work.karmada.io/v1alpha2"},
		"of other kinds fails":                  {objects: []string{workOutsideExecutionNamespace}, desired: "work.karmada.io/v1alpha2", fails: true},
		"to an unknown version fails":           {objects: []string{newBinding}, desired: "work.karmada.io/v9", fails: true},
		"of an object with the desired version": {objects: []string{oldBinding}, desired: "work.karmada.io/v1alpha1"},
		"one failure fails all objects":         {objects: []string{newBinding, workOutsideExecutionNamespace}, desired: "work.karmada.io/v1alpha2", fails: true},
		"of an undecodable object fails":        {objects: []string{strings.Replace(newBinding, "replicas: 2", "replicas: x", 1)}, desired: "work.karmada.io/v1alpha1", fails: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			request := &apiextensionsv1.ConversionRequest{UID: "u", DesiredAPIVersion: test.desired}
			for _, object := range test.objects {
				request.Objects = append(request.Objects, raw(t, object))
			}
			recorder := post(t, "/convert", apiextensionsv1.ConversionReview{Request: request})
			review := apiextensionsv1.ConversionReview{}
			if err := json.Unmarshal(recorder.Body.Bytes(), &review); err != nil || review.Response == nil || review.Response.UID != "u" {
				t.Fatalf("not a response: %v, %s", err, recorder.Body)
			}
			if failed := review.Response.Result.Status != metav1.StatusSuccess; failed != test.fails {
				t.Fatalf("result = %+v, want failure %v", review.Response.Result, test.fails)
			}
			if test.fails {
				return
			}
			if len(review.Response.ConvertedObjects) != len(test.objects) {
				t.Fatalf("%d objects, want %d", len(review.Response.ConvertedObjects), len(test.objects))
			}
			for i, converted := range review.Response.ConvertedObjects {
				got, original := parse(t, string(converted.Raw)), parse(t, test.objects[i])
				if got.GetAPIVersion() != test.desired || got.GetKind() != original.GetKind() || got.GetName() != original.GetName() {
					t.Errorf("object %d became %s", i, converted.Raw)
				}
			}
		})
	}
}

func TestConfigurations(t *testing.T) {
	mutating, validating := Configurations(func(path string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{URL: new("https://h" + path)}
	})
	type line struct {
		Name, Path, Resource, Operations, Scope, SideEffects string
		Timeout                                              int32
	}
	describe := func(name string, client admissionregistrationv1.WebhookClientConfig, rules []admissionregistrationv1.RuleWithOperations, effects *admissionregistrationv1.SideEffectClass, timeout *int32) line {
		var operations []string
		for _, operation := range rules[0].Operations {
			operations = append(operations, string(operation))
		}
		return line{name, strings.TrimPrefix(*client.URL, "https://h"), rules[0].APIGroups[0] + "/" + rules[0].Resources[0],
			strings.Join(operations, ","), string(*rules[0].Scope), string(*effects), *timeout}
	}
	var got []line
	for _, w := range mutating.Webhooks {
		got = append(got, describe(w.Name, w.ClientConfig, w.Rules, w.SideEffects, w.TimeoutSeconds))
	}
	for _, w := range validating.Webhooks {
		got = append(got, describe(w.Name, w.ClientConfig, w.Rules, w.SideEffects, w.TimeoutSeconds))
	}
	const both, policy, work = "CREATE,UPDATE", "policy.karmada.io/", "work.karmada.io/"
	want := []line{
		{"propagationpolicy.karmada.io", "/mutate-propagationpolicy", policy + "propagationpolicies", both, "Namespaced", "None", 3},
		{"clusterpropagationpolicy.karmada.io", "/mutate-clusterpropagationpolicy", policy + "clusterpropagationpolicies", both, "Cluster", "None", 3},
		{"overridepolicy.karmada.io", "/mutate-overridepolicy", policy + "overridepolicies", both, "Namespaced", "None", 3},
		{"resourcebinding.karmada.io", "/mutate-resourcebinding", work + "resourcebindings", "CREATE", "Namespaced", "None", 3},
		{"clusterresourcebinding.karmada.io", "/mutate-clusterresourcebinding", work + "clusterresourcebindings", "CREATE", "Cluster", "None", 3},
		{"work.karmada.io", "/mutate-work", work + "works", both, "Namespaced", "None", 3},
		{"autoscaling.karmada.io", "/mutate-federatedhpa", "autoscaling.karmada.io/federatedhpas", both, "Namespaced", "None", 3},
		{"multiclusterservice.karmada.io", "/mutate-multiclusterservice", "networking.karmada.io/multiclusterservices", both, "Namespaced", "None", 3},

		{"propagationpolicy.karmada.io", "/validate-propagationpolicy", policy + "propagationpolicies", both, "Namespaced", "None", 3},
		{"clusterpropagationpolicy.karmada.io", "/validate-clusterpropagationpolicy", policy + "clusterpropagationpolicies", both, "Cluster", "None", 3},
		{"overridepolicy.karmada.io", "/validate-overridepolicy", policy + "overridepolicies", both, "Namespaced", "None", 3},
		{"clusteroverridepolicy.karmada.io", "/validate-clusteroverridepolicy", policy + "clusteroverridepolicies", both, "Cluster", "None", 3},
		{"federatedresourcequota.karmada.io", "/validate-federatedresourcequota", policy + "federatedresourcequotas", both, "Namespaced", "None", 3},
		{"clustertaintpolicy.karmada.io", "/validate-clustertaintpolicy", policy + "clustertaintpolicies", both, "Cluster", "None", 3},
		{"resourcebinding.karmada.io", "/validate-resourcebinding", work + "resourcebindings", both, "Namespaced", "NoneOnDryRun", 3},
		{"clusterresourcebinding.karmada.io", "/validate-clusterresourcebinding", work + "clusterresourcebindings", both, "Cluster", "None", 3},
		{"config.karmada.io", "/validate-resourceinterpreterwebhookconfiguration", "config.karmada.io/resourceinterpreterwebhookconfigurations", both, "Cluster", "None", 3},
		{"resourceinterpretercustomization.karmada.io", "/validate-resourceinterpretercustomization", "config.karmada.io/resourceinterpretercustomizations", both, "Cluster", "None", 10},
		{"federatedhpa.karmada.io", "/validate-federatedhpa", "autoscaling.karmada.io/federatedhpas", both, "Namespaced", "None", 3},
		{"cronfederatedhpa.karmada.io", "/validate-cronfederatedhpa", "autoscaling.karmada.io/cronfederatedhpas", both, "Namespaced", "None", 3},
		{"multiclusteringress.karmada.io", "/validate-multiclusteringress", "networking.karmada.io/multiclusteringresses", both, "Namespaced", "None", 3},
		{"multiclusterservice.karmada.io", "/validate-multiclusterservice", "networking.karmada.io/multiclusterservices", both, "Namespaced", "None", 3},
		{"workloadrebalancer.karmada.io", "/validate-workloadrebalancer", "apps.karmada.io/workloadrebalancers", "CREATE", "Cluster", "None", 3},
		{"remedy.karmada.io", "/validate-remedy", "remedy.karmada.io/remedies", both, "Cluster", "None", 3},
		{"agentquota.karmada.io", "/validate-agentquota", "/events", both, "*", "None", 3},
		{"resourcedeletionprotection.karmada.io", "/validate-resourcedeletionprotection", "*/*", "DELETE", "*", "None", 3},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries differ (-want +got):\n%s", diff)
	}
	for _, w := range validating.Webhooks {
		warnsOnly := w.Name == "workloadrebalancer.karmada.io" || w.Name == "remedy.karmada.io"
		if ignored := *w.FailurePolicy == admissionregistrationv1.Ignore; ignored != warnsOnly {
			t.Errorf("%s: failure policy %s", w.Name, *w.FailurePolicy)
		}
	}
	for _, object := range []metav1.ObjectMeta{mutating.ObjectMeta, validating.ObjectMeta} {
		if object.Labels["app"] != "karmada-webhook" {
			t.Errorf("%s has labels %v", object.Name, object.Labels)
		}
	}
	selector := validating.Webhooks[len(validating.Webhooks)-1].ObjectSelector
	if selector == nil || selector.MatchExpressions[0].Key != "resourcetemplate.karmada.io/deletion-protected" {
		t.Errorf("the deletion webhook has no label selector: %v", selector)
	}
	for _, entry := range got {
		if recorder := post(t, entry.Path, "{}"); recorder.Code == http.StatusNotFound {
			t.Errorf("no handler for %s", entry.Path)
		}
	}
}
