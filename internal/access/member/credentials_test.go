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

// newTestCredentials returns credentials with the first token. The Secret of these credentials
// contains the stored token.
func newTestCredentials(first string, stored *atomic.Pointer[string], reads *atomic.Int32, now func() time.Time) *credentials {
	creds := &credentials{now: now, readSecret: func(context.Context, types.NamespacedName) (*corev1.Secret, error) {
		reads.Add(1)
		return secretWithToken(*stored.Load()), nil
	}}
	creds.use(&clusterv1alpha1.Cluster{}, secretWithToken(first))
	return creds
}

func TestRejectedRequestIsResentWithNewToken(t *testing.T) {
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
		"with a body that can be read only once": {
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
			creds := newTestCredentials("old", &stored, &reads, time.Now)
			request, err := tc.request(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			response, err := authenticated(http.DefaultTransport, creds).RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if response.StatusCode != tc.want {
				t.Fatalf("the response is %d, want %d", response.StatusCode, tc.want)
			}
			if tc.want == http.StatusOK && *got.Load() != tc.body {
				t.Errorf("the member got %q, want %q", *got.Load(), tc.body)
			}
		})
	}
}

func TestRejectedTokenIsReadAgainWithDelay(t *testing.T) {
	server := newAPIServer(t, "another")
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	var stored atomic.Pointer[string]
	var reads atomic.Int32
	wrong := "wrong"
	stored.Store(&wrong)
	creds := newTestCredentials(wrong, &stored, &reads, func() time.Time { return now })
	send := func() int {
		request, err := http.NewRequest(http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := authenticated(server.Client().Transport, creds).RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		return response.StatusCode
	}
	for range 10 {
		if status := send(); status != http.StatusUnauthorized {
			t.Fatalf("the response is %d", status)
		}
	}
	if reads.Load() != 1 || !creds.isRejected.Load() {
		t.Fatalf("the Secret was read %d times, rejected: %v", reads.Load(), creds.isRejected.Load())
	}
	now = now.Add(rereadDelay)
	if stored.Store(server.acceptedToken.Load()); send() != http.StatusOK {
		t.Error("the accepted token is not used after the delay")
	}
	if reads.Load() != 2 || creds.isRejected.Load() {
		t.Errorf("the Secret was read %d times, rejected: %v", reads.Load(), creds.isRejected.Load())
	}
}

// watchSecrets makes the fixture watch the changes of Secrets.
func (m *memberFixture) watchSecrets(t *testing.T) *metadatafake.FakeMetadataClient {
	t.Helper()
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	secretClient := metadatafake.NewSimpleMetadataClient(scheme, metadataOf(m.storedSecret(t)))
	ctx, cancel := context.WithCancel(t.Context())
	registry := prometheus.NewRegistry()
	counted, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	m.members = NewClusters(ctx, Options{
		Karmada: m.karmada, Secrets: m.karmada, SecretMetadata: secretClient, Metrics: counted, Now: func() time.Time { return m.now },
	})
	t.Cleanup(func() { m.members.CloseMember("m1"); cancel() })
	m.eventually(t, "changes are observed", func() bool {
		m.mustGet(t)
		version, known := m.members.secretVersions.get(m.members.ctx, client.ObjectKeyFromObject(secretWithToken("")))
		return known && version == m.storedSecret(t).ResourceVersion
	})
	return secretClient
}

func (m *memberFixture) storedSecret(t *testing.T) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	if err := m.karmada.Get(t.Context(), client.ObjectKeyFromObject(secretWithToken("")), secret); err != nil {
		t.Fatal(err)
	}
	return secret
}

func (m *memberFixture) eventually(t *testing.T, what string, right func() bool) {
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

// replaceSecret stores a Secret and sends the change to the watch.
func (m *memberFixture) replaceSecret(t *testing.T, secretClient *metadatafake.FakeMetadataClient, data map[string][]byte) {
	t.Helper()
	secret := m.storedSecret(t)
	secret.Data = data
	if err := m.karmada.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if err := secretClient.Tracker().Update(corev1.SchemeGroupVersion.WithResource("secrets"), metadataOf(secret), secret.Namespace); err != nil {
		t.Fatal(err)
	}
}

func TestChangedTokenIsUsedAtOnce(t *testing.T) {
	server := newAPIServer(t, "old")
	w := newMemberFixture(t, server, "old")
	secretClient := w.watchSecrets(t)
	before := w.mustGet(t)
	w.replaceSecret(t, secretClient, map[string][]byte{clusterv1alpha1.SecretTokenKey: []byte("new\n")})
	w.eventually(t, "the new token is used", func() bool { return *before.credentials.token.Load() == "new" })
	rotated := "new"
	server.acceptedToken.Store(&rotated)
	if health := before.Probe(t.Context()); !health.Healthy || server.rejectedRequests.Load() != 0 {
		t.Errorf("the member is %+v after %d rejected requests", health, server.rejectedRequests.Load())
	}
	if w.mustGet(t) != before {
		t.Error("a new token closed the connections")
	}
}

func TestChangedCAReopensMember(t *testing.T) {
	w := newMemberFixture(t, newAPIServer(t, "token"), "token")
	secretClient := w.watchSecrets(t)
	before := w.mustGet(t)
	w.replaceSecret(t, secretClient, map[string][]byte{clusterv1alpha1.SecretTokenKey: []byte("token"), clusterv1alpha1.SecretCADataKey: []byte("other")})
	w.eventually(t, "the member is opened again", func() bool { return w.mustGet(t) != before })
}

func TestSecretsAreWatchedWhileNeeded(t *testing.T) {
	w := newMemberFixture(t, newAPIServer(t, "token"), "token")
	w.watchSecrets(t)
	spaces := func() int {
		w.members.secretVersions.mu.Lock()
		defer w.members.secretVersions.mu.Unlock()
		return len(w.members.secretVersions.namespaces)
	}
	w.mustGet(t)
	w.members.CloseMember("another")
	if got := spaces(); got != 1 {
		t.Errorf("Secrets of %d namespaces are watched, want those of the cluster", got)
	}
	w.members.CloseMember(w.cluster.Name)
	if got := spaces(); got != 0 {
		t.Errorf("Secrets of %d namespaces are watched without a cluster", got)
	}
	if w.members.secretVersions.get(t.Context(), types.NamespacedName{Namespace: w.cluster.Spec.SecretRef.Namespace, Name: "x"}); spaces() != 1 {
		t.Errorf("a namespace that is needed again is not watched: %d namespaces", spaces())
	}
}

func TestMissingSecretIsReported(t *testing.T) {
	w := newMemberFixture(t, newAPIServer(t, "token"), "token")
	secretClient := w.watchSecrets(t)
	target := w.mustGet(t)
	secret := w.storedSecret(t)
	if err := w.karmada.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if err := secretClient.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("secrets"), secret.Namespace, secret.Name); err != nil {
		t.Fatal(err)
	}
	w.eventually(t, "the missing Secret is reported", func() bool { known, ok := target.Credentials(); return ok && known.SecretMissing })
	if health := w.mustGet(t).Probe(t.Context()); !health.Healthy {
		t.Errorf("the previous token is not used: %+v", health)
	}
	if err := w.karmada.Create(t.Context(), secretWithToken("token")); err != nil {
		t.Fatal(err)
	}
	if err := secretClient.Tracker().Add(metadataOf(w.storedSecret(t))); err != nil {
		t.Fatal(err)
	}
	w.eventually(t, "the Secret is no longer reported as missing", func() bool { known, ok := target.Credentials(); return ok && !known.SecretMissing })
}

func TestTokenExpiryIsReported(t *testing.T) {
	end := time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)
	claims := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"exp":%d}`, end.Unix()))
	token := "e30." + claims + ".x"
	w := newMemberFixture(t, newAPIServer(t, token), token)
	w.watchSecrets(t)
	known, ok := w.mustGet(t).Credentials()
	want := domain.Credentials{Secret: "karmada-cluster/m1", Validity: domain.Validity{Until: end, Credential: "token"}}
	if diff := cmp.Diff(want, known); !ok || diff != "" {
		t.Errorf("credentials (-want +got):\n%s", diff)
	}
	creds := w.members.options.Metrics.credentialExpiry
	if got := testutil.ToFloat64(creds.WithLabelValues("m1")); got != float64(end.Unix()) {
		t.Errorf("the metric is %v, want %v", got, end.Unix())
	}
	w.members.CloseMember("m1")
	if count := testutil.CollectAndCount(creds); count != 0 {
		t.Errorf("%d series are left for a closed member", count)
	}
}

func TestDeletedClusterIsNotOpened(t *testing.T) {
	w := newMemberFixture(t, newAPIServer(t, "token"), "token")
	if err := w.karmada.Delete(t.Context(), w.cluster.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.members.GetForCluster(t.Context(), w.cluster); err == nil {
		t.Error("a deleted cluster is opened for a stale copy of it")
	}
}
