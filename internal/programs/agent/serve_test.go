package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
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

func TestWhatPassesIsTriedAgain(t *testing.T) {
	tests := map[string]struct {
		err  error
		want bool
	}{
		"an API server that cannot": {apierrors.NewInternalError(errors.New("etcd is away")), true},
		"one that does not let it":  {apierrors.NewForbidden(clusterv1alpha1.Resource("clusters"), "east", nil), true},
		"one that nobody reaches":   {&url.Error{Op: "Get", URL: "https://karmada", Err: &net.OpError{Op: "dial", Err: errors.New("refused")}}, true},
		"an answer in time":         {context.DeadlineExceeded, true},
		"a kind that is not served": {&meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "Cluster"}}, true},
		"a flag that is no good":    {errors.New("there is no controller x"), false},
		"controllers that ended":    {errEnded, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := passes(fmt.Errorf("watching: %w", test.err)); got != test.want {
				t.Errorf("%v passes: %t, want %t", test.err, got, test.want)
			}
		})
	}
}

func TestWhatEndsTheAgent(t *testing.T) {
	taken := &registration.RegisteredError{Name: "east", ID: "1"}
	tests := map[string]struct {
		err          error
		worked, want bool
	}{
		"the name is another cluster's by now":       {fmt.Errorf("watching: %w", taken), true, true},
		"the name is another cluster's at the start": {taken, false, true},
		"a flag that is no good":                     {errors.New("there is no controller x"), false, true},
		"controllers that ended by themselves":       {errEnded, true, false},
		"a control plane that is away at the start":  {apierrors.NewInternalError(errors.New("etcd is away")), false, false},
		"one that is restored from a backup":         {fmt.Errorf("watching: %w", epoch.ErrAnother), false, false},
		"one that goes away later":                   {apierrors.NewInternalError(errors.New("etcd is away")), true, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := isFinal(test.err, test.worked); got != test.want {
				t.Errorf("%v ends the agent: %t, want %t", test.err, got, test.want)
			}
		})
	}
}

func TestPausesBetweenLivesGrowUpToAMinute(t *testing.T) {
	var got []time.Duration
	pause := time.Duration(0)
	for range 8 {
		pause = pauseAfter(false, pause)
		got = append(got, pause/time.Second)
	}
	if diff := cmp.Diff([]time.Duration{1, 2, 4, 8, 16, 32, 60, 60}, got); diff != "" {
		t.Errorf("pauses in seconds (-want +got):\n%s", diff)
	}
	if pause = pauseAfter(true, pause); pause != 0 {
		t.Errorf("after a life that has led, %s", pause)
	}
}

func TestAnAgentThatCannotStartBeginsAnew(t *testing.T) {
	var asked atomic.Int32
	again := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/api" && asked.Add(1) == 3 {
			close(again)
		}
		http.Error(w, "not yet", http.StatusInternalServerError)
	}))
	t.Cleanup(s.Close)
	o := Default(gates.New())
	o.Cluster.Name, o.Election.Enabled, o.Serving.Metrics, o.Serving.Health = "east", false, "", ""
	a := &agent{karmada: &connection{credentials: &credentials{current: &identity{}}, waiting: &rest.Config{Host: s.URL}}, cluster: o.Cluster, host: o.host()}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	ended := make(chan error, 1)
	go func() {
		ended <- a.serve(ctx, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}, Spec: clusterv1alpha1.ClusterSpec{ID: "1"}})
	}()
	select {
	case <-again:
	case err := <-ended:
		t.Fatalf("the agent ended with %v", err)
	case <-time.After(time.Minute):
		t.Fatal("the agent has not begun anew within a minute")
	}
	end()
	if err := <-ended; err != nil {
		t.Errorf("the agent ended with %v", err)
	}
}
