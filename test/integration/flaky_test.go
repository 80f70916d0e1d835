package integration

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/programs/controllermanager"
	"karmada.io/karmada/internal/testenv"
)

// withSettings restarts the components with other settings and feature gates for one test,
// which must have the environment for itself.
func withSettings(t testing.TB, env *testenv.Env, gates string, change func(*controllermanager.Options)) {
	t.Helper()
	env.FeatureGates, env.Options = gates, change
	restartComponents(t, env)
	t.Cleanup(func() {
		env.FeatureGates, env.Options = "", nil
		if err := env.RestartComponents(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("restarting the components with their defaults: %v", err)
		}
	})
}

// fastClusterStatus probes members every second and sets the thresholds for success and
// failure.
func fastClusterStatus(success, failure time.Duration) func(*controllermanager.Options) {
	return func(s *controllermanager.Options) {
		s.ClusterStatus.Period = time.Second
		s.ClusterStatus.Thresholds.Success, s.ClusterStatus.Thresholds.Failure = success, failure
	}
}

// responseMode is how a flakyMember responds.
type responseMode int32

const (
	// respondNormally forwards all requests.
	respondNormally responseMode = iota
	// respondUnhealthyOnce answers one health check with an error and then responds normally.
	respondUnhealthyOnce
	// dropConnections closes every connection.
	dropConnections
)

// flakyMember is a member behind an HTTP proxy that the test controls. It registers an existing
// member under another name.
type flakyMember struct {
	env *testenv.Env
	*testenv.Member
	name   string
	server *httptest.Server
	mode   atomic.Int32
}

// newFlakyMember registers a member, which is removed when the test ends.
func newFlakyMember(t *testing.T, env *testenv.Env, name string) *flakyMember {
	t.Helper()
	f := &flakyMember{env: env, Member: env.Members[member2], name: name}
	target, err := url.Parse(f.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	through := httputil.NewSingleHostReverseProxy(target)
	through.FlushInterval = -1
	through.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	f.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case responseMode(f.mode.Load()) == dropConnections:
			panic(http.ErrAbortHandler)
		case r.URL.Path == "/readyz" && f.mode.CompareAndSwap(int32(respondUnhealthyOnce), int32(respondNormally)):
			w.WriteHeader(http.StatusInternalServerError)
		default:
			through.ServeHTTP(w, r)
		}
	}))
	f.server.StartTLS()
	t.Cleanup(func() { f.setMode(dropConnections); f.server.Close() })
	f.register(t)
	return f
}

func (f *flakyMember) setMode(next responseMode) {
	f.mode.Store(int32(next))
	if next == dropConnections {
		f.server.CloseClientConnections()
	}
}

func (f *flakyMember) register(t *testing.T) {
	t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: f.name},
		Data:       map[string][]byte{clusterv1alpha1.SecretTokenKey: []byte(f.Token)},
	}
	cluster := clusterNamed(f.name)
	cluster.Spec = clusterv1alpha1.ClusterSpec{
		SyncMode: clusterv1alpha1.Push, APIEndpoint: f.server.URL, InsecureSkipTLSVerification: true,
		SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: secret.Namespace, Name: secret.Name},
	}
	cleanUp(t, f.env, secret)
	deleteClusterAfterTest(t, f.env, f.name)
	f.env.Create(t, secret, cluster)
	await(t, f.env.Karmada, cluster, hasReadyStatus(metav1.ConditionTrue))
}

// deleteClusterAfterTest deletes a cluster when the test ends and waits until it is gone.
func deleteClusterAfterTest(t *testing.T, env *testenv.Env, name string) {
	t.Cleanup(func() { awaitGone(t, env.Karmada, clusterNamed(name)) })
	cleanUp(t, env, clusterNamed(name))
}

func hasReadyStatus(status metav1.ConditionStatus) func(*clusterv1alpha1.Cluster) error {
	return func(c *clusterv1alpha1.Cluster) error {
		for _, condition := range c.Status.Conditions {
			if condition.Type == clusterv1alpha1.ClusterConditionReady {
				return checkEqual("Ready", status, condition.Status)
			}
		}
		return checkEqual("Ready", status, metav1.ConditionStatus(""))
	}
}

// hasTaints compares the keys and effects of the taints of a cluster.
func hasTaints(want ...string) func(*clusterv1alpha1.Cluster) error {
	return func(c *clusterv1alpha1.Cluster) error {
		var got []string
		for _, taint := range c.Spec.Taints {
			got = append(got, taint.Key+":"+string(taint.Effect))
		}
		return checkEqual("taints", want, got)
	}
}
