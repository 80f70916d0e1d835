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

func TestOneAgentDoesNotFillTheStore(t *testing.T) {
	east := agent.User("east")
	tests := map[string]struct {
		user     string
		resource []schema.GroupResource
		creates  bool
		size     int
		minutes  int
		// want is how many of 3000 writes a minute are admitted.
		want int
	}{
		"Events at once":                       {east, []schema.GroupResource{coreEvents}, true, 1 << 10, 0, 500},
		"Events by both groups":                {east, []schema.GroupResource{coreEvents, newerEvents}, true, 1 << 10, 0, 500},
		"Events in an hour":                    {east, []schema.GroupResource{coreEvents}, true, 1 << 10, 60, 500 + 1800},
		"large Events at once":                 {east, []schema.GroupResource{coreEvents, newerEvents}, false, 16 << 10, 0, 512},
		"large Events that change for an hour": {east, []schema.GroupResource{coreEvents, newerEvents}, false, 16 << 10, 60, 512 + 60*64},
		"certificates at once":                 {east, []schema.GroupResource{requests}, true, 16 << 10, 0, 10},
		"certificates in a day":                {east, []schema.GroupResource{requests}, true, 16 << 10, 24 * 60, 10 + 288},
		"status of an honest agent":            {east, []schema.GroupResource{works}, false, 8 << 10, 60, 3000 * 61},
		"status of 1 MiB at once":              {east, []schema.GroupResource{works}, false, 1 << 20, 0, 128},
		"status of 1 MiB in 10 minutes":        {east, []schema.GroupResource{works}, false, 1 << 20, 10, 128 + 320},
		"all that is no Event together":        {east, []schema.GroupResource{works, {Resource: "secrets"}, {Group: "coordination.k8s.io", Resource: "leases"}}, false, 1 << 20, 0, 128},
		"the generator is held to one":         {agent.Generator, []schema.GroupResource{requests}, true, 1 << 10, 0, 10},
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
						break // and so are all others of this minute
					}
					admitted++
				}
			}
			if admitted != test.want {
				t.Errorf("%d were admitted, want %d", admitted, test.want)
			}
			if err := quotas.admit(agent.User("west"), test.resource[0], test.creates, test.size); err != nil {
				t.Errorf("another agent pays for it: %v", err)
			}
		})
	}
}

func TestAnAgentThatWroteTooMuchIsToldToWait(t *testing.T) {
	quotas := NewAgentQuotas(func() time.Time { return time.Unix(0, 0) })
	var err error
	for err == nil {
		err = quotas.admit(agent.User("east"), works, false, 1<<20)
	}
	if seconds, wait := apierrors.SuggestsClientDelay(err); !apierrors.IsTooManyRequests(err) || !wait || seconds < 1 || seconds > 60 {
		t.Errorf("after %d seconds: %v", seconds, err)
	}
}

// workWith has so many manifests and so much in its status and in its spec.
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

func TestAnAgentStoresNoLargeObjects(t *testing.T) {
	const large = 20 << 10
	event := func(host string) map[string]any { return map[string]any{"source": map[string]any{"host": host}} }
	request := map[string]any{"metadata": map[string]any{"ownerReferences": []any{map[string]any{"name": strings.Repeat("a", large)}}}}
	tests := map[string]struct {
		user        string
		resource    schema.GroupResource
		subresource string
		object, old map[string]any
		says        string
	}{
		"a small Event":                            {user: agent.User("east"), resource: coreEvents, object: event("h")},
		"a large Event":                            {user: agent.User("east"), resource: coreEvents, object: event(strings.Repeat("a", large)), says: "at most 16384"},
		"a large Event by the newer API":           {user: agent.User("east"), resource: newerEvents, object: event(strings.Repeat("a", large)), says: "at most 16384"},
		"an Event that grows":                      {user: agent.User("east"), resource: coreEvents, object: event(strings.Repeat("a", large)), old: event("h"), says: "at most 16384"},
		"a large Event of a component":             {user: "system:admin", resource: coreEvents, object: event(strings.Repeat("a", large))},
		"a large request":                          {user: agent.User("east"), resource: requests, object: request, says: "at most 16384"},
		"a large request of the generator":         {user: agent.Generator, resource: requests, object: request, says: "at most 16384"},
		"a large Secret":                           {user: agent.User("east"), resource: schema.GroupResource{Resource: "secrets"}, object: event(strings.Repeat("a", large))},
		"the status of 3 large objects":            {user: agent.User("east"), resource: works, subresource: "status", object: workWith(3, 3*17<<10, 0), old: workWith(3, 0, 0)},
		"a status beyond that":                     {user: agent.User("east"), resource: works, subresource: "status", object: workWith(1, 60<<10, 0), old: workWith(1, 0, 0), says: "for 1 manifests"},
		"a large spec counts not":                  {user: agent.User("east"), resource: works, subresource: "status", object: workWith(1, 10<<10, 1<<20), old: workWith(1, 0, 1<<20)},
		"a status from the time of more manifests": {user: agent.User("east"), resource: works, subresource: "status", object: workWith(1, 90<<10, 0), old: workWith(1, 90<<10, 0)},
		"finalizers without number, by the Work":   {user: agent.User("east"), resource: works, object: withFinalizers(3000), old: workWith(1, 0, 0), says: "for 1 manifests"},
		"what a component says of a Work":          {user: "system:admin", resource: works, subresource: "status", object: workWith(1, 60<<10, 0), old: workWith(1, 0, 0)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			operation := admission.Create
			var old runtime.Object
			if test.old != nil {
				operation, old = admission.Update, &unstructured.Unstructured{Object: test.old}
			}
			object := &unstructured.Unstructured{Object: test.object}
			by := &user.DefaultInfo{Name: test.user}
			a := admission.NewAttributesRecord(object, old, schema.GroupVersionKind{}, "ns", "n",
				test.resource.WithVersion("v1"), test.subresource, operation, nil, true, by)
			refuses(t, "the plugin", NewPlugin(reviewer()).reviewer.validateAgent(a), test.says)

			answer := askAs(t, Webhook(reviewer()), test.user, test.resource, test.object, test.old)
			var err error
			if !answer.Allowed {
				err = &apierrors.StatusError{ErrStatus: *answer.Result}
			}
			refuses(t, "the webhook", err, test.says)
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

func refuses(t *testing.T, who string, err error, says string) {
	t.Helper()
	switch {
	case says == "" && err != nil:
		t.Errorf("%s refuses: %v", who, err)
	case says != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), says)):
		t.Errorf("%s says %v, want %q", who, err, says)
	}
}

func askAs(t *testing.T, webhook http.Handler, user string, resource schema.GroupResource, object, old map[string]any) *admissionv1.AdmissionResponse {
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

// TestTheWebhookCountsNoAgents is about callers that are not the API server: they must not
// use up what an agent may write.
func TestTheWebhookCountsNoAgents(t *testing.T) {
	webhook := Webhook(Reviewer{Agents: NewAgentQuotas(time.Now)})
	for range 20 {
		if answer := askAs(t, webhook, agent.User("east"), requests, map[string]any{}, nil); !answer.Allowed {
			t.Fatalf("a request is refused: %v", answer.Result)
		}
	}
}

func TestThePluginCountsWhatAgentsWrite(t *testing.T) {
	plugin := NewPlugin(Reviewer{Agents: NewAgentQuotas(func() time.Time { return time.Unix(0, 0) })})
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
