package programs_test

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

	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/controllermanager"
	"karmada.io/karmada/internal/programs/flags"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/programs/scheduling"
)

// fakeAPIServer is a fake API server that serves some kinds and namespaces.
type fakeAPIServer struct {
	kinds      map[string][]string
	namespaces []string
	// status is the status code of every response, unless it is 0.
	status int
	// unavailableRequests is the number of initial requests that get the status 503.
	unavailableRequests atomic.Int32
}

func (f *fakeAPIServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.unavailableRequests.Add(-1) >= 0 {
		respond(w, http.StatusServiceUnavailable, &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonServiceUnavailable, Code: 503})
		return
	}
	version, isVersion := strings.CutPrefix(r.URL.Path, "/apis/")
	name, isNamespace := strings.CutPrefix(r.URL.Path, "/api/v1/namespaces/")
	switch kinds := f.kinds[version]; {
	case f.status != 0:
		respond(w, f.status, &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonUnauthorized, Code: int32(f.status)})
	case r.URL.Path == "/version":
		respond(w, http.StatusOK, map[string]string{"major": "1", "minor": "36"})
	case isVersion && kinds != nil:
		list := &metav1.APIResourceList{GroupVersion: version}
		for _, kind := range kinds {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: strings.ToLower(kind) + "s", Kind: kind})
		}
		respond(w, http.StatusOK, list)
	case isNamespace && strings.Contains(strings.Join(f.namespaces, " "), name):
		respond(w, http.StatusOK, map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]string{"name": name}})
	default:
		respond(w, http.StatusNotFound, &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: 404})
	}
}

func respond(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

func allKinds() map[string][]string {
	return map[string][]string{
		"cluster.karmada.io/v1alpha1": {"Cluster"},
		"work.karmada.io/v1alpha1":    {"Work"},
		"work.karmada.io/v1alpha2":    {"ResourceBinding", "ClusterResourceBinding"},
		"policy.karmada.io/v1alpha1": {
			"PropagationPolicy", "ClusterPropagationPolicy", "OverridePolicy", "ClusterOverridePolicy", "FederatedResourceQuota",
		},
		"config.karmada.io/v1alpha1": {"ResourceInterpreterCustomization", "ResourceInterpreterWebhookConfiguration"},
		"apps.karmada.io/v1alpha1":   {"WorkloadRebalancer"},
		"remedy.karmada.io/v1alpha1": {"Remedy"},
	}
}

func kindsWithout(version string) map[string][]string {
	kinds := allKinds()
	delete(kinds, version)
	return kinds
}

func TestAwait(t *testing.T) {
	manager, scheduler := controllermanager.New(gates.New()), scheduling.New(gates.New())
	election := flags.DefaultElection(manager.Name)
	tests := map[string]struct {
		server    *fakeAPIServer
		election  flags.Election
		component programs.Component
		wantErr   []string
	}{
		"every prerequisite exists": {server: &fakeAPIServer{kinds: allKinds(), namespaces: []string{"karmada-system"}}, election: election, component: manager},
		"a scheduler needs no interpreter": {
			server: &fakeAPIServer{kinds: kindsWithout("config.karmada.io/v1alpha1")}, component: scheduler,
		},
		"a missing CRD is named with the remedy": {
			server: &fakeAPIServer{kinds: kindsWithout("work.karmada.io/v1alpha2")}, component: scheduler,
			wantErr: []string{
				"clusterresourcebindings.work.karmada.io, resourcebindings.work.karmada.io: not served in work.karmada.io/v1alpha2",
				"install the CustomResourceDefinitions",
			},
		},
		"every missing kind is named": {
			server: &fakeAPIServer{}, component: manager,
			wantErr: []string{"clusters.cluster.karmada.io", "works.work.karmada.io", "propagationpolicies.policy.karmada.io", "resourcebindings.work.karmada.io"},
		},
		"the server of Clusters is named": {
			server: &fakeAPIServer{kinds: kindsWithout("cluster.karmada.io/v1alpha1")}, component: scheduler,
			wantErr: []string{"karmada-aggregated-apiserver", "APIService v1alpha1.cluster.karmada.io"},
		},
		"the namespace of the Lease must exist": {
			server: &fakeAPIServer{kinds: allKinds()}, election: election, component: manager,
			wantErr: []string{"namespace karmada-system of the Lease is missing", "--leader-elect-resource-namespace"},
		},
		"without an election no namespace is needed": {server: &fakeAPIServer{kinds: allKinds()}, component: manager},
		"rejected credentials end the wait": {
			server: &fakeAPIServer{status: http.StatusUnauthorized}, component: scheduler,
			wantErr: []string{"does not accept the credentials of the kubeconfig"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := awaitComponent(t, httptest.NewServer(test.server), test.election, test.component, 50*time.Millisecond)
			if (err != nil) != (len(test.wantErr) > 0) {
				t.Fatalf("error %v, want one that contains %q", err, test.wantErr)
			}
			for _, want := range test.wantErr {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not contain %q: %v", want, err)
				}
			}
		})
	}
}

func awaitComponent(t *testing.T, server *httptest.Server, election flags.Election, component programs.Component, limit time.Duration) error {
	t.Helper()
	t.Cleanup(server.Close)
	return programs.AwaitPrerequisites(t.Context(), &rest.Config{Host: server.URL, QPS: -1}, election, component, limit, 5*time.Millisecond)
}

func TestAwaitReturnsWhenTheServerResponds(t *testing.T) {
	server := &fakeAPIServer{kinds: allKinds()}
	server.unavailableRequests.Store(3)
	if err := awaitComponent(t, httptest.NewServer(server), flags.Election{}, scheduling.New(gates.New()), time.Minute); err != nil {
		t.Error(err)
	}
}

func TestAwaitNamesAServerThatDoesNotRespond(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	err := awaitComponent(t, server, flags.Election{}, scheduling.New(gates.New()), 50*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "the API server "+server.URL+" does not respond") {
		t.Errorf("error %v", err)
	}
}
