package workload

import (
	"encoding/json"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/interpreters/hook"
	"karmada.io/karmada/internal/domain/admission"
	domain "karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/interpreter/webhook"
	"karmada.io/karmada/pkg/webhook/interpreter"
)

// readManifests returns the documents of a manifest of this example.
func readManifests(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "manifests", name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n---\n")
}

func readTemplate(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	text, err := yaml.YAMLToJSON([]byte(readManifests(t, "workload.yaml")[0]))
	if err != nil {
		t.Fatal(err)
	}
	if err := object.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	return object
}

// newRules returns the rules for Workloads as a control plane with the manifests of this example has
// them: it calls the handler over HTTPS.
func newRules(t *testing.T) domain.Rules {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	server.Config.Handler = interpreter.NewWebhook(NewHandler())
	server.StartTLS()
	t.Cleanup(server.Close)
	text := strings.Replace(readManifests(t, "configuration-url.yaml")[0], "CA_BUNDLE", `""`, 1)
	configuration := &configv1alpha1.ResourceInterpreterWebhookConfiguration{}
	if err := yaml.UnmarshalStrict([]byte(text), configuration); err != nil {
		t.Fatal(err)
	}
	client := &configuration.Webhooks[0].ClientConfig
	client.URL = new(server.URL + "/interpret")
	client.CABundle = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	caller := hook.New(hook.Options{})
	t.Cleanup(caller.CloseIdleConnections)
	hooks := webhook.Hooks([]*configv1alpha1.ResourceInterpreterWebhookConfiguration{configuration})
	kind := readTemplate(t).GroupVersionKind()
	return domain.New(webhook.NewSource(hooks, caller.Call, func() types.UID { return "1" })).Rules(kind)
}

func TestRepliesAboutTemplate(t *testing.T) {
	rules, template := newRules(t), readTemplate(t)
	requests := corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("64Mi")}
	replicas, requirements, err := rules.Replicas(t.Context(), template)
	if diff := cmp.Diff(&workv1alpha2.ReplicaRequirements{ResourceRequest: requests}, requirements); diff != "" || replicas != 4 || err != nil {
		t.Errorf("%d replicas, error %v, requirements (-want +got):\n%s", replicas, err, diff)
	}
	components, err := rules.Components(t.Context(), template)
	want := []workv1alpha2.Component{{Name: "workload", Replicas: 4, ReplicaRequirements: &workv1alpha2.ComponentReplicaRequirements{ResourceRequest: requests}}}
	if diff := cmp.Diff(want, components); diff != "" || err != nil {
		t.Errorf("error %v, components (-want +got):\n%s", err, diff)
	}
	dependencies, err := rules.Dependencies(t.Context(), template)
	if diff := cmp.Diff([]configv1alpha1.DependentObjectReference{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "web-pages"}}, dependencies); diff != "" || err != nil {
		t.Errorf("error %v, dependencies (-want +got):\n%s", err, diff)
	}
}

func TestRepliesAboutMemberObject(t *testing.T) {
	rules := newRules(t)
	tests := map[string]struct {
		ready   any
		status  string
		healthy bool
	}{
		"no status yet":  {status: `{"readyReplicas":0}`},
		"some are ready": {ready: int64(3), status: `{"readyReplicas":3}`},
		"all are ready":  {ready: int64(4), status: `{"readyReplicas":4}`, healthy: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			memberObject := readTemplate(t)
			if test.ready != nil {
				memberObject.Object["status"] = map[string]any{"readyReplicas": test.ready, "other": "x"}
			}
			status, err := rules.ReflectStatus(t.Context(), memberObject)
			if err != nil || string(status.Raw) != test.status {
				t.Errorf("status %+v, error %v", status, err)
			}
			if healthy, err := rules.IsHealthy(t.Context(), memberObject); healthy != test.healthy || err != nil {
				t.Errorf("healthy: %t, error %v", healthy, err)
			}
		})
	}
}

func TestRepliesThatChangeObjects(t *testing.T) {
	rules := newRules(t)
	items := []workv1alpha2.AggregatedStatusItem{
		{ClusterName: "member1", Status: &runtime.RawExtension{Raw: []byte(`{"readyReplicas":1}`)}},
		{ClusterName: "member2", Status: &runtime.RawExtension{Raw: []byte(`{"readyReplicas":2}`)}},
		{ClusterName: "member3"},
	}
	paused := readTemplate(t)
	paused.Object["spec"].(map[string]any)["paused"] = true
	tests := map[string]struct {
		change func(*unstructured.Unstructured) (*unstructured.Unstructured, error)
		path   []string
		want   any
	}{
		"the replicas are revised": {func(o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return rules.ReviseReplicas(t.Context(), o, 2)
		}, []string{"spec", "replicas"}, int64(2)},
		"paused is retained": {func(o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return rules.Retain(t.Context(), o, paused)
		}, []string{"spec", "paused"}, true},
		"ready replicas are summed": {func(o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return rules.AggregateStatus(t.Context(), o, items)
		}, []string{"status", "readyReplicas"}, int64(3)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object := readTemplate(t)
			object.Object["unknown"] = map[string]any{"id": int64(9007199254740993)}
			want := object.DeepCopy()
			if err := unstructured.SetNestedField(want.Object, test.want, test.path...); err != nil {
				t.Fatal(err)
			}
			changed, err := test.change(object)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, changed); diff != "" {
				t.Errorf("object (-want +got):\n%s", diff)
			}
			if again, err := test.change(changed); again != changed || err != nil {
				t.Errorf("a second call changes the object again, error %v", err)
			}
		})
	}
}

func TestErrorsReachTheUser(t *testing.T) {
	rules, object := newRules(t), readTemplate(t)
	object.Object["spec"] = "text"
	_, _, err := rules.Replicas(t.Context(), object)
	const want = "webhook example/workloads.example.com, InterpretReplica: webhook call failed, get status code: 400, msg: decoding request.object: json: cannot unmarshal string"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("err = %v", err)
	}
}

// TestConfigurationsAreValid checks that admission accepts both configurations.
func TestConfigurationsAreValid(t *testing.T) {
	for _, name := range []string{"configuration-url.yaml", "configuration-service.yaml"} {
		text := strings.Replace(readManifests(t, name)[0], "CA_BUNDLE", `""`, 1)
		configuration := &configv1alpha1.ResourceInterpreterWebhookConfiguration{}
		if err := yaml.UnmarshalStrict([]byte(text), configuration); err != nil {
			t.Fatal(err)
		}
		if failures, _ := (admission.Options{}).Validate(configuration, nil); len(failures) > 0 {
			t.Errorf("%s: %v", name, failures)
		}
	}
}

// FuzzHandler interprets arbitrary objects.
func FuzzHandler(f *testing.F) {
	f.Add(`{"apiVersion":"workload.example.io/v1alpha1","kind":"Workload","spec":{"replicas":1,"template":{"spec":{"containers":[{"resources":{"requests":{"cpu":"1"}}}]}}}}`)
	f.Add(`{"kind":"Workload","spec":[],"status":"x"}`)
	f.Fuzz(func(t *testing.T, object string) {
		for operation, handle := range NewHandler().(interpreter.Operations) {
			raw := runtime.RawExtension{Raw: []byte(object)}
			response := handle(t.Context(), interpreter.Request{ResourceInterpreterRequest: configv1alpha1.ResourceInterpreterRequest{
				Operation: operation, Object: raw, ObservedObject: &raw, DesiredReplicas: new(int32(1)),
				AggregatedStatus: []workv1alpha2.AggregatedStatusItem{{Status: &raw}},
			}})
			if _, err := json.Marshal(response); err != nil {
				t.Errorf("%s of %s: %v", operation, object, err)
			}
		}
	})
}
