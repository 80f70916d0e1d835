package programs

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"karmada.io/karmada/internal/programs/flags"
	"karmada.io/karmada/internal/programs/gates"
)

func TestServingAddresses(t *testing.T) {
	tests := map[string]struct {
		serving         flags.Serving
		health, metrics string
		together        bool
	}{
		"two addresses are two servers":          {serving: flags.Serving{Health: ":1", Metrics: ":2"}, health: ":1", metrics: ":2"},
		"equal addresses are one server":         {serving: flags.Serving{Health: ":1", Metrics: ":1"}, health: "0", metrics: ":1", together: true},
		"0 disables both servers":                {serving: flags.Serving{Health: "0", Metrics: "0"}, health: "0", metrics: "0"},
		"an empty address disables both servers": {health: "0", metrics: "0"},
		"one of both can be disabled":            {serving: flags.Serving{Health: "0", Metrics: ":1"}, health: "0", metrics: ":1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			health, metrics := servingAddresses(test.serving)
			if health != test.health || metrics.BindAddress != test.metrics {
				t.Errorf("health on %s and metrics on %s, want %s and %s", health, metrics.BindAddress, test.health, test.metrics)
			}
			handler := metrics.ExtraHandlers["/healthz"]
			if (handler != nil) != test.together {
				t.Fatalf("the metrics server serves /healthz: %t, want %t", handler != nil, test.together)
			}
			if handler == nil {
				return
			}
			for path, code := range map[string]int{"/healthz": 200, "/healthz/ping": 200, "/healthz/pong": 404} {
				recorder := httptest.NewRecorder()
				handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, path, nil))
				if recorder.Code != code {
					t.Errorf("%s returns %d, want %d", path, recorder.Code, code)
				}
			}
		})
	}
}

func TestManagerOptionsOfElection(t *testing.T) {
	set := gates.New()
	election := flags.Election{
		Enabled: true, Namespace: "here", Name: "lease",
		LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: time.Second,
	}
	o := managerOptions(runtime.NewScheme(), HostOptions{Gates: set, Election: election})
	got := flags.Election{
		Enabled: o.LeaderElection, Namespace: o.LeaderElectionNamespace, Name: o.LeaderElectionID,
		LeaseDuration: *o.LeaseDuration, RenewDeadline: *o.RenewDeadline, RetryPeriod: *o.RetryPeriod,
	}
	if diff := cmp.Diff(election, got); diff != "" {
		t.Errorf("election (-want +got):\n%s", diff)
	}
	if !o.LeaderElectionReleaseOnCancel {
		t.Error("a leader does not release its Lease when it ends")
	}
	alone := managerOptions(runtime.NewScheme(), HostOptions{Gates: set})
	if alone.LeaderElection {
		t.Error("a single replica waits for a Lease")
	}
}

func TestManagerOptionsOfPriorityQueueGate(t *testing.T) {
	for _, on := range []bool{true, false} {
		set := gates.New()
		if err := set.SetFromMap(map[string]bool{string(gates.ControllerPriorityQueue): on}); err != nil {
			t.Fatal(err)
		}
		if got := *managerOptions(runtime.NewScheme(), HostOptions{Gates: set}).Controller.UsePriorityQueue; got != on {
			t.Errorf("priority queue %t with the gate %t", got, on)
		}
	}
}
