package search

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/servers/search/index"
	"karmada.io/karmada/internal/servers/search/objectcache"
	"karmada.io/karmada/internal/servers/search/objectcache/objectcachetest"
	"karmada.io/karmada/internal/servers/search/query"
)

// permissions allows everything except in the cluster north.
type permissions struct{}

func (permissions) Allowed(_ context.Context, _ user.Info, cluster, _ string, _ schema.GroupVersionResource, _, _ string) (bool, error) {
	return cluster != "north", nil
}

// lines is an output that is read line by line. It is safe for concurrent use.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// newServer serves queries with the handler of karmada-search, and returns the cache and a kubeconfig.
func newServer(t *testing.T) (*objectcachetest.Cache, string) {
	t.Helper()
	cache := objectcachetest.New(t, objectcachetest.Pods, objectcachetest.Nodes)
	handler := query.New(query.Options{Cache: cache.Cache, Searcher: index.NewMemory(cache.Cache), Permissions: permissions{}})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != queryPath {
			http.NotFound(w, r)
			return
		}
		handler.ServeQuery(w, r, &user.DefaultInfo{Name: "alice"})
	}))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(`{apiVersion: v1, kind: Config, current-context: karmada,
		clusters: [{name: karmada, cluster: {server: "`+server.URL+`"}}], contexts: [{name: karmada, context: {cluster: karmada}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return cache, kubeconfig
}

func newObject(kind objectcachetest.Kind, namespace, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind.GroupVersionKind)
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

// runSearch runs the command until it ends.
func runSearch(ctx context.Context, kubeconfig string, out, errOut *lines, args ...string) error {
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: errOut}
	cmd := New(&command.Program{Name: "karmadactl", IOStreams: streams, Kubeconfig: kubeconfig})
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	return cmd.ExecuteContext(ctx)
}

// TestSearchServer runs the command against the handler of karmada-search, so that both agree on the
// form of requests and answers.
func TestSearchServer(t *testing.T) {
	cache, kubeconfig := newServer(t)
	for _, name := range []string{"web-1", "web-2", "db"} {
		cache.Put("east", newObject(objectcachetest.Pods, "shop", name))
		cache.Put("west", newObject(objectcachetest.Pods, "yard", name))
		cache.Put("north", newObject(objectcachetest.Pods, "shop", name))
	}
	cache.Put("west", newObject(objectcachetest.Nodes, "", "web-node"))
	cache.SetState("west", objectcachetest.Pods, objectcache.Stale, "not ready")
	tests := map[string]struct {
		args       []string
		want       string
		wantStderr []string
	}{
		"names of all matches": {
			args:       []string{"name:web*", "-o", "name"},
			want:       "east/shop/Pod/web-1\neast/shop/Pod/web-2\nwest/-/Node/web-node\nwest/yard/Pod/web-1\nwest/yard/Pod/web-2\n",
			wantStderr: []string{`Warning: cluster "north"`, `Warning: cluster "west"`},
		},
		"a limit": {
			args: []string{"kind:Pod", "--limit", "3", "-o", "name"}, want: "east/shop/Pod/db\neast/shop/Pod/web-1\neast/shop/Pod/web-2\n",
			wantStderr: []string{"More objects match"},
		},
		"flags that restrict the query": {args: []string{"db", "-n", "shop", "-C", "ea*,west", "-o", "name"}, want: "east/shop/Pod/db\n"},
		"a table without matches":       {args: []string{"nothing"}, want: "", wantStderr: []string{"No objects found"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out, errOut lines
			if err := runSearch(t.Context(), kubeconfig, &out, &errOut, test.args...); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, out.String()); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
			for _, want := range test.wantStderr {
				if !strings.Contains(errOut.String(), want) {
					t.Errorf("%q is missing in %s", want, errOut.String())
				}
			}
		})
	}
}

func TestWatchServer(t *testing.T) {
	cache, kubeconfig := newServer(t)
	cache.Put("east", newObject(objectcachetest.Pods, "shop", "web"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, errOut lines
	done := make(chan error, 1)
	go func() { done <- runSearch(ctx, kubeconfig, &out, &errOut, "kind:Pod", "--watch") }()
	awaitLine := func(parts ...string) {
		t.Helper()
		deadline, ticker := time.After(30*time.Second), time.NewTicker(5*time.Millisecond)
		defer ticker.Stop()
		for {
			for line := range strings.Lines(out.String()) {
				if cmp.Equal(strings.Fields(line)[:min(len(parts), len(strings.Fields(line)))], parts) {
					return
				}
			}
			select {
			case err := <-done:
				t.Fatalf("the watch ended: %v", err)
			case <-deadline:
				t.Fatalf("no line %v in:\n%s%s", parts, out.String(), errOut.String())
			case <-ticker.C:
			}
		}
	}
	awaitLine("EVENT", "CLUSTER", "KIND", "NAMESPACE", "NAME", "AGE", "MATCHED")
	awaitLine("ADDED", "east", "Pod", "shop", "web")
	cache.Put("west", newObject(objectcachetest.Pods, "shop", "later"))
	awaitLine("ADDED", "west", "Pod", "shop", "later")
	cache.Delete("east", newObject(objectcachetest.Pods, "shop", "web"))
	awaitLine("DELETED", "east", "Pod", "shop", "web")
	cancel()
	if err := <-done; err != nil {
		t.Errorf("an interrupt ended the watch with %v", err)
	}
}
