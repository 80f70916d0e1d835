package search_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/client-go/rest"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/servers/search"
	"karmada.io/karmada/internal/testenv/testetcd"
)

// startEmptyControlPlane starts a server without Clusters and Secrets. Unlike an API server, it starts
// nothing on demand that a comparison of goroutines would find.
func startEmptyControlPlane(t *testing.T) *rest.Config {
	t.Helper()
	karmada := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		kind := "ClusterList"
		if strings.HasSuffix(req.URL.Path, "/secrets") {
			kind = "SecretList"
		}
		w.Header().Set("Content-Type", "application/json")
		query := req.URL.Query()
		switch {
		case query.Get("sendInitialEvents") == "true":
			http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`, http.StatusUnprocessableEntity)
		case query.Get("watch") == "true":
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush() // the client sees a connection that ends
			<-req.Context().Done()
		default:
			fmt.Fprintf(w, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"1"},"items":[]}`, kind, apiVersion(req.URL.Path))
		}
	}))
	t.Cleanup(karmada.Close)
	return &rest.Config{Host: karmada.URL}
}

func apiVersion(path string) string {
	if strings.HasPrefix(path, "/api/") {
		return "v1"
	}
	return clusterv1alpha1.GroupVersion.String()
}

func TestNothingOutlivesTheServer(t *testing.T) {
	storage := testetcd.Start(t)
	karmada := startEmptyControlPlane(t)
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	run := func() {
		server, err := search.New(t.Context(), newOptions(t, storage, karmada))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-server.Ready()
			cancel()
		}()
		if err := server.Run(ctx); err != nil {
			t.Error(err)
		}
	}
	// Run one server before the comparison, because the first server starts goroutines that
	// libraries share in a process.
	run()
	before := goleak.IgnoreCurrent()
	run()
	if indexes, err := filepath.Glob(filepath.Join(temporary, "karmada-search-*")); err != nil || len(indexes) > 0 {
		t.Errorf("the temporary directories of the index remain: %v, %v", indexes, err)
	}
	// A goroutine that waits for a list ends by its own timer some seconds later. How long all of
	// these goroutines take depends on the machine.
	ticker, limit := time.NewTicker(100*time.Millisecond), time.After(maxWait)
	defer ticker.Stop()
	for leaks := goleak.Find(before); leaks != nil; leaks = goleak.Find(before) {
		select {
		case <-ticker.C:
		case <-limit:
			t.Fatalf("after %s: %v", maxWait, leaks)
		}
	}
}
