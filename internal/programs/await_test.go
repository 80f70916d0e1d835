package programs

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"karmada.io/karmada/internal/programs/flags"
)

// apiServer answers as an API server does that holds some kinds and namespaces.
type apiServer struct {
	kinds      map[string][]string
	namespaces []string
	// status, if not 0, is all it says.
	status int
	// busy is how many requests it does not answer first.
	busy atomic.Int32
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.busy.Add(-1) >= 0 {
		answer(w, http.StatusServiceUnavailable, &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonServiceUnavailable, Code: 503})
		return
	}
	version, isVersion := strings.CutPrefix(r.URL.Path, "/apis/")
	name, isNamespace := strings.CutPrefix(r.URL.Path, "/api/v1/namespaces/")
	switch kinds := s.kinds[version]; {
	case s.status != 0:
		answer(w, s.status, &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonUnauthorized, Code: int32(s.status)})
	case r.URL.Path == "/version":
		answer(w, http.StatusOK, map[string]string{"major": "1", "minor": "36"})
	case isVersion && kinds != nil:
		list := &metav1.APIResourceList{GroupVersion: version}
		for _, kind := range kinds {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: strings.ToLower(kind) + "s", Kind: kind})
		}
		answer(w, http.StatusOK, list)
	case isNamespace && strings.Contains(strings.Join(s.namespaces, " "), name):
		answer(w, http.StatusOK, map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]string{"name": name}})
	default:
		answer(w, http.StatusNotFound, &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: 404})
	}
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

func complete() map[string][]string {
	return map[string][]string{
		"cluster.karmada.io/v1alpha1": {"Cluster"},
		"work.karmada.io/v1alpha1":    {"Work"},
		"work.karmada.io/v1alpha2":    {"ResourceBinding", "ClusterResourceBinding"},
		"policy.karmada.io/v1alpha1":  {"PropagationPolicy", "ClusterPropagationPolicy", "OverridePolicy", "ClusterOverridePolicy"},
	}
}

func without(version string) map[string][]string {
	kinds := complete()
	delete(kinds, version)
	return kinds
}

func TestAwait(t *testing.T) {
	elected := flags.DefaultElection(ControllerManager)
	tests := map[string]struct {
		server    *apiServer
		election  flags.Election
		component string
		told      []string
	}{
		"all is there": {server: &apiServer{kinds: complete(), namespaces: []string{"karmada-system"}}, election: elected, component: ControllerManager},
		"a scheduler needs no policies": {
			server: &apiServer{kinds: without("policy.karmada.io/v1alpha1")}, component: Scheduler,
		},
		"a missing CRD is named with the remedy": {
			server: &apiServer{kinds: without("work.karmada.io/v1alpha2")}, component: Scheduler,
			told: []string{
				"clusterresourcebindings.work.karmada.io, resourcebindings.work.karmada.io: not served in work.karmada.io/v1alpha2",
				"install the CustomResourceDefinitions",
			},
		},
		"all that is missing is named": {
			server: &apiServer{}, component: ControllerManager,
			told: []string{"clusters.cluster.karmada.io", "works.work.karmada.io", "propagationpolicies.policy.karmada.io", "resourcebindings.work.karmada.io"},
		},
		"who serves Clusters is told": {
			server: &apiServer{kinds: without("cluster.karmada.io/v1alpha1")}, component: Scheduler,
			told: []string{"karmada-aggregated-apiserver", "APIService v1alpha1.cluster.karmada.io"},
		},
		"the namespace of the Lease must be there": {
			server: &apiServer{kinds: complete()}, election: elected, component: ControllerManager,
			told: []string{"namespace karmada-system of the Lease is missing", "--leader-elect-resource-namespace"},
		},
		"without an election no namespace is needed": {server: &apiServer{kinds: complete()}, component: ControllerManager},
		"credentials that are refused end the wait": {
			server: &apiServer{status: http.StatusUnauthorized}, component: Scheduler,
			told: []string{"does not accept the credentials of the kubeconfig"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := awaiting(t, httptest.NewServer(test.server), test.election, test.component, 50*time.Millisecond)
			if (err != nil) != (len(test.told) > 0) {
				t.Fatalf("error %v, want one that tells %q", err, test.told)
			}
			for _, told := range test.told {
				if !strings.Contains(err.Error(), told) {
					t.Errorf("the error does not tell %q: %v", told, err)
				}
			}
		})
	}
}

func awaiting(t *testing.T, server *httptest.Server, election flags.Election, component string, limit time.Duration) error {
	t.Helper()
	t.Cleanup(server.Close)
	components, err := named([]string{component})
	if err != nil {
		t.Fatal(err)
	}
	f, err := newFoundation(&rest.Config{Host: server.URL, QPS: -1}, election, components)
	if err != nil {
		t.Fatal(err)
	}
	return f.await(t.Context(), limit, 5*time.Millisecond)
}

func TestAwaitGoesOnWhenTheServerAnswers(t *testing.T) {
	server := &apiServer{kinds: complete()}
	server.busy.Store(3)
	if err := awaiting(t, httptest.NewServer(server), flags.Election{}, Scheduler, time.Minute); err != nil {
		t.Error(err)
	}
}

func TestAwaitTellsOfAServerThatDoesNotAnswer(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	err := awaiting(t, server, flags.Election{}, Scheduler, 50*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "the API server "+server.URL+" does not answer") {
		t.Errorf("error %v", err)
	}
}
