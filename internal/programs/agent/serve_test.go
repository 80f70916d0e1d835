package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/epoch"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/registration"
)

func TestTransientErrors(t *testing.T) {
	tests := map[string]struct {
		err  error
		want bool
	}{
		"an internal error":         {apierrors.NewInternalError(errors.New("etcd is away")), true},
		"Forbidden":                 {apierrors.NewForbidden(clusterv1alpha1.Resource("clusters"), "east", nil), true},
		"an unreachable API server": {&url.Error{Op: "Get", URL: "https://karmada", Err: &net.OpError{Op: "dial", Err: errors.New("refused")}}, true},
		"a timeout":                 {context.DeadlineExceeded, true},
		"a kind that is not served": {&meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "Cluster"}}, true},
		"an invalid flag":           {errors.New("there is no controller x"), false},
		"controllers that ended":    {errControllersEnded, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := isTransient(fmt.Errorf("watching: %w", test.err)); got != test.want {
				t.Errorf("%v is transient: %t, want %t", test.err, got, test.want)
			}
		})
	}
}

func TestFinalErrors(t *testing.T) {
	registered := &registration.RegisteredError{Name: "east", ID: "1"}
	tests := map[string]struct {
		err          error
		worked, want bool
	}{
		"the name belongs to another cluster later":        {fmt.Errorf("watching: %w", registered), true, true},
		"the name belongs to another cluster at the start": {registered, false, true},
		"an invalid flag":                           {errors.New("there is no controller x"), false, true},
		"controllers that ended without an error":   {errControllersEnded, true, false},
		"an unavailable control plane at the start": {apierrors.NewInternalError(errors.New("etcd is away")), false, false},
		"a control plane restored from a backup":    {fmt.Errorf("watching: %w", epoch.ErrStorageReplaced), false, false},
		"an unavailable control plane later":        {apierrors.NewInternalError(errors.New("etcd is away")), true, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := isFinal(test.err, test.worked); got != test.want {
				t.Errorf("%v ends the agent: %t, want %t", test.err, got, test.want)
			}
		})
	}
}

func TestRestartDelayGrowsToOneMinute(t *testing.T) {
	var got []time.Duration
	delay := time.Duration(0)
	for range 8 {
		delay = nextRestartDelay(false, delay)
		got = append(got, delay/time.Second)
	}
	if diff := cmp.Diff([]time.Duration{1, 2, 4, 8, 16, 32, 60, 60}, got); diff != "" {
		t.Errorf("delays in seconds (-want +got):\n%s", diff)
	}
	if delay = nextRestartDelay(true, delay); delay != 0 {
		t.Errorf("delay after the agent was the leader: %s", delay)
	}
}

// unavailableServer is a transport that returns an error for every request to the control plane.
type unavailableServer struct{ discoveries atomic.Int32 }

// RoundTrip implements http.RoundTripper.
func (u *unavailableServer) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Path == "/api" {
		u.discoveries.Add(1)
	}
	return &http.Response{
		StatusCode: http.StatusInternalServerError, Status: "500 Internal Server Error", Header: http.Header{},
		Body: io.NopCloser(strings.NewReader("not yet")), Request: request,
	}, nil
}

func TestAgentRestartsControllersAfterAStartFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &unavailableServer{}
		o := Default(gates.New())
		o.Cluster.Name, o.Election.Enabled, o.Serving.Metrics, o.Serving.Health = "east", false, "", ""
		waiting := &rest.Config{Host: "http://karmada", Transport: server}
		a := &agent{karmada: &connection{credentials: &credentials{current: &identity{}}, waitingConfig: waiting}, cluster: o.Cluster, options: o.hostOptions(), component: o.Component()}
		ctx, end := context.WithCancel(t.Context())
		defer end()
		ended := make(chan error, 1)
		go func() {
			ended <- a.serveCluster(ctx, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}, Spec: clusterv1alpha1.ClusterSpec{ID: "1"}})
		}()
		select {
		case err := <-ended:
			t.Fatalf("the agent ended with %v", err)
		case <-time.After(time.Minute):
		}
		// The delays between the starts are 1, 2, 4, 8, 16 and 32 seconds.
		if starts := server.discoveries.Load(); starts != 6 {
			t.Errorf("the agent started the controllers %d times within a minute, want 6", starts)
		}
		end()
		if err := <-ended; err != nil {
			t.Errorf("the agent ended with %v", err)
		}
	})
}
