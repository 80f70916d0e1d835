package index

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/blevesearch/bleve/v2"
	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"karmada.io/karmada/internal/domain/searchquery"
	"karmada.io/karmada/internal/servers/search/feed"
	"karmada.io/karmada/internal/servers/search/objectcache"
	"karmada.io/karmada/internal/servers/search/objectcache/objectcachetest"
)

func webPod(name, image string) map[string]any {
	return map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"app": name}},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "main", "image": image}}},
	}
}

// newCache returns a cache with Pods and Deployments in three clusters.
func newCache(t testing.TB) *objectcachetest.Cache {
	cache := objectcachetest.New(t, objectcachetest.Pods, objectcachetest.Deployments, objectcachetest.Nodes, objectcachetest.ConfigMaps)
	for _, cluster := range []string{"m2", "m1", "m10"} {
		for _, namespace := range []string{"shop", "blog"} {
			cache.Put(cluster,
				newObject(objectcachetest.Pods, namespace, "web", webPod("web", "docker.io/library/nginx:1.19")),
				newObject(objectcachetest.Pods, namespace, "api", webPod("api", "example.com/api:2")),
				newObject(objectcachetest.Deployments, namespace, "web", webPod("web", "docker.io/library/nginx:1.20")),
			)
		}
		cache.Put(cluster, newObject(objectcachetest.Nodes, "", "node-1", map[string]any{"status": map[string]any{"phase": "Running"}}))
	}
	cache.AddCluster("waiting", objectcachetest.Pods)
	return cache
}

func TestCandidates(t *testing.T) {
	cache := newCache(t)
	fullText := openIndex(t, t.TempDir(), cache.Cache)
	store(t, fullText, cache.Cache)
	tests := map[string]struct {
		query string
		after Cursor
		limit int
		want  []string
	}{
		"objects are ordered by cluster, namespace, name and kind": {query: `nginx cluster:m1*`, want: []string{
			"m1/blog/web/Deployment", "m1/blog/web/Pod", "m1/shop/web/Deployment", "m1/shop/web/Pod",
			"m10/blog/web/Deployment", "m10/blog/web/Pod", "m10/shop/web/Deployment", "m10/shop/web/Pod",
		}},
		"the search stops when the caller has enough": {query: `nginx`, limit: 2, want: []string{"m1/blog/web/Deployment", "m1/blog/web/Pod"}},
		"the search starts after a position": {
			query: `nginx cluster=m1`, want: []string{"m1/blog/web/Pod", "m1/shop/web/Deployment", "m1/shop/web/Pod"},
			after: Cursor{Cluster: "m1", Namespace: "blog", Name: "web", Kind: objectcachetest.Deployments.GroupVersionKind},
		},
		"the position need not exist": {
			query: `nginx`, want: []string{"m2/shop/web/Deployment", "m2/shop/web/Pod"},
			after: Cursor{Cluster: "m2", Namespace: "blog", Name: "x"},
		},
		"a query without words":       {query: `kind:Node`, want: []string{"m1//node-1/Node", "m10//node-1/Node", "m2//node-1/Node"}},
		"a namespace and a kind":      {query: `ns=shop kind=Pod image:api cluster!=m10`, want: []string{"m1/shop/api/Pod", "m2/shop/api/Pod"}},
		"a label":                     {query: `label.app=api ns:shop`, want: []string{"m1/shop/api/Pod", "m10/shop/api/Pod", "m2/shop/api/Pod"}},
		"a wildcard at the end":       {query: `ngin* kind:Pod ns=shop cluster=m2`, want: []string{"m2/shop/web/Pod"}},
		"a wildcard at the start":     {query: `*ginx kind:Pod ns=shop cluster=m2`, want: []string{"m2/shop/web/Pod"}},
		"a negation":                  {query: `kind:Pod -nginx cluster=m2`, want: []string{"m2/blog/api/Pod", "m2/shop/api/Pod"}},
		"alternatives with a phrase":  {query: `cluster=m2 ("1.20" OR phase=Running)`, want: []string{"m2//node-1/Node", "m2/blog/web/Deployment", "m2/shop/web/Deployment"}},
		"a word that no object has":   {query: `apache`},
		"a kind that is not cached":   {query: `kind:Secret`},
		"a pattern that has no match": {query: `apach*`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.limit == 0 {
				test.limit = 1000
			}
			for name, searcher := range map[string]Searcher{"memory": NewMemory(cache.Cache), "full text": fullText} {
				if diff := cmp.Diff(test.want, verified(t.Context(), t, searcher, test.query, test.after, test.limit)); diff != "" {
					t.Errorf("%s: %s", name, diff)
				}
			}
		})
	}
}

func TestFullTextReadsOnlyObjectsWithTheWords(t *testing.T) {
	cache := newCache(t)
	fullText := openIndex(t, t.TempDir(), cache.Cache)
	store(t, fullText, cache.Cache)
	q, err := searchquery.Parse("api example")
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	if err := fullText.Candidates(t.Context(), q, Cursor{}, func(*objectcache.Object) bool { read++; return true }); err != nil {
		t.Fatal(err)
	}
	if read != 6 {
		t.Errorf("the search reads %d objects, want the 6 Pods with the words", read)
	}
}

func TestObjectsOverALimitAreFound(t *testing.T) {
	cache := objectcachetest.New(t, objectcachetest.ConfigMaps)
	var many strings.Builder
	for i := range maxWords + 100 {
		fmt.Fprintf(&many, "word%d ", i)
	}
	long := strings.Repeat("x", 3*maxWordBytes)
	cache.Put("m1",
		newObject(objectcachetest.ConfigMaps, "a", "many", map[string]any{"data": map[string]any{"a": many.String(), "z": "lastword"}}),
		newObject(objectcachetest.ConfigMaps, "a", "long", map[string]any{"data": map[string]any{"a": long + "end"}}),
		newObject(objectcachetest.ConfigMaps, "a", "small", nil),
		newObject(objectcachetest.ConfigMaps, "a", "fact", map[string]any{"status": map[string]any{"phase": strings.Repeat("p ", 200)}}),
	)
	fullText := openIndex(t, t.TempDir(), cache.Cache)
	store(t, fullText, cache.Cache)
	tests := map[string]struct {
		query string
		want  []string
	}{
		"a word over the limit of words":       {"lastword word8200", []string{"m1/a/many/ConfigMap"}},
		"a word that is too long":              {long + "end", []string{"m1/a/long/ConfigMap"}},
		"a fact that is too long":              {"phase:p", []string{"m1/a/fact/ConfigMap"}},
		"a fact that is too long is excluded":  {"phase!=x name:fact", []string{"m1/a/fact/ConfigMap"}},
		"another word with the same start":     {long + "other", nil},
		"a pattern for the end of a long word": {"*xend", []string{"m1/a/long/ConfigMap"}},
		"a pattern that matches many words":    {"wor*", []string{"m1/a/many/ConfigMap"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, verified(t.Context(), t, fullText, test.query, Cursor{}, 10)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPatternsWithManyWildcardsNeedLittleTime(t *testing.T) {
	cache := newCache(t)
	fullText := openIndex(t, t.TempDir(), cache.Cache)
	store(t, fullText, cache.Cache)
	tests := map[string]struct {
		query string
		want  int
	}{
		"many wildcards between letters": {"*" + strings.Repeat("a*", 500), 0},
		"many wildcards in a row":        {strings.Repeat("*", 1000) + "ginx", 12},
		"letters that are no ASCII":      {"*a" + strings.Repeat("é*", 300), 0},
		"many patterns":                  {strings.Repeat("*n*g*"+strings.Repeat("c", 50)+" ", 20), 0},
		"a wildcard in the middle":       {"n*x", 12},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			// A regular expression would need minutes, or fail.
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if got := verified(ctx, t, fullText, test.query, Cursor{}, 100); len(got) != test.want {
				t.Errorf("the search finds %d objects, want %d", len(got), test.want)
			}
		})
	}
}

func TestSinkStoresAndRemovesObjects(t *testing.T) {
	cache := newCache(t)
	directory := t.TempDir()
	fullText := openIndex(t, directory, cache.Cache)
	store(t, fullText, cache.Cache)
	source := *cache.KindOf(objectcachetest.Nodes.GroupVersionKind).Snapshot().Cluster("m1").Source()
	stored := func() map[string]string {
		found := map[string]string{}
		err := fullText.Stored(t.Context(), source, func(id feed.ID, version string) error { found[id.Cluster+"/"+string(id.UID)] = version; return nil })
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	node := cache.KindOf(objectcachetest.Nodes.GroupVersionKind).Snapshot().Cluster("m1").Get("", "node-1")
	if diff := cmp.Diff(map[string]string{"m1/m1-Node--node-1": node.ResourceVersion()}, stored()); diff != "" {
		t.Error(diff)
	}
	cache.Put("m1", newObject(objectcachetest.Nodes, "", "node-1", map[string]any{"spec": map[string]any{"podCIDR": "changed"}}))
	store(t, fullText, cache.Cache)
	if got := verified(t.Context(), t, fullText, "changed", Cursor{}, 10); len(got) != 1 {
		t.Errorf("a changed object is found %d times by its new word", len(got))
	}
	sources, err := fullText.Sources(t.Context())
	if err != nil || len(sources) != 9 {
		t.Errorf("%d sources, error %v, want 9: Pods, Deployments and Nodes of 3 clusters", len(sources), err)
	}
	if err := fullText.Apply(t.Context(), []feed.Change{{ID: feed.IDOf(node), Source: source}}); err != nil {
		t.Fatal(err)
	}
	if got := stored(); len(got) != 0 {
		t.Errorf("after the removal, the index has %v", got)
	}
	if sources, err = fullText.Sources(t.Context()); err != nil || len(sources) != 8 {
		t.Errorf("after the removal, there are %d sources, error %v, want 8", len(sources), err)
	}
}

func TestSourcesThatAreNotInTheIndexAreReadFromTheCache(t *testing.T) {
	cache := newCache(t)
	fullText := openIndex(t, t.TempDir(), cache.Cache)
	fullText.SetProgress(progressOf{isEmpty: true})
	if got := verified(t.Context(), t, fullText, "nginx", Cursor{}, 100); len(got) != 12 {
		t.Errorf("an empty index finds %d of 12 objects", len(got))
	}
	store(t, fullText, cache.Cache)
	// A cluster joins, and its few objects are not in the index yet.
	for _, cluster := range []string{"m11", "a", "z"} {
		fullText.SetProgress(progressOf{missing: cluster})
		cache.Put(cluster, newObject(objectcachetest.Pods, "shop", "web", webPod("web", "nginx")), newObject(objectcachetest.Pods, "shop", "api", webPod("api", "nginx")))
		for _, limit := range []int{1, 3, 5, 10, 13, 100} {
			for _, after := range []Cursor{{}, {Cluster: "m10", Namespace: "shop"}, {Cluster: cluster, Namespace: "shop", Name: "b"}} {
				want := verified(t.Context(), t, NewMemory(cache.Cache), "nginx", after, limit)
				if diff := cmp.Diff(want, verified(t.Context(), t, fullText, "nginx", after, limit)); diff != "" {
					t.Errorf("%s, limit %d, after %v: %s", cluster, limit, after, diff)
				}
			}
		}
		store(t, fullText, cache.Cache)
	}
}

func TestSourcesOfAKindThatIsServedInAnotherWayAreFound(t *testing.T) {
	cache := newCache(t)
	fullText := openIndex(t, t.TempDir(), cache.Cache)
	store(t, fullText, cache.Cache)
	source := objectcache.Source{Cluster: "m1", Kind: objectcachetest.Nodes.GroupVersionKind, Resource: "machines", Namespaced: true}
	stored := 0
	if err := fullText.Stored(t.Context(), source, func(feed.ID, string) error { stored++; return nil }); err != nil {
		t.Fatal(err)
	}
	if stored != 1 {
		t.Errorf("the index has %d objects of the kind, want 1", stored)
	}
}

func TestReopenedIndexHasItsObjects(t *testing.T) {
	cache := newCache(t)
	directory := t.TempDir()
	first, err := Open(Options{Directory: directory, Cache: cache.Cache, Logger: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	store(t, first, cache.Cache)
	if _, err := Open(Options{Directory: directory, Cache: cache.Cache, Logger: logr.Discard()}); err == nil || !strings.Contains(err.Error(), "used by another process") {
		t.Errorf("a second process opens the index: error %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	node := cache.KindOf(objectcachetest.Nodes.GroupVersionKind).Snapshot().Cluster("m1").Get("", "node-1")
	if err := first.Apply(t.Context(), []feed.Change{{ID: feed.IDOf(node), Source: *node.Source(), Object: node}}); !errors.Is(err, bleve.ErrorIndexClosed) {
		t.Errorf("a closed index returns %v", err)
	}
	second := openIndex(t, directory, cache.Cache)
	if sources, err := second.Sources(t.Context()); err != nil || len(sources) != 9 {
		t.Errorf("a reopened index has %d sources, error %v", len(sources), err)
	}
}

func TestUnusableIndexIsRebuilt(t *testing.T) {
	tests := map[string]func(t *testing.T, directory string){
		"a segment is cut": func(t *testing.T, directory string) {
			change(t, directory, "store/*.zap", func(b []byte) []byte { return b[:len(b)/2] })
		},
		"a segment is empty": func(t *testing.T, directory string) {
			change(t, directory, "store/*.zap", func([]byte) []byte { return nil })
		},
		"the list of segments is cut": func(t *testing.T, directory string) {
			change(t, directory, "store/root.bolt", func(b []byte) []byte { return b[:100] })
		},
		"half of the list of segments is missing": func(t *testing.T, directory string) {
			change(t, directory, "store/root.bolt", func(b []byte) []byte { return b[:len(b)/2] })
		},
		"the list of segments has only its first pages": func(t *testing.T, directory string) {
			change(t, directory, "store/root.bolt", func(b []byte) []byte { return b[:2*4096] })
		},
		"the list of segments is missing": func(t *testing.T, directory string) {
			if err := os.Remove(filepath.Join(directory, "store", "root.bolt")); err != nil {
				t.Fatal(err)
			}
		},
		"the list of segments is text": func(t *testing.T, directory string) {
			change(t, directory, "store/root.bolt", func([]byte) []byte { return []byte(strings.Repeat("x", 8192)) })
		},
		"the last process did not close it": func(t *testing.T, directory string) {
			if err := os.Rename(directory, filepath.Join(filepath.Dir(directory), openName)); err != nil {
				t.Fatal(err)
			}
		},
		"another release wrote it": func(t *testing.T, directory string) {
			if err := os.Rename(directory, filepath.Join(filepath.Dir(directory), "index-9999")); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, damage := range tests {
		t.Run(name, func(t *testing.T) {
			cache, directory := newCache(t), t.TempDir()
			first, err := Open(Options{Directory: directory, Cache: cache.Cache, Logger: logr.Discard()})
			if err != nil {
				t.Fatal(err)
			}
			store(t, first, cache.Cache)
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			damage(t, filepath.Join(directory, closedName))
			var lines []string
			second, err := Open(Options{Directory: directory, Cache: cache.Cache, Logger: funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})})
			if err != nil {
				t.Fatal(err)
			}
			defer second.Close()
			second.SetProgress(progressOf{})
			// bleve itself ignores a damaged segment, so the index is then empty.
			if !strings.HasPrefix(name, "a segment") && (len(lines) != 1 || !strings.Contains(lines[0], "Deleting a full-text index")) {
				t.Errorf("log lines: %q, want one", lines)
			}
			if sources, err := second.Sources(t.Context()); err != nil || len(sources) != 0 {
				t.Errorf("the new index has %d sources, error %v", len(sources), err)
			}
			store(t, second, cache.Cache)
			if got := verified(t.Context(), t, second, "nginx", Cursor{}, 100); len(got) != 12 {
				t.Errorf("the new index finds %d of 12 objects", len(got))
			}
		})
	}
}

func change(t *testing.T, directory, pattern string, edit func([]byte) []byte) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(directory, pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("no file %s in %s: %v", pattern, directory, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, edit(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCandidatesEndWithTheirContext(t *testing.T) {
	cache := newCache(t)
	fullText := openIndex(t, t.TempDir(), cache.Cache)
	store(t, fullText, cache.Cache)
	q, err := searchquery.Parse("nginx")
	if err != nil {
		t.Fatal(err)
	}
	for name, searcher := range map[string]Searcher{"memory": NewMemory(cache.Cache), "full text": fullText} {
		ctx, cancel := context.WithCancel(t.Context())
		err := searcher.Candidates(ctx, q, Cursor{}, func(*objectcache.Object) bool { cancel(); return true })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s returns %v", name, err)
		}
	}
}

// TestSearchersAgree compares both searchers' results for random queries and random objects.
func TestSearchersAgree(t *testing.T) {
	words := []string{"web", "nginx:1.19", "Running", "eu-west", "a.b", "x", "Ärger", "1", "true"}
	rapid.Check(t, func(rt *rapid.T) {
		cache := objectcachetest.New(t, objectcachetest.Pods, objectcachetest.Deployments, objectcachetest.ConfigMaps)
		word := rapid.SampledFrom(words)
		for i := range rapid.IntRange(1, 25).Draw(rt, "objects") {
			kind := rapid.SampledFrom([]objectcachetest.Kind{objectcachetest.Pods, objectcachetest.Deployments, objectcachetest.ConfigMaps}).Draw(rt, "kind")
			cache.Put(rapid.SampledFrom([]string{"eu-1", "eu-2", "us-1"}).Draw(rt, "cluster"),
				newObject(kind, rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "namespace"), fmt.Sprintf("web-%d", i%7), map[string]any{
					"metadata": map[string]any{"labels": map[string]any{"app": word.Draw(rt, "label")}},
					"spec":     map[string]any{"containers": []any{map[string]any{"image": word.Draw(rt, "image") + " " + word.Draw(rt, "more")}}},
					"status":   map[string]any{"phase": word.Draw(rt, "phase")},
					"data":     map[string]any{word.Draw(rt, "key"): word.Draw(rt, "value")},
				}))
		}
		fullText := openIndex(t, t.TempDir(), cache.Cache)
		store(t, fullText, cache.Cache)
		for range 5 {
			query := drawQuery(rt, 2)
			want := verified(t.Context(), t, NewMemory(cache.Cache), query, Cursor{}, 1000)
			if diff := cmp.Diff(want, verified(t.Context(), t, fullText, query, Cursor{}, 1000)); diff != "" {
				rt.Fatalf("%s: %s", query, diff)
			}
		}
	})
}

func drawQuery(t *rapid.T, depth int) string {
	if depth > 0 {
		left, right := drawQuery(t, depth-1), drawQuery(t, depth-1)
		return rapid.SampledFrom([]string{"(" + left + ") " + right, left + " OR " + right, "-(" + left + ")", left}).Draw(t, "node")
	}
	return rapid.SampledFrom([]string{
		`web`, `nginx`, `"nginx:1.19"`, `ngi*`, `*inx`, `ärger`, `kind:Pod`, `kind!=ConfigMap`, `cluster:eu-*`, `ns=a`, `name:web-3`, `name=web-1`,
		`label.app`, `label.app=web`, `label.app:eu*`, `image:nginx`, `phase=Running`, `phase!=x`, `phase!=Running`, `-phase:web`, `phase>0`, `status:true`, `status:*e*`, `age<1h`, `spec.containers.image:*1.19*`, `data.web:x`, `group:apps`, `*`,
	}).Draw(t, "term")
}
