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
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/testenv"
)

// withSettings restarts the components with other settings, and feature gates, for
// one test, which must not run in parallel.
func withSettings(t testing.TB, env *testenv.Env, gates string, change func(*programs.Settings)) {
	t.Helper()
	env.FeatureGates, env.Settings = gates, change
	restart(t, env)
	t.Cleanup(func() {
		env.FeatureGates, env.Settings = "", nil
		if err := env.RestartComponents(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("restarting the components with their defaults: %v", err)
		}
	})
}

// impatient looks at members every second and believes what it sees after limits.
func impatient(success, failure time.Duration) func(*programs.Settings) {
	return func(s *programs.Settings) {
		s.Controllers.StatusPeriod = time.Second
		s.Controllers.Thresholds.Success, s.Controllers.Thresholds.Failure = success, failure
	}
}

// mood is how a flaky member answers.
type mood int32

const (
	// well lets everything through.
	well mood = iota
	// unwell answers once that its health is bad, and is well then.
	unwell
	// lost cuts every connection.
	lost
)

// flaky is a member behind a door that a test opens and shuts: one of those that
// there are, under another name.
type flaky struct {
	env *testenv.Env
	*testenv.Member
	name string
	door *httptest.Server
	mood atomic.Int32
}

// newFlaky registers a member that is removed with the test.
func newFlaky(t *testing.T, env *testenv.Env, name string) *flaky {
	t.Helper()
	f := &flaky{env: env, Member: env.Members[member2], name: name}
	target, err := url.Parse(f.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	through := httputil.NewSingleHostReverseProxy(target)
	through.FlushInterval = -1
	through.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	f.door = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case mood(f.mood.Load()) == lost:
			panic(http.ErrAbortHandler)
		case r.URL.Path == "/readyz" && f.mood.CompareAndSwap(int32(unwell), int32(well)):
			w.WriteHeader(http.StatusInternalServerError)
		default:
			through.ServeHTTP(w, r)
		}
	}))
	f.door.StartTLS()
	t.Cleanup(func() { f.become(lost); f.door.Close() })
	f.register(t)
	return f
}

func (f *flaky) become(next mood) {
	f.mood.Store(int32(next))
	if next == lost {
		f.door.CloseClientConnections()
	}
}

func (f *flaky) register(t *testing.T) {
	t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: f.name},
		Data:       map[string][]byte{clusterv1alpha1.SecretTokenKey: []byte(f.Token)},
	}
	cluster := clusterNamed(f.name)
	cluster.Spec = clusterv1alpha1.ClusterSpec{
		SyncMode: clusterv1alpha1.Push, APIEndpoint: f.door.URL, InsecureSkipTLSVerification: true,
		SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: secret.Namespace, Name: secret.Name},
	}
	cleanUp(t, f.env, secret)
	removeWithTest(t, f.env, f.name)
	f.env.Create(t, secret, cluster)
	await(t, f.env.Karmada, cluster, readyIs(metav1.ConditionTrue))
}

// removeWithTest removes a cluster with the test and waits until it is gone.
func removeWithTest(t *testing.T, env *testenv.Env, name string) {
	t.Cleanup(func() { awaitGone(t, env.Karmada, clusterNamed(name)) })
	cleanUp(t, env, clusterNamed(name))
}

func readyIs(status metav1.ConditionStatus) func(*clusterv1alpha1.Cluster) error {
	return func(c *clusterv1alpha1.Cluster) error {
		for _, condition := range c.Status.Conditions {
			if condition.Type == clusterv1alpha1.ClusterConditionReady {
				return same("Ready", status, condition.Status)
			}
		}
		return same("Ready", status, metav1.ConditionStatus(""))
	}
}

// taintedBy compares the keys and effects of the taints of a cluster.
func taintedBy(want ...string) func(*clusterv1alpha1.Cluster) error {
	return func(c *clusterv1alpha1.Cluster) error {
		var got []string
		for _, taint := range c.Spec.Taints {
			got = append(got, taint.Key+":"+string(taint.Effect))
		}
		return same("taints", want, got)
	}
}
