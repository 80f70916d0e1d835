package interpreter

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
)

const (
	head        = `{"kind":"ResourceInterpreterContext","apiVersion":"config.karmada.io/v1alpha1",`
	requestBody = head + `"request":{"uid":"1","kind":{"group":"example.io","version":"v1","kind":"Workload"},"name":"web","operation":"InterpretReplica","object":{"spec":{"replicas":3}},"replicas":0}}`
)

// serve returns the HTTP status and the body of the response to a request.
func serve(handler Handler, contentType, body string) (int, string) {
	request := httptest.NewRequest(http.MethodPost, "/interpret", strings.NewReader(body))
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	recorder := httptest.NewRecorder()
	NewWebhook(handler).ServeHTTP(recorder, request)
	return recorder.Code, recorder.Body.String()
}

func TestResponseOnTheWire(t *testing.T) {
	succeeded := func(change func(*Response)) Response {
		response := Succeeded("")
		change(&response)
		return response
	}
	tests := map[string]struct {
		response Response
		want     string
	}{
		"replicas":                    {succeeded(func(r *Response) { r.Replicas = new(int32) }), `"uid":"1","successful":true,"status":{"code":200},"replicas":0}}`},
		"a message":                   {Succeeded("done"), `"uid":"1","successful":true,"status":{"message":"done","code":200}}}`},
		"a response without a status": {Response{configv1alpha1.ResourceInterpreterResponse{Successful: true, Healthy: new(false)}}, `"uid":"1","successful":true,"status":{"code":200},"healthy":false}}`},
		"the zero value":              {Response{}, `"uid":"1","successful":false,"status":{"code":403}}}`},
		"a status without a code":     {Response{configv1alpha1.ResourceInterpreterResponse{Status: &configv1alpha1.RequestStatus{Message: "no"}}}, `"uid":"1","successful":false,"status":{"message":"no","code":403}}}`},
		"a refusal":                   {ValidationResponse(false, "no"), `"uid":"1","successful":false,"status":{"message":"no","code":403}}}`},
		"an error":                    {Errored(http.StatusBadGateway, errors.New("no database")), `"uid":"1","successful":false,"status":{"message":"no database","code":502}}}`},
		"an error without a reason":   {Errored(http.StatusBadGateway, nil), `"uid":"1","successful":false,"status":{"message":"no reason is given","code":502}}}`},
		"a patch":                     {PatchResponseFromRaw([]byte(`{"a":1}`), []byte(`{"a":2}`)), `"uid":"1","successful":true,"status":{"code":200},"patch":"W3sib3AiOiJyZXBsYWNlIiwicGF0aCI6Ii9hIiwidmFsdWUiOjJ9XQ==","patchType":"JSONPatch"}}`},
		"no difference":               {PatchResponseFromRaw([]byte(`{"a":1}`), []byte(`{ "a": 1 }`)), `"uid":"1","successful":true,"status":{"code":200}}}`},
		"the uid of the handler":      {Response{configv1alpha1.ResourceInterpreterResponse{UID: "2", Successful: true}}, `"uid":"1","successful":true,"status":{"code":200}}}`},
		"a status that is no JSON":    {succeeded(func(r *Response) { r.RawStatus = &runtime.RawExtension{Raw: []byte("{")} }), `"uid":"1","successful":false,"status":{"message":"encoding the response: json: error calling MarshalJSON for type *runtime.RawExtension: unexpected end of JSON input","code":500}}}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			handler := HandlerFunc(func(context.Context, Request) Response { return test.response })
			code, body := serve(handler, "application/json", requestBody)
			if diff := cmp.Diff(head+`"response":{`+test.want, body); diff != "" || code != http.StatusOK {
				t.Errorf("HTTP status %d, body (-want +got):\n%s", code, diff)
			}
		})
	}
}

func TestUndecodableRequests(t *testing.T) {
	tests := map[string]struct {
		contentType, body string
		code              int
		want              string
	}{
		"no content type":           {body: requestBody, code: 400, want: `contentType="", expected application/json`},
		"another content type":      {contentType: "text/plain", body: requestBody, code: 400, want: `contentType="text/plain", expected application/json`},
		"an empty body":             {contentType: "application/json", code: 400, want: "decoding the request: unexpected end"},
		"no JSON":                   {contentType: "application/json", body: "hello", code: 400, want: "decoding the request: invalid character"},
		"a wrong type":              {contentType: "application/json", body: `{"request":{"name":1}}`, code: 400, want: "decoding the request: "},
		"no request":                {contentType: "application/json", body: head + `"response":{}}`, code: 400, want: "has no request"},
		"null":                      {contentType: "application/json", body: "null", code: 400, want: "has no request"},
		"another kind":              {contentType: "application/json", body: `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"1"}}`, code: 400, want: "the request is a admission.k8s.io/v1, Kind=AdmissionReview"},
		"a body of more than 1 MiB": {contentType: "application/json", body: strings.Repeat(" ", 1<<20) + requestBody, code: 413, want: "more than 1048576 bytes"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			handler := HandlerFunc(func(context.Context, Request) Response {
				t.Error("the handler is called")
				return Response{}
			})
			code, body := serve(handler, test.contentType, test.body)
			var received configv1alpha1.ResourceInterpreterContext
			if err := json.Unmarshal([]byte(body), &received); err != nil {
				t.Fatal(err)
			}
			response := received.Response
			if code != test.code || response.Successful || response.Status.Code != int32(test.code) || !strings.Contains(response.Status.Message, test.want) {
				t.Errorf("HTTP status %d, body %s", code, body)
			}
		})
	}
}

func TestRequestsThatAreAccepted(t *testing.T) {
	tests := map[string]struct{ contentType, body string }{
		"a content type with a charset": {"application/json; charset=utf-8", requestBody},
		"no kind and apiVersion":        {"application/json", "{" + strings.TrimPrefix(requestBody, head)},
		"a body of 1 MiB":               {"application/json", requestBody + strings.Repeat(" ", 1<<20-len(requestBody))},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			handler := HandlerFunc(func(_ context.Context, request Request) Response {
				object := &struct{ Spec struct{ Replicas int32 } }{}
				if err := request.Decode(object); err != nil {
					return Errored(http.StatusBadRequest, err)
				}
				response := Succeeded("")
				response.Replicas = &object.Spec.Replicas
				return response
			})
			code, body := serve(handler, test.contentType, test.body)
			if code != http.StatusOK || !strings.Contains(body, `"replicas":3`) {
				t.Errorf("HTTP status %d, body %s", code, body)
			}
		})
	}
}

func TestDecode(t *testing.T) {
	request := Request{configv1alpha1.ResourceInterpreterRequest{
		Object:         runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"Pod","spec":{"id":9007199254740993}}`)},
		ObservedObject: &runtime.RawExtension{Raw: []byte(`[]`)},
	}}
	object := &unstructured.Unstructured{}
	if err := request.Decode(object); err != nil {
		t.Fatal(err)
	}
	if id, _, err := unstructured.NestedInt64(object.Object, "spec", "id"); id != 9007199254740993 || err != nil {
		t.Errorf("id %d, error %v", id, err)
	}
	if err := request.DecodeObserved(object); err == nil || !strings.HasPrefix(err.Error(), "decoding request.observedObject: ") {
		t.Errorf("err = %v", err)
	}
	request.ObservedObject, request.Object.Raw = nil, nil
	if err := request.DecodeObserved(object); err == nil || err.Error() != "request.observedObject is missing" {
		t.Errorf("err = %v", err)
	}
	if err := request.Decode(object); err == nil || err.Error() != "request.object is missing" {
		t.Errorf("err = %v", err)
	}
}

func TestOperations(t *testing.T) {
	handler := Operations{"Retain": func(context.Context, Request) Response { return Succeeded("retained") }}
	if got := handler.Handle(t.Context(), Request{configv1alpha1.ResourceInterpreterRequest{Operation: "Retain"}}); got.Status.Message != "retained" {
		t.Errorf("got %+v", got)
	}
	got := handler.Handle(t.Context(), Request{configv1alpha1.ResourceInterpreterRequest{Operation: "Prune"}})
	if got.Successful || got.Status.Code != 400 || !strings.Contains(got.Status.Message, `operation "Prune" is not supported`) {
		t.Errorf("got %+v", got)
	}
}

func TestContextHasTheTimeoutOfTheRequest(t *testing.T) {
	tests := map[string]struct {
		query string
		want  time.Duration
	}{
		"a timeout":              {"?timeout=10s", 10 * time.Second},
		"no timeout":             {"", math.MaxInt64},
		"a timeout that is none": {"?timeout=soon", math.MaxInt64},
		"a negative timeout":     {"?timeout=-1s", math.MaxInt64},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				left := time.Duration(math.MaxInt64)
				handler := HandlerFunc(func(ctx context.Context, _ Request) Response {
					if deadline, ok := ctx.Deadline(); ok {
						left = time.Until(deadline)
					}
					return Succeeded("")
				})
				request := httptest.NewRequest(http.MethodPost, "/interpret"+test.query, strings.NewReader(requestBody))
				request.Header.Set("Content-Type", "application/json")
				NewWebhook(handler).ServeHTTP(httptest.NewRecorder(), request)
				if left != test.want {
					t.Errorf("the deadline is in %s, want %s", left, test.want)
				}
			})
		})
	}
}

// FuzzWebhook sends arbitrary bodies.
func FuzzWebhook(f *testing.F) {
	f.Add(requestBody)
	f.Add(`{"request":{"object":null,"observedObject":[]}}`)
	f.Fuzz(func(t *testing.T, body string) {
		handler := HandlerFunc(func(_ context.Context, request Request) Response {
			var object, observed any
			if err := errors.Join(request.Decode(&object), request.DecodeObserved(&observed)); err != nil {
				return Errored(http.StatusBadRequest, err)
			}
			return PatchResponseFromRaw(request.Object.Raw, request.ObservedObject.Raw)
		})
		code, answer := serve(handler, "application/json", body)
		var received configv1alpha1.ResourceInterpreterContext
		if err := json.NewDecoder(strings.NewReader(answer)).Decode(&received); err != nil && !errors.Is(err, io.EOF) {
			t.Errorf("HTTP status %d, body %s: %v", code, answer, err)
		}
		if received.Response == nil || received.Response.Status == nil {
			t.Errorf("the response to %s has no status: %s", body, answer)
		}
	})
}
