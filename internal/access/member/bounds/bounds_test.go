package bounds

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// newWatchBody returns the body of a watch in which each event may have at most 20 bytes.
func newWatchBody(body io.Reader) (io.Reader, *HitTracker) {
	tracker := NewHitTracker("m1", time.Now)
	limits := DefaultLimits()
	limits.EventBytes = 20
	t := &transport{limits: limits, hits: tracker}
	request := httptest.NewRequest(http.MethodGet, "/api/v1/pods?watch=true", http.NoBody)
	ctx := request.Context()
	return t.limitWatchBody(request, &http.Response{Body: io.NopCloser(body), Header: http.Header{}}, ctx, func() {}), tracker
}

func TestWatchEventSizeBound(t *testing.T) {
	small := `{"type":"ADDED"}`
	for name, tc := range map[string]struct {
		body string
		want bool
	}{
		"many small events":                                   {strings.Repeat(small+"\n", 100), true},
		"one large event":                                     {`{"type":"` + strings.Repeat("x", 20) + `"}`, false},
		"a large event after small ones":                      {small + "\n" + small + "\n" + `{"a":"` + strings.Repeat("x", 20) + `"}`, false},
		"newlines between fields do not end an event":         {`{"a":{}` + strings.Repeat(",\n\"b\":{}\n", 5) + "}", false},
		"braces and newlines in a string do not end an event": {`{"a":"` + strings.Repeat("}\n{", 10) + `"}`, false},
		"a newline in a string does not end an event":         {`{"a":"` + strings.Repeat("x\n", 15) + `"}`, false},
	} {
		for reader, of := range map[string]func(io.Reader) io.Reader{"at once": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader} {
			t.Run(name+" "+reader, func(t *testing.T) {
				body, tracker := newWatchBody(of(strings.NewReader(tc.body)))
				read, err := io.ReadAll(body)
				var exceeded *ExceededError
				if tc.want && (err != nil || string(read) != tc.body) {
					t.Errorf("read %q, error %v", read, err)
				}
				if !tc.want && (!errors.As(err, &exceeded) || exceeded.Bound != EventBytes || len(tracker.Recent()) != 1) {
					t.Errorf("error = %v, want the bound %s", err, EventBytes)
				}
			})
		}
	}
}

// endlessBody is the body of a watch that the member never ends. A read returns when the request is
// canceled.
type endlessBody struct{ ctx context.Context }

func (e endlessBody) Read([]byte) (int, error) {
	<-e.ctx.Done()
	return 0, e.ctx.Err()
}

func (endlessBody) Close() error { return nil }

type roundTripperFunc func(*http.Request) (*http.Response, error)

func (f roundTripperFunc) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func TestWatchTimeBound(t *testing.T) {
	for name, tc := range map[string]struct {
		query string
		want  time.Duration
	}{
		"a watch without a timeout":              {"", time.Hour},
		"a watch with a timeout":                 {"&timeoutSeconds=60", time.Minute + 30*time.Second},
		"a watch with a timeout above the limit": {"&timeoutSeconds=7200", time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tracker, started := NewHitTracker("m1", time.Now), time.Now()
				limited := &transport{limits: DefaultLimits(), hits: tracker, next: roundTripperFunc(func(r *http.Request) (*http.Response, error) {
					return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: endlessBody{r.Context()}}, nil
				})}
				request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/pods?watch=true"+tc.query, http.NoBody)
				response, err := limited.RoundTrip(request)
				if err != nil {
					t.Fatal(err)
				}
				defer response.Body.Close()
				if _, err := io.ReadAll(response.Body); err != nil {
					t.Errorf("the watch ends with %v, want no error", err)
				}
				if recent := tracker.Recent(); len(recent) != 1 || recent[0].Bound != WatchTime {
					t.Errorf("recorded %v", recent)
				}
				if took := time.Since(started); took != tc.want {
					t.Errorf("the watch took %s, want %s", took, tc.want)
				}
			})
		})
	}
}

func TestIsProtobufMediaType(t *testing.T) {
	for media, want := range map[string]bool{
		"application/vnd.kubernetes.protobuf":              true,
		"Application/vnd.kubernetes.Protobuf":              true,
		"application/vnd.kubernetes.protobuf;stream=watch": true,
		"application/vnd.kubernetes.protobufx":             false,
		"application/json":                                 false,
		"":                                                 false,
	} {
		if got := isProtobuf(&http.Response{Header: http.Header{"Content-Type": {media}}}); got != want {
			t.Errorf("%q is protobuf: %t, want %t", media, got, want)
		}
	}
}

func TestAPIAnswerMustBeObject(t *testing.T) {
	for name, tc := range map[string]struct {
		path, accept, body string
		want               bool
	}{
		"an object":                          {"/apis", "application/json", " {}", true},
		"YAML with the media type of JSON":   {"/apis", "application/json", "- - - a", false},
		"protobuf that was not requested":    {"/apis", "application/json", "k8s\x00", false},
		"protobuf that was requested":        {"/api/v1/pods", "application/vnd.kubernetes.protobuf,application/json", "k8s\x00", true},
		"text at a path outside of the APIs": {"/readyz", "", "ok", true},
		"no content":                         {"/apis", "application/json", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			tracker := NewHitTracker("m1", time.Now)
			limited := &transport{limits: DefaultLimits(), hits: tracker}
			request := httptest.NewRequest(http.MethodGet, tc.path, http.NoBody)
			request.Header.Set("Accept", tc.accept)
			_, err := io.ReadAll(limited.limitBody(request, &http.Response{Body: io.NopCloser(strings.NewReader(tc.body)), Header: http.Header{}}))
			var exceeded *ExceededError
			if tc.want != (err == nil) || err != nil && (!errors.As(err, &exceeded) || exceeded.Bound != ObjectIdentity) {
				t.Errorf("err = %v", err)
			}
		})
	}
}

func TestSubjectOfURL(t *testing.T) {
	for path, want := range map[string]string{
		"/api/v1/pods":                                     "pods.v1",
		"/api/v1/namespaces/shop/pods/web":                 "pods.v1",
		"/api/v1/namespaces/shop":                          "namespaces.v1",
		"/apis/apps/v1/namespaces/shop/deployments/web":    "deployments.v1.apps",
		"/prefix/apis/apps/v1/deployments":                 "deployments.v1.apps",
		"/readyz":                                          "/readyz",
		"/apis/apps/v1":                                    "/apis/apps/v1",
		"/apis/a/v1/" + strings.Repeat("x", 200) + "/name": strings.Repeat("x", 125) + "...",
	} {
		if diff := cmp.Diff(want, subjectOf(&url.URL{Path: path})); diff != "" {
			t.Errorf("subjectOf(%q) (-want +got):\n%s", path, diff)
		}
	}
}

func TestHitTrackerRetention(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	tracker, counted := NewHitTracker("m1", func() time.Time { return now }), 0
	tracker.SetCounter(func(string, Bound) { counted++ })
	for i := range 2 * maxHits {
		if err := tracker.Record(ExceededError{Bound: Objects, Subject: strings.Repeat("x", i), Limit: 1, Measured: 2, Unit: "objects"}); !strings.Contains(err.Error(), `cluster "m1"`) {
			t.Errorf("err = %v", err)
		}
	}
	if recent := tracker.Recent(); len(recent) != maxHits || counted != 2*maxHits {
		t.Errorf("%d hits are tracked, %d counted", len(recent), counted)
	}
	now = now.Add(HitRetention)
	if recent := tracker.Recent(); len(recent) != 0 {
		t.Errorf("after the retention %d hits are tracked", len(recent))
	}
}

func BenchmarkEstimateMemory(b *testing.B) {
	object := map[string]any{"spec": map[string]any{"containers": []any{}}}
	for range 50 {
		object["spec"].(map[string]any)["containers"] = append(object["spec"].(map[string]any)["containers"].([]any), // made above
			map[string]any{"name": "web", "image": "nginx", "env": []any{map[string]any{"name": "A", "value": "B"}}})
	}
	for b.Loop() {
		EstimateMemory(object)
	}
}
