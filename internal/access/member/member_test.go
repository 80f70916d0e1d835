package member

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// apiServer is a server that accepts one token and counts the requests with any other token.
type apiServer struct {
	*httptest.Server
	acceptedToken    atomic.Pointer[string]
	rejectedRequests atomic.Int32
	requests         atomic.Int32
}

func newAPIServer(t *testing.T, token string) *apiServer {
	t.Helper()
	s := &apiServer{}
	s.acceptedToken.Store(&token)
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		if r.Header.Get("Authorization") != "Bearer "+*s.acceptedToken.Load() {
			s.rejectedRequests.Add(1)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, "ok")
	}))
	t.Cleanup(s.Close)
	return s
}

type memberFixture struct {
	karmada client.Client
	members *Clusters
	cluster *clusterv1alpha1.Cluster
	now     time.Time
}

func newMemberFixture(t *testing.T, server *apiServer, token string) *memberFixture {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), clusterv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	w := &memberFixture{now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	w.cluster = &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "m1", UID: "1"},
		Spec: clusterv1alpha1.ClusterSpec{
			SyncMode: clusterv1alpha1.Push, APIEndpoint: server.URL, InsecureSkipTLSVerification: true,
			SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: "m1"},
		},
	}
	w.karmada = fake.NewClientBuilder().WithScheme(scheme).WithObjects(w.cluster, secretWithToken(token)).Build()
	ctx, cancel := context.WithCancel(t.Context())
	w.members = NewClusters(ctx, Options{Karmada: w.karmada, Secrets: w.karmada, Now: func() time.Time { return w.now }})
	t.Cleanup(func() { w.members.CloseMember("m1"); cancel() })
	return w
}

func secretWithToken(token string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-cluster", Name: "m1"},
		Data:       map[string][]byte{clusterv1alpha1.SecretTokenKey: []byte(token)},
	}
}

func (m *memberFixture) mustGet(t *testing.T) *Member {
	t.Helper()
	target, err := m.members.Get(t.Context(), "m1")
	if err != nil {
		t.Fatal(err)
	}
	return target
}

func TestRejectedTokenIsReadAgainAtOnce(t *testing.T) {
	server := newAPIServer(t, "old")
	w := newMemberFixture(t, server, "old")
	before := w.mustGet(t)
	if health := before.Probe(t.Context()); !health.Healthy {
		t.Fatalf("with the accepted token: %+v", health)
	}
	rotated := "new"
	server.acceptedToken.Store(&rotated)
	if err := w.karmada.Update(t.Context(), secretWithToken(rotated)); err != nil {
		t.Fatal(err)
	}
	if health := before.Probe(t.Context()); !health.Healthy || server.rejectedRequests.Load() != 1 {
		t.Fatalf("the token was not read again: %+v, %d rejected requests", health, server.rejectedRequests.Load())
	}
	if after := w.mustGet(t); before != after {
		t.Error("a new token closed the connections")
	}
}

func TestTokenIsReadAgainAfterMaxAge(t *testing.T) {
	server := newAPIServer(t, "old")
	w := newMemberFixture(t, server, "old")
	w.mustGet(t)
	rotated := "new"
	server.acceptedToken.Store(&rotated)
	if err := w.karmada.Update(t.Context(), secretWithToken(rotated)); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(secretMaxAge)
	if health := w.mustGet(t).Probe(t.Context()); !health.Healthy || server.rejectedRequests.Load() != 0 {
		t.Errorf("the token was not read again in time: %+v, %d rejected requests", health, server.rejectedRequests.Load())
	}
}

func TestRemovedEntryDoesNotOpenMember(t *testing.T) {
	w := newMemberFixture(t, newAPIServer(t, "token"), "token")
	overtaken := w.members.entry("m1")
	w.members.CloseMember("m1")
	if opened, err := w.members.getFromEntry(t.Context(), overtaken, w.cluster); !errors.Is(err, errEntryClosed) || opened != nil || overtaken.member != nil {
		t.Errorf("opened %v, error %v, want errEntryClosed", opened, err)
	}
	opened := w.mustGet(t)
	w.members.CloseMember("m1")
	if opened.ctx.Err() == nil {
		t.Error("the member that was opened afterwards is not closed")
	}
}

func TestChangedEndpointReopensMember(t *testing.T) {
	first, second := newAPIServer(t, "token"), newAPIServer(t, "token")
	w := newMemberFixture(t, first, "token")
	pods := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	before := w.mustGet(t)
	if err := before.managed.subscribe(pods); err != nil {
		t.Fatal(err)
	}
	w.cluster.Spec.APIEndpoint = second.URL
	if err := w.karmada.Update(t.Context(), w.cluster); err != nil {
		t.Fatal(err)
	}
	if after := w.mustGet(t); after == before || after.Config().Host != second.URL {
		t.Errorf("the member is still reached at %s", after.Config().Host)
	}
	waitFor(t, "the Pods are watched over the new connection", func() bool { return second.requests.Load() > 0 })
}

func TestMissingSecretKeepsOpenMember(t *testing.T) {
	server := newAPIServer(t, "token")
	w := newMemberFixture(t, server, "token")
	before := w.mustGet(t)
	if err := w.karmada.Delete(t.Context(), secretWithToken("")); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(secretMaxAge)
	if after := w.mustGet(t); after != before {
		t.Error("the member was closed")
	}
}

func TestChangedEndpointWithoutSecretIsError(t *testing.T) {
	w := newMemberFixture(t, newAPIServer(t, "token"), "token")
	w.mustGet(t)
	w.cluster.Spec.APIEndpoint = "https://elsewhere"
	if err := errors.Join(w.karmada.Update(t.Context(), w.cluster), w.karmada.Delete(t.Context(), secretWithToken(""))); err != nil {
		t.Fatal(err)
	}
	if target, err := w.members.Get(t.Context(), "m1"); err == nil {
		t.Errorf("without its Secret the member is still reached at %s", target.Config().Host)
	}
}

func TestIncompleteClusterIsError(t *testing.T) {
	cases := map[string]func(*clusterv1alpha1.Cluster, *corev1.Secret){
		"no endpoint":  func(c *clusterv1alpha1.Cluster, _ *corev1.Secret) { c.Spec.APIEndpoint = "" },
		"no secretRef": func(c *clusterv1alpha1.Cluster, _ *corev1.Secret) { c.Spec.SecretRef = nil },
		"no token":     func(_ *clusterv1alpha1.Cluster, s *corev1.Secret) { delete(s.Data, clusterv1alpha1.SecretTokenKey) },
	}
	for name, spoil := range cases {
		t.Run(name, func(t *testing.T) {
			w := newMemberFixture(t, newAPIServer(t, "token"), "token")
			secret := secretWithToken("token")
			spoil(w.cluster, secret)
			if err := errors.Join(w.karmada.Update(t.Context(), w.cluster), w.karmada.Update(t.Context(), secret)); err != nil {
				t.Fatal(err)
			}
			if _, err := w.members.Get(t.Context(), "m1"); !errors.Is(err, errNoConnectionData) {
				t.Errorf("err = %v", err)
			}
		})
	}
}

func TestRequestTimeoutDoesNotApplyToWatches(t *testing.T) {
	block := func(request *http.Request) (*http.Response, error) {
		var answer <-chan time.Time
		if request.URL.Query().Has("watch") {
			answer = time.After(50 * time.Millisecond)
		}
		select {
		case <-request.Context().Done():
			return nil, request.Context().Err()
		case <-answer:
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
		}
	}
	limited := withTimeout(time.Millisecond, roundTripper{roundTrip: block})
	for path, wantErr := range map[string]bool{"/api/v1/pods": true, "/api/v1/pods?watch=true": false} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://member"+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := limited.RoundTrip(request)
		if response != nil {
			_ = response.Body.Close()
		}
		if gotErr := err != nil; gotErr != wantErr {
			t.Errorf("%s: err = %v", path, err)
		}
	}
}

// A handler in a member can return when its connection ends, as if the response were complete.
func TestAnswerAfterTimeoutIsError(t *testing.T) {
	late := func(request *http.Request) (*http.Response, error) {
		<-request.Context().Done()
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	}
	half := func(request *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: unfinishedBody{request.Context()}}, nil
	}
	for name, said := range map[string]func(*http.Request) (*http.Response, error){"an empty success": late, "the end of an incomplete list": half} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://member/readyz", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := withTimeout(time.Millisecond, roundTripper{roundTrip: said}).RoundTrip(request)
		if err == nil {
			_, err = io.ReadAll(response.Body)
			_ = response.Body.Close()
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: err = %v, want DeadlineExceeded", name, err)
		}
	}
}

// unfinishedBody is a body that ends when the context of its request ends, as if the body were
// complete.
type unfinishedBody struct{ ctx context.Context }

func (u unfinishedBody) Read([]byte) (int, error) {
	<-u.ctx.Done()
	return 0, io.EOF
}

func (unfinishedBody) Close() error { return nil }

func TestPoolMetrics(t *testing.T) {
	first, second := newAPIServer(t, "token"), newAPIServer(t, "token")
	w := newMemberFixture(t, first, "token")
	registry := prometheus.NewRegistry()
	var err error
	if w.members.options.Metrics, err = NewMetrics(registry); err != nil {
		t.Fatal(err)
	}
	if _, err := NewMetrics(registry); err != nil {
		t.Errorf("a second control plane in the process: %v", err)
	}
	w.mustGet(t)
	w.mustGet(t)
	w.cluster.Spec.APIEndpoint = second.URL
	if err := w.karmada.Update(t.Context(), w.cluster); err != nil {
		t.Fatal(err)
	}
	w.mustGet(t)
	w.members.CloseMember("m1")
	const want = `
# HELP pool_get_operation_total Number of objects taken from a pool.
# TYPE pool_get_operation_total counter
pool_get_operation_total{from="new",name="member-clients"} 2
pool_get_operation_total{from="pool",name="member-clients"} 1
# HELP pool_put_operation_total Number of objects given back to a pool.
# TYPE pool_put_operation_total counter
pool_put_operation_total{name="member-clients",to="destroyed"} 2
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestClosedMemberLeaksNoGoroutines(t *testing.T) {
	server := newAPIServer(t, "token")
	w := newMemberFixture(t, server, "token")
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	if health := w.mustGet(t).Probe(t.Context()); !health.Healthy {
		t.Fatalf("%+v", health)
	}
	// The server has no APIs, so the watch cannot start.
	if err := w.mustGet(t).Watch(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}); err == nil {
		t.Error("a server without APIs is watched")
	}
	w.members.CloseMember("m1")
}

func TestWrapReceivesAllRequests(t *testing.T) {
	server := newAPIServer(t, "token")
	w := newMemberFixture(t, server, "token")
	var asked []string
	w.members.options.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
		return roundTripper{next: next, roundTrip: func(request *http.Request) (*http.Response, error) {
			asked = append(asked, request.URL.Path)
			return next.RoundTrip(request)
		}}
	}
	if health := w.mustGet(t).Probe(t.Context()); !health.Healthy {
		t.Fatalf("the probe returns %+v", health)
	}
	if diff := cmp.Diff([]string{"/readyz"}, asked); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}
