package admission

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
)

var (
	coreEvents, newerEvents = schema.GroupResource{Resource: "events"}, schema.GroupResource{Group: "events.k8s.io", Resource: "events"}
	requests                = schema.GroupResource{Group: "certificates.k8s.io", Resource: "certificatesigningrequests"}
	works                   = schema.GroupResource{Group: "work.karmada.io", Resource: "works"}
)

func TestAgentQuotas(t *testing.T) {
	east := agent.User("east")
	tests := map[string]struct {
		user     string
		resource []schema.GroupResource
		creates  bool
		size     int
		minutes  int
		// want is the number of writes that are admitted in each minute, out of 3000.
		want int
	}{
		"Events at once":                                 {east, []schema.GroupResource{coreEvents}, true, 1 << 10, 0, 500},
		"Events of both API groups":                      {east, []schema.GroupResource{coreEvents, newerEvents}, true, 1 << 10, 0, 500},
		"Events in an hour":                              {east, []schema.GroupResource{coreEvents}, true, 1 << 10, 60, 500 + 1800},
		"large Events at once":                           {east, []schema.GroupResource{coreEvents, newerEvents}, false, 16 << 10, 0, 512},
		"large Events updated for an hour":               {east, []schema.GroupResource{coreEvents, newerEvents}, false, 16 << 10, 60, 512 + 60*64},
		"certificates at once":                           {east, []schema.GroupResource{requests}, true, 16 << 10, 0, 10},
		"certificates in a day":                          {east, []schema.GroupResource{requests}, true, 16 << 10, 24 * 60, 10 + 288},
		"status of a regular agent":                      {east, []schema.GroupResource{works}, false, 8 << 10, 60, 3000 * 61},
		"status of 1 MiB at once":                        {east, []schema.GroupResource{works}, false, 1 << 20, 0, 128},
		"status of 1 MiB in 10 minutes":                  {east, []schema.GroupResource{works}, false, 1 << 20, 10, 128 + 320},
		"all resources without their own quota together": {east, []schema.GroupResource{works, {Resource: "secrets"}, {Group: "coordination.k8s.io", Resource: "leases"}}, false, 1 << 20, 0, 128},
		"the certificate generator has the same quota":   {agent.GeneratorUser, []schema.GroupResource{requests}, true, 1 << 10, 0, 10},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(0, 0)
			quotas := NewAgentQuotas(func() time.Time { return now })
			admitted := 0
			for minute := range test.minutes + 1 {
				now = time.Unix(int64(60*minute), 0)
				for i := range 3000 {
					if quotas.admit(test.user, test.resource[i%len(test.resource)], test.creates, test.size) != nil {
						break // all later writes of this minute are denied, too
					}
					admitted++
				}
			}
			if admitted != test.want {
				t.Errorf("%d were admitted, want %d", admitted, test.want)
			}
			if err := quotas.admit(agent.User("west"), test.resource[0], test.creates, test.size); err != nil {
				t.Errorf("the quota of another agent is used: %v", err)
			}
		})
	}
}

func TestAgentQuotaErrorSuggestsDelay(t *testing.T) {
	quotas := NewAgentQuotas(func() time.Time { return time.Unix(0, 0) })
	var err error
	for err == nil {
		err = quotas.admit(agent.User("east"), works, false, 1<<20)
	}
	if seconds, wait := apierrors.SuggestsClientDelay(err); !apierrors.IsTooManyRequests(err) || !wait || seconds < 1 || seconds > 60 {
		t.Errorf("delay %d s: %v", seconds, err)
	}
}

// workWith returns a Work with a number of manifests, and with texts of the given lengths in its
// status and spec.
func workWith(manifests, status, spec int) map[string]any {
	list := make([]any, manifests)
	for i := range list {
		list[i] = map[string]any{"kind": "ConfigMap"}
	}
	return map[string]any{
		"metadata": map[string]any{"name": "w"},
		"spec":     map[string]any{"note": strings.Repeat("s", spec), "workload": map[string]any{"manifests": list}},
		"status":   map[string]any{"text": strings.Repeat("a", status)},
	}
}

func TestAgentObjectSize(t *testing.T) {
	const large = 20 << 10
	event := func(host string) map[string]any { return map[string]any{"source": map[string]any{"host": host}} }
	request := map[string]any{"metadata": map[string]any{"ownerReferences": []any{map[string]any{"name": strings.Repeat("a", large)}}}}
	tests := map[string]struct {
		user        string
		resource    schema.GroupResource
		subresource string
		object, old map[string]any
		want        string
	}{
		"a small Event":                                      {user: agent.User("east"), resource: coreEvents, object: event("h")},
		"a large Event":                                      {user: agent.User("east"), resource: coreEvents, object: event(strings.Repeat("a", large)), want: "at most 16384"},
		"a large Event of the newer API group":               {user: agent.User("east"), resource: newerEvents, object: event(strings.Repeat("a", large)), want: "at most 16384"},
		"an updated Event that grows":                        {user: agent.User("east"), resource: coreEvents, object: event(strings.Repeat("a", large)), old: event("h"), want: "at most 16384"},
		"a large Event of a component":                       {user: "system:admin", resource: coreEvents, object: event(strings.Repeat("a", large))},
		"a large CertificateSigningRequest":                  {user: agent.User("east"), resource: requests, object: request, want: "at most 16384"},
		"a large CertificateSigningRequest of the generator": {user: agent.GeneratorUser, resource: requests, object: request, want: "at most 16384"},
		"a large Secret":                                     {user: agent.User("east"), resource: schema.GroupResource{Resource: "secrets"}, object: event(strings.Repeat("a", large))},
		"the status of 3 large objects":                      {user: agent.User("east"), resource: works, subresource: "status", object: workWith(3, 3*17<<10, 0), old: workWith(3, 0, 0)},
		"a status above the limit":                           {user: agent.User("east"), resource: works, subresource: "status", object: workWith(1, 60<<10, 0), old: workWith(1, 0, 0), want: "for 1 manifests"},
		"the spec is not counted":                            {user: agent.User("east"), resource: works, subresource: "status", object: workWith(1, 10<<10, 1<<20), old: workWith(1, 0, 1<<20)},
		"a large status from earlier manifests":              {user: agent.User("east"), resource: works, subresource: "status", object: workWith(1, 90<<10, 0), old: workWith(1, 90<<10, 0)},
		"too many finalizers on the Work":                    {user: agent.User("east"), resource: works, object: withFinalizers(3000), old: workWith(1, 0, 0), want: "for 1 manifests"},
		"the status of a Work by a component":                {user: "system:admin", resource: works, subresource: "status", object: workWith(1, 60<<10, 0), old: workWith(1, 0, 0)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			operation := admission.Create
			var old runtime.Object
			if test.old != nil {
				operation, old = admission.Update, &unstructured.Unstructured{Object: test.old}
			}
			object := &unstructured.Unstructured{Object: test.object}
			agentUser := &user.DefaultInfo{Name: test.user}
			a := admission.NewAttributesRecord(object, old, schema.GroupVersionKind{}, "ns", "n",
				test.resource.WithVersion("v1"), test.subresource, operation, nil, true, agentUser)
			checkDenied(t, "the plugin", NewPlugin(reviewer()).reviewer.validateAgent(t.Context(), a), test.want)

			response := reviewAs(t, NewWebhookHandler(reviewer()), test.user, test.resource, test.object, test.old)
			var err error
			if !response.Allowed {
				err = &apierrors.StatusError{ErrStatus: *response.Result}
			}
			checkDenied(t, "the webhook", err, test.want)
		})
	}
}

func withFinalizers(n int) map[string]any {
	work := workWith(1, 0, 0)
	finalizers := make([]any, n)
	for i := range finalizers {
		finalizers[i] = workv1alpha1.ExecutionFinalizer
	}
	work["metadata"].(map[string]any)["finalizers"] = finalizers
	return work
}

func checkDenied(t *testing.T, source string, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("%s denies: %v", source, err)
	case want != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want)):
		t.Errorf("%s returns %v, want %q", source, err, want)
	}
}

func reviewAs(t *testing.T, webhook http.Handler, user string, resource schema.GroupResource, object, old map[string]any) *admissionv1.AdmissionResponse {
	t.Helper()
	encode := func(content map[string]any) runtime.RawExtension {
		if content == nil {
			return runtime.RawExtension{}
		}
		data, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		return runtime.RawExtension{Raw: data}
	}
	request := &admissionv1.AdmissionRequest{
		Object: encode(object), OldObject: encode(old), UserInfo: authenticationv1.UserInfo{Username: user},
		Resource: metav1.GroupVersionResource{Group: resource.Group, Version: "v1", Resource: resource.Resource},
	}
	recorder := postTo(t, webhook, "/validate-agentquota", admissionv1.AdmissionReview{Request: request})
	review := admissionv1.AdmissionReview{}
	if err := json.Unmarshal(recorder.Body.Bytes(), &review); err != nil || recorder.Code != http.StatusOK {
		t.Fatalf("status %d, %v: %s", recorder.Code, err, recorder.Body)
	}
	return review.Response
}

// TestWebhookHasNoAgentQuotas requires that callers other than the API server cannot use the quota
// of an agent.
func TestWebhookHasNoAgentQuotas(t *testing.T) {
	webhook := NewWebhookHandler(Reviewer{AgentQuotas: NewAgentQuotas(time.Now)})
	for range 20 {
		if response := reviewAs(t, webhook, agent.User("east"), requests, map[string]any{}, nil); !response.Allowed {
			t.Fatalf("a request is denied: %v", response.Result)
		}
	}
}

func TestPluginEnforcesAgentQuotas(t *testing.T) {
	plugin := NewPlugin(Reviewer{AgentQuotas: NewAgentQuotas(func() time.Time { return time.Unix(0, 0) })})
	create := func(name string, dryRun bool) error {
		a := admission.NewAttributesRecord(&corev1.Event{}, nil, schema.GroupVersionKind{}, "ns", "n",
			coreEvents.WithVersion("v1"), "", admission.Create, nil, dryRun, &user.DefaultInfo{Name: name})
		return plugin.Validate(t.Context(), a, nil)
	}
	for i := range 600 {
		for name, dryRun := range map[string]bool{agent.User("west"): true, "system:admin": false} {
			if err := create(name, dryRun); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if err := create(agent.User("east"), false); apierrors.IsForbidden(err) != (i >= 500) {
			t.Fatalf("Event %d: %v", i, err)
		}
	}
}
