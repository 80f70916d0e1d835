package member

import (
	"context"
	"encoding/base64"
	"fmt"
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
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	metadatafake "k8s.io/client-go/metadata/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	domain "karmada.io/karmada/internal/domain/cluster"
)

// shownTo are credentials whose Secret holds what stored points to.
func shownTo(first string, stored *atomic.Pointer[string], reads *atomic.Int32, now func() time.Time) *credentials {
	shown := &credentials{now: now, read: func(context.Context, types.NamespacedName) (*corev1.Secret, error) {
		reads.Add(1)
		return secretWith(*stored.Load()), nil
	}}
	shown.take(&clusterv1alpha1.Cluster{}, secretWith(first))
	return shown
}

func TestARequestThatIsSentAgainIsTheSame(t *testing.T) {
	tests := map[string]struct {
		request func(url string) (*http.Request, error)
		want    int
		body    string
	}{
		"without a body": {
			func(url string) (*http.Request, error) { return http.NewRequest(http.MethodGet, url, nil) }, http.StatusOK, ""},
		"with a body that is held in memory": {
			func(url string) (*http.Request, error) {
				return http.NewRequest(http.MethodPost, url, strings.NewReader("the whole object"))
			}, http.StatusOK, "the whole object"},
		"with a body that can be read once only it is not sent again": {
			func(url string) (*http.Request, error) {
				return http.NewRequest(http.MethodPost, url, io.NopCloser(strings.NewReader("a stream")))
			}, http.StatusUnauthorized, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got atomic.Pointer[string]
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if r.Header.Get("Authorization") != "Bearer new" {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				text := string(body)
				got.Store(&text)
			}))
			t.Cleanup(server.Close)
			var stored atomic.Pointer[string]
			var reads atomic.Int32
			rotated := "new"
			stored.Store(&rotated)
			shown := shownTo("old", &stored, &reads, time.Now)
			request, err := tc.request(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			response, err := authorized(http.DefaultTransport, shown).RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if response.StatusCode != tc.want {
				t.Fatalf("the answer is %d, want %d", response.StatusCode, tc.want)
			}
			if tc.want == http.StatusOK && *got.Load() != tc.body {
				t.Errorf("the member got %q, want %q", *got.Load(), tc.body)
			}
		})
	}
}

func TestAMemberThatRefusesEverythingDoesNotMakeUsAskForEveryRequest(t *testing.T) {
	server := newAPIServer(t, "another")
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	var stored atomic.Pointer[string]
	var reads atomic.Int32
	wrong := "wrong"
	stored.Store(&wrong)
	shown := shownTo(wrong, &stored, &reads, func() time.Time { return now })
	send := func() int {
		request, err := http.NewRequest(http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := authorized(server.Client().Transport, shown).RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		return response.StatusCode
	}
	for range 10 {
		if status := send(); status != http.StatusUnauthorized {
			t.Fatalf("the answer is %d", status)
		}
	}
	if reads.Load() != 1 || !shown.refused.Load() {
		t.Fatalf("the Secret was read %d times, refused is %v", reads.Load(), shown.refused.Load())
	}
	now = now.Add(rereadPause)
	if stored.Store(server.accepted.Load()); send() != http.StatusOK {
		t.Error("the right token is not used once it is there")
	}
	if reads.Load() != 2 || shown.refused.Load() {
		t.Errorf("the Secret was read %d times, refused is %v", reads.Load(), shown.refused.Load())
	}
}

// following makes the world tell of changes of Secrets.
func (w *world) following(t *testing.T) *metadatafake.FakeMetadataClient {
	t.Helper()
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	followed := metadatafake.NewSimpleMetadataClient(scheme, metadataOf(w.stored(t)))
	ctx, cancel := context.WithCancel(t.Context())
	registry := prometheus.NewRegistry()
	counted, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	w.members = NewClusters(ctx, Options{
		Karmada: w.karmada, Secrets: w.karmada, Follow: followed, Metrics: counted, Now: func() time.Time { return w.now },
	})
	t.Cleanup(func() { w.members.Forget("m1"); cancel() })
	w.eventually(t, "changes are told", func() bool {
		w.get(t)
		version, known := w.members.versions.of(w.members.ctx, client.ObjectKeyFromObject(secretWith("")))
		return known && version == w.stored(t).ResourceVersion
	})
	return followed
}

func (w *world) stored(t *testing.T) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	if err := w.karmada.Get(t.Context(), client.ObjectKeyFromObject(secretWith("")), secret); err != nil {
		t.Fatal(err)
	}
	return secret
}

func (w *world) eventually(t *testing.T, what string, right func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true,
		func(context.Context) (bool, error) { return right(), nil })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func metadataOf(secret *corev1.Secret) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: *secret.ObjectMeta.DeepCopy(),
	}
}

// replace stores a Secret and tells of it.
func (w *world) replace(t *testing.T, followed *metadatafake.FakeMetadataClient, data map[string][]byte) {
	t.Helper()
	secret := w.stored(t)
	secret.Data = data
	if err := w.karmada.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if err := followed.Tracker().Update(corev1.SchemeGroupVersion.WithResource("secrets"), metadataOf(secret), secret.Namespace); err != nil {
		t.Fatal(err)
	}
}

func TestAChangedTokenIsUsedBeforeTheOldOneIsRefused(t *testing.T) {
	server := newAPIServer(t, "old")
	w := newWorld(t, server, "old")
	followed := w.following(t)
	before := w.get(t)
	w.replace(t, followed, map[string][]byte{clusterv1alpha1.SecretTokenKey: []byte("new\n")})
	w.eventually(t, "the new token is shown", func() bool { return *before.shown.token.Load() == "new" })
	rotated := "new"
	server.accepted.Store(&rotated)
	if health := before.Probe(t.Context()); !health.Healthy || server.refused.Load() != 0 {
		t.Errorf("the member is %+v after %d refusals", health, server.refused.Load())
	}
	if w.get(t) != before {
		t.Error("a new token closed the connections")
	}
}

func TestAChangedAuthorityOpensTheMemberAnew(t *testing.T) {
	w := newWorld(t, newAPIServer(t, "token"), "token")
	followed := w.following(t)
	before := w.get(t)
	w.replace(t, followed, map[string][]byte{clusterv1alpha1.SecretTokenKey: []byte("token"), clusterv1alpha1.SecretCADataKey: []byte("other")})
	w.eventually(t, "the member is opened anew", func() bool { return w.get(t) != before })
}

func TestSecretsAreFollowedForAsLongAsAClusterNeedsThem(t *testing.T) {
	w := newWorld(t, newAPIServer(t, "token"), "token")
	w.following(t)
	spaces := func() int {
		w.members.versions.mu.Lock()
		defer w.members.versions.mu.Unlock()
		return len(w.members.versions.spaces)
	}
	w.get(t)
	w.members.Forget("another")
	if got := spaces(); got != 1 {
		t.Errorf("Secrets of %d namespaces are followed, want those of the cluster", got)
	}
	w.members.Forget(w.cluster.Name)
	if got := spaces(); got != 0 {
		t.Errorf("Secrets of %d namespaces are followed for no cluster", got)
	}
	if w.members.versions.of(t.Context(), types.NamespacedName{Namespace: w.cluster.Spec.SecretRef.Namespace, Name: "x"}); spaces() != 1 {
		t.Errorf("what is needed again is not followed again: %d namespaces", spaces())
	}
}

func TestASecretThatIsGoneIsTold(t *testing.T) {
	w := newWorld(t, newAPIServer(t, "token"), "token")
	followed := w.following(t)
	target := w.get(t)
	secret := w.stored(t)
	if err := w.karmada.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if err := followed.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("secrets"), secret.Namespace, secret.Name); err != nil {
		t.Fatal(err)
	}
	w.eventually(t, "it is told", func() bool { known, ok := target.Credentials(); return ok && known.Missing })
	if health := w.get(t).Probe(t.Context()); !health.Healthy {
		t.Errorf("what was known is not used: %+v", health)
	}
	if err := w.karmada.Create(t.Context(), secretWith("token")); err != nil {
		t.Fatal(err)
	}
	if err := followed.Tracker().Add(metadataOf(w.stored(t))); err != nil {
		t.Fatal(err)
	}
	w.eventually(t, "it is told no more", func() bool { known, ok := target.Credentials(); return ok && !known.Missing })
}

func TestTheEndOfATokenIsShown(t *testing.T) {
	end := time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)
	claims := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"exp":%d}`, end.Unix()))
	token := "e30." + claims + ".x"
	w := newWorld(t, newAPIServer(t, token), token)
	w.following(t)
	known, ok := w.get(t).Credentials()
	want := domain.Credentials{Secret: "karmada-cluster/m1", Validity: domain.Validity{Until: end, Of: "token"}}
	if diff := cmp.Diff(want, known); !ok || diff != "" {
		t.Errorf("credentials (-want +got):\n%s", diff)
	}
	shown := w.members.options.Metrics.expires
	if got := testutil.ToFloat64(shown.WithLabelValues("m1")); got != float64(end.Unix()) {
		t.Errorf("the metric is %v, want %v", got, end.Unix())
	}
	w.members.Forget("m1")
	if count := testutil.CollectAndCount(shown); count != 0 {
		t.Errorf("%d series stay of a member that is gone", count)
	}
}

func TestAClusterThatIsGoneIsNotOpened(t *testing.T) {
	w := newWorld(t, newAPIServer(t, "token"), "token")
	if err := w.karmada.Delete(t.Context(), w.cluster.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.members.For(t.Context(), w.cluster); err == nil {
		t.Error("it is opened for somebody who has not heard")
	}
}
