package proxying_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"pgregory.net/rapid"

	"karmada.io/karmada/internal/domain/combinedversion"
	"karmada.io/karmada/internal/servers/search/objectcache"
	"karmada.io/karmada/internal/servers/search/objectcache/objectcachetest"
	"karmada.io/karmada/internal/servers/search/proxying"
)

func TestList(t *testing.T) {
	tests := map[string]struct {
		path    string
		prepare func(*fixture)
		want    []string
		// wantWarning is a part of the warning. If it is empty, there must be no warning.
		wantWarning string
	}{
		"all clusters, in the order of their names": {path: "/api/v1/pods", want: []string{"m1:a/p1", "m1:b/p2", "m2:a/p3"}},
		"one namespace":                              {path: "/api/v1/namespaces/a/pods", want: []string{"m1:a/p1", "m2:a/p3"}},
		"a label selector":                           {path: "/api/v1/pods?labelSelector=app%3Dweb", want: []string{"m2:a/p3"}},
		"from the cache":                             {path: "/api/v1/pods?resourceVersion=0", want: []string{"m1:a/p1", "m1:b/p2", "m2:a/p3"}},
		"from the cache, as informers ask":           {path: "/api/v1/pods?resourceVersion=0&limit=1", want: []string{"m1:a/p1", "m1:b/p2", "m2:a/p3"}},
		"from the cache with a label selector":       {path: "/api/v1/pods?resourceVersion=0&labelSelector=app%3Dweb", want: []string{"m2:a/p3"}},
		"from the cache with a field selector":       {path: "/api/v1/pods?resourceVersion=0&fieldSelector=metadata.name%3Dp2", want: []string{"m1:b/p2"}},
		"from the cache with a field of the kind":    {path: "/api/v1/pods?resourceVersion=0&fieldSelector=spec.nodeName%3Dnode-of-p3", want: []string{"m2:a/p3"}},
		"from the cache in one namespace":            {path: "/api/v1/namespaces/b/pods?resourceVersion=0", want: []string{"m1:b/p2"}},
		"registries restrict a cluster to namespace": {path: "/api/v1/pods", prepare: restrict("m1", "b"), want: []string{"m1:b/p2", "m2:a/p3"}},
		"registries restrict a cluster to several namespaces": {
			path: "/api/v1/pods", prepare: restrict("m1", "b", "c"), want: []string{"m1:b/p2", "m2:a/p3"},
		},
		"a cluster is left out of other namespaces": {path: "/api/v1/namespaces/a/pods", prepare: restrict("m1", "b"), want: []string{"m2:a/p3"}},
		"restrictions hold for the cache": {
			path: "/api/v1/pods?resourceVersion=0", prepare: restrict("m1", "b", "c"), want: []string{"m1:b/p2", "m2:a/p3"},
		},
		"a cluster that fails is named in a warning": {
			path: "/api/v1/pods", prepare: func(f *fixture) { f.members["m1"].err = errors.New("no route to host") },
			want: []string{"m2:a/p3"}, wantWarning: `cluster \"m1\": its objects are omitted: no route to host`,
		},
		"a cluster that denies the list is named in a warning": {
			path: "/api/v1/pods", prepare: func(f *fixture) { f.members["m2"].code = http.StatusForbidden },
			want: []string{"m1:a/p1", "m1:b/p2"}, wantWarning: `cluster \"m2\": its objects are omitted: of the member`,
		},
		"a cluster that returns no list is named in a warning": {
			path: "/api/v1/pods", prepare: func(f *fixture) { f.members["m2"].raw = `{"kind":"PodList","items":[{]}` },
			want: []string{"m1:a/p1", "m1:b/p2"}, wantWarning: "no JSON",
		},
		"an object with a field that occurs twice is not forwarded": {
			path: "/api/v1/pods", prepare: func(f *fixture) {
				f.members["m2"].raw = `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[{"metadata":{},"metadata":{"name":"x"}}]}`
			},
			want: []string{"m1:a/p1", "m1:b/p2"}, wantWarning: "occurs twice",
		},
		"a caller without permissions in a cluster does not see its cached objects": {
			path: "/api/v1/pods?resourceVersion=0", prepare: func(f *fixture) { f.denied["alice list pods m1"] = true },
			want: []string{"m2:a/p3"}, wantWarning: `user \"alice\" cannot list resource \"pods\"`,
		},
		"unknown permissions are no permissions": {
			path: "/api/v1/pods?resourceVersion=0", prepare: func(f *fixture) { f.broken["m1"] = true },
			want: []string{"m2:a/p3"}, wantWarning: "no answer",
		},
		"outdated objects come with a warning": {
			path: "/api/v1/pods?resourceVersion=0",
			prepare: func(f *fixture) {
				f.SetState("m1", objectcachetest.Pods, objectcache.Stale, "the cluster is not ready")
			},
			want: []string{"m1:a/p1", "m1:b/p2", "m2:a/p3"}, wantWarning: "its objects are as of",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, "m1", "m2")
			f.put("m2", pod("a", "p3", "app", "web"))
			f.put("m1", pod("b", "p2"), pod("a", "p1"))
			if test.prepare != nil {
				test.prepare(f)
			}
			r := f.send(test.path)
			list := r.list(t)
			if diff := cmp.Diff(test.want, names(list)); diff != "" {
				t.Error(diff)
			}
			if list.GetKind() != "PodList" || list.GetAPIVersion() != "v1" {
				t.Errorf("the list is a %s %s", list.GetAPIVersion(), list.GetKind())
			}
			for _, item := range list.Items {
				if combinedversion.IsCombined(item.GetResourceVersion()) {
					t.Errorf("item %s has a combined version", item.GetName())
				}
			}
			warning := strings.Join(r.Header().Values("Warning"), "\n")
			if (test.wantWarning == "") != (warning == "") || !strings.Contains(warning, test.wantWarning) {
				t.Errorf("warnings %q, want %q", warning, test.wantWarning)
			}
		})
	}
}

func restrict(cluster string, namespaces ...string) func(*fixture) {
	return func(f *fixture) { f.AddCluster(cluster, objectcachetest.Pods, namespaces...) }
}

func TestListVersions(t *testing.T) {
	f := newFixture(t, "m1", "m2")
	f.put("m1", pod("a", "p1"))
	f.put("m2", pod("a", "p2"), pod("a", "p3"))
	list := f.send("/api/v1/pods").list(t)
	if want := combinedversion.New(map[string]string{"m1": "101", "m2": "102"}).String(); list.GetResourceVersion() != want {
		t.Errorf("version %s, want %s", list.GetResourceVersion(), want)
	}
	f.send("/api/v1/pods?resourceVersionMatch=Exact&resourceVersion=" + list.GetResourceVersion()).list(t)
	queries := f.members["m2"].queries
	if got := queries[len(queries)-1]; !strings.Contains(got, "resourceVersion=102") || !strings.Contains(got, "resourceVersionMatch=Exact") {
		t.Errorf("m2 is asked %s", got)
	}
}

func TestListErrors(t *testing.T) {
	tests := map[string]struct {
		path    string
		prepare func(*fixture)
		change  func(*http.Request)
		want    func(error) bool
		message string
	}{
		"a malformed selector":                {path: "/api/v1/pods?labelSelector=%3D%3D", want: apierrors.IsBadRequest, message: "found '=='"},
		"an unknown field":                    {path: "/api/v1/pods?resourceVersion=0&fieldSelector=spec.color%3Dred", want: apierrors.IsBadRequest, message: "field label not supported: spec.color"},
		"a token of another list":             {path: "/api/v1/pods?limit=1&continue=abc", want: apierrors.IsBadRequest, message: "list again without it"},
		"a match without a version":           {path: "/api/v1/pods?resourceVersionMatch=Exact", want: apierrors.IsInvalid, message: "resourceVersionMatch"},
		"only protobuf is accepted":           {path: "/api/v1/pods", change: accept("application/vnd.kubernetes.protobuf"), want: apierrors.IsNotAcceptable, message: "application/json"},
		"all clusters fail":                   {path: "/api/v1/pods", prepare: failAll, want: apierrors.IsServiceUnavailable, message: "no route"},
		"all clusters deny the list":          {path: "/api/v1/pods", prepare: denyAll, want: apierrors.IsForbidden, message: "of the member"},
		"all clusters deny the cached list":   {path: "/api/v1/pods?resourceVersion=0", prepare: denyAll, want: apierrors.IsForbidden, message: `"alice" cannot list`},
		"one cluster fails in strict mode":    {path: "/api/v1/pods", prepare: failOne, change: strict, want: apierrors.IsServiceUnavailable, message: `cluster "m1"`},
		"an expired version in one cluster":   {path: "/api/v1/pods", prepare: func(f *fixture) { f.members["m1"].code = http.StatusGone }, want: apierrors.IsResourceExpired, message: "m1"},
		"outdated objects in strict mode":     {path: "/api/v1/pods?resourceVersion=0", prepare: makeStale, change: strict, want: apierrors.IsServiceUnavailable, message: "as of"},
		"a response beyond the limit":         {path: "/api/v1/pods", prepare: limitBytes, want: apierrors.IsServiceUnavailable, message: "exceeds 10 bytes"},
		"YAML beyond the limit of the server": {path: "/api/v1/pods", prepare: manyPods, change: accept("application/yaml"), want: apierrors.IsServiceUnavailable, message: "limit for YAML"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, "m1", "m2")
			f.put("m1", pod("a", "p1"))
			f.put("m2", pod("a", "p2"))
			if test.prepare != nil {
				test.prepare(f)
			}
			var changes []func(*http.Request)
			if test.change != nil {
				changes = append(changes, test.change)
			}
			r := f.send(test.path, changes...)
			if r.err == nil || !test.want(r.err) || !strings.Contains(r.err.Error(), test.message) {
				t.Errorf("error %v, want %q", r.err, test.message)
			}
			if r.Body.Len() > 0 {
				t.Errorf("the response has the body %s", r.Body)
			}
		})
	}
}

func failAll(f *fixture) {
	for _, member := range f.members {
		member.err = errors.New("no route")
	}
}

func denyAll(f *fixture) {
	for cluster, member := range f.members {
		member.code = http.StatusForbidden
		f.denied["alice list pods "+cluster] = true
	}
}

func failOne(f *fixture) { f.members["m1"].err = errors.New("no route") }

func makeStale(f *fixture) {
	f.SetState("m1", objectcachetest.Pods, objectcache.Stale, "the cluster is not ready")
}

func limitBytes(f *fixture) { f.configure(proxying.Limits{PageBytes: 10}) }

func manyPods(f *fixture) {
	for i := range 30 {
		f.put("m1", pod("a", fmt.Sprintf("many-%d", i)))
		f.put("m2", pod("a", fmt.Sprintf("many-%d", i)))
	}
	f.configure(proxying.Limits{PageBytes: 9000})
}

func TestHangingClusterDoesNotDelayTheOthers(t *testing.T) {
	f := newFixture(t, "m1", "m2", "m3")
	f.put("m1", pod("a", "p1"))
	f.put("m2", pod("a", "p2"))
	f.put("m3", pod("a", "p3"))
	f.members["m2"].hangs = true
	f.configure(proxying.Limits{Page: 50 * time.Millisecond})
	for _, path := range []string{"/api/v1/pods", "/api/v1/pods?limit=10"} {
		r := f.send(path)
		if diff := cmp.Diff([]string{"m1:a/p1", "m3:a/p3"}, names(r.list(t))); diff != "" {
			t.Error(diff)
		}
		if warning := r.Header().Get("Warning"); !strings.Contains(warning, "m2") {
			t.Errorf("warning %q", warning)
		}
	}
}

// TestSuspectsGetLessTime checks how long a cluster may take if it recently did not respond, or is not
// ready.
func TestSuspectsGetLessTime(t *testing.T) {
	f := newFixture(t, "m1", "m2")
	f.put("m1", pod("a", "p1"))
	f.put("m2", pod("a", "p2"))
	f.configure(proxying.Limits{Idle: time.Minute, Suspect: time.Second})
	idle := func(change ...func(*http.Request)) time.Duration {
		f.send("/api/v1/pods", change...)
		return f.members["m1"].idle
	}
	if got := idle(); got != time.Minute {
		t.Errorf("a healthy cluster gets %s", got)
	}
	f.members["m1"].err = errors.New("no route")
	if got := idle(); got != time.Minute {
		t.Errorf("the first failure comes after %s", got)
	}
	if got := idle(); got != time.Second {
		t.Errorf("a suspect gets %s", got)
	}
	if got := idle(strict); got != time.Minute {
		t.Errorf("in strict mode, a suspect gets %s", got)
	}
	f.members["m1"].err = nil
	idle()
	if got := idle(); got != time.Minute {
		t.Errorf("a cluster that answered gets %s", got)
	}
	makeStale(f)
	if got := idle(); got != time.Second {
		t.Errorf("a cluster that is not ready gets %s", got)
	}
}

// TestBrokenListIsNoShortList checks that a list that a member interrupts after the header was sent
// does not end like a complete list.
func TestBrokenListIsNoShortList(t *testing.T) {
	f := newFixture(t, "m1")
	for i := range 200 {
		f.put("m1", pod("a", fmt.Sprintf("p%03d", i)))
	}
	f.members["m1"].failAfter = 2
	f.configure(proxying.Limits{PageObjects: 50, HeldBytes: 100})
	defer func() {
		if got := recover(); got != http.ErrAbortHandler { //nolint:errorlint // the value is compared by net/http
			t.Errorf("recovered %v, want an aborted response", got)
		}
	}()
	r := f.send("/api/v1/pods")
	t.Errorf("the response ends with %q", r.Body.String()[max(0, r.Body.Len()-50):])
}

func TestBrokenListIsAnErrorBeforeTheHeader(t *testing.T) {
	f := newFixture(t, "m1")
	for i := range 200 {
		f.put("m1", pod("a", fmt.Sprintf("p%03d", i)))
	}
	f.members["m1"].failAfter = 2
	f.configure(proxying.Limits{PageObjects: 50})
	if r := f.send("/api/v1/pods"); r.err == nil || r.Body.Len() > 0 {
		t.Errorf("error %v, body %s", r.err, r.Body)
	}
}

// TestTooLargePagesAreReadInParts checks that large objects do not make a cluster unreadable.
func TestTooLargePagesAreReadInParts(t *testing.T) {
	f := newFixture(t, "m1")
	for i := range 40 {
		f.put("m1", pod("a", fmt.Sprintf("p%02d", i)))
	}
	f.configure(proxying.Limits{PageBytes: 2000})
	for _, path := range []string{"/api/v1/pods", "/api/v1/pods?limit=40"} {
		if got := f.send(path).list(t); len(got.Items) != 40 {
			t.Errorf("%s: %d objects", path, len(got.Items))
		}
	}
}

// TestLaterPageOfAFailedCluster checks that a client does not watch from the version of a cluster whose
// objects the client did not receive.
func TestLaterPageOfAFailedCluster(t *testing.T) {
	f := newFixture(t, "m1", "m2")
	f.put("m1", pod("a", "p1"))
	f.put("m2", pod("a", "p2"))
	first := f.send("/api/v1/pods?limit=1").list(t)
	f.members["m2"].err = errors.New("no route")
	if r := f.send("/api/v1/pods?limit=1&continue=" + first.GetContinue()); !apierrors.IsServiceUnavailable(r.err) {
		t.Errorf("error %v, body %s", r.err, r.Body)
	}
}

// TestUnlimitedListIsNotOlderThanItsVersion checks that dividing a list into pages does not change the
// meaning of its version.
func TestUnlimitedListIsNotOlderThanItsVersion(t *testing.T) {
	f := newFixture(t, "m1")
	f.put("m1", pod("a", "p1"))
	version := combinedversion.New(map[string]string{"m1": "50"}).String()
	for query, want := range map[string]bool{"": true, "&limit=5": false, "&resourceVersionMatch=Exact": false} {
		f.send("/api/v1/pods?resourceVersion=" + version + query)
		queries := f.members["m1"].queries
		if got := queries[len(queries)-1]; strings.Contains(got, "NotOlderThan") != want {
			t.Errorf("%q: m1 is asked %s", query, got)
		}
	}
}

// TestManyListsDoNotBlockEachOther checks that lists wait for each other if there are more than the
// limit permits.
func TestManyListsDoNotBlockEachOther(t *testing.T) {
	f := newFixture(t, "m1", "m2", "m3")
	for _, cluster := range []string{"m1", "m2", "m3"} {
		f.put(cluster, pod("a", "p-"+cluster))
	}
	f.configure(proxying.Limits{Lists: 1})
	var lists sync.WaitGroup
	for range 20 {
		lists.Go(func() {
			if r := f.send("/api/v1/pods"); r.err != nil {
				t.Error(r.err)
			}
		})
	}
	lists.Wait()
}

func TestTables(t *testing.T) {
	f := newFixture(t, "m1", "m2")
	f.put("m1", pod("a", "p1"))
	f.put("m2", pod("a", "p2"))
	for _, path := range []string{"/api/v1/pods?limit=500", "/api/v1/pods?resourceVersion=0"} {
		r := f.send(path, accept("application/json;as=Table;v=v1;g=meta.k8s.io,application/json"))
		var table struct {
			Kind              string
			ColumnDefinitions []struct{ Name string }
			Rows              []struct {
				Cells  []string
				Object struct {
					Metadata struct{ Annotations map[string]string }
				}
			}
			Metadata struct{ ResourceVersion string }
		}
		if r.err != nil {
			t.Fatal(r.err)
		}
		if err := json.Unmarshal(r.Body.Bytes(), &table); err != nil {
			t.Fatalf("%s: %v", r.Body, err)
		}
		if table.Kind != "Table" || len(table.ColumnDefinitions) != 2 || table.ColumnDefinitions[1].Name != "Cluster" {
			t.Errorf("got %s", r.Body)
		}
		var cells [][]string
		for _, row := range table.Rows {
			cells = append(cells, row.Cells)
			if got := row.Object.Metadata.Annotations["resource.karmada.io/cached-from-cluster"]; got != row.Cells[1] {
				t.Errorf("the annotation is %q", got)
			}
		}
		if diff := cmp.Diff([][]string{{"p1", "m1"}, {"p2", "m2"}}, cells); diff != "" {
			t.Error(diff)
		}
		if got := combinedversion.Parse(table.Metadata.ResourceVersion).For("m2"); got != "101" {
			t.Errorf("m2 has version %q", got)
		}
	}
}

// TestTablesWithOtherColumns checks that a cluster's cells are moved to the columns of the first
// cluster's table.
func TestTablesWithOtherColumns(t *testing.T) {
	f := newFixture(t, "m1", "m2")
	f.put("m1", pod("a", "p1"))
	f.put("m2", pod("a", "p2"))
	f.members["m2"].raw = `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{},"columnDefinitions":[{"name":"Phase"},{"name":"Name"}],"rows":[{"cells":["Running","p2"]}]}`
	r := f.send("/api/v1/pods", accept("application/json;as=Table;v=v1;g=meta.k8s.io"))
	if !strings.Contains(r.Body.String(), `["p2","m2"]`) {
		t.Errorf("error %v, body %s", r.err, r.Body)
	}
}

func TestOtherFormats(t *testing.T) {
	f := newFixture(t, "m1")
	f.put("m1", pod("a", "p1"))
	if got := f.send("/api/v1/pods", accept("application/yaml")).Body.String(); !strings.Contains(got, "kind: PodList") {
		t.Errorf("got %s", got)
	}
	partial := "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
	list := f.send("/api/v1/pods?resourceVersion=0", accept(partial)).list(t)
	if list.GetKind() != "PartialObjectMetadataList" || list.Items[0].GetKind() != "PartialObjectMetadata" || list.Items[0].Object["spec"] != nil {
		t.Errorf("got %v", list)
	}
}

func TestKindWithoutClusters(t *testing.T) {
	f := newFixture(t)
	for _, path := range []string{"/api/v1/pods", "/api/v1/pods?resourceVersion=0"} {
		list := f.send(path).list(t)
		if list.GetKind() != "List" || len(list.Items) != 0 || list.GetResourceVersion() != "e30" {
			t.Errorf("got %v", list)
		}
	}
}

// TestPages checks that any list's pages together are the whole list, even if a cluster leaves between
// two pages.
func TestPages(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		clusters := []string{"m1", "m2", "m3", "m4"}
		f := newFixture(t, clusters...)
		var want []string
		for _, cluster := range clusters {
			f.AddCluster(cluster, objectcachetest.Pods)
			for i := range rapid.IntRange(0, 5).Draw(rt, "objects of "+cluster) {
				name := fmt.Sprintf("p%d", i)
				f.put(cluster, pod("a", name))
				want = append(want, cluster+":a/"+name)
			}
		}
		leaves := rapid.SampledFrom(append([]string{""}, clusters...)).Draw(rt, "leaves")
		limit := rapid.IntRange(1, 7).Draw(rt, "limit")
		var got []string
		token, versions := "", map[string]bool{}
		for number := 0; ; number++ {
			list := f.send(fmt.Sprintf("/api/v1/pods?limit=%d&continue=%s", limit, token)).list(t)
			if len(list.Items) > limit {
				rt.Fatalf("a page has %d objects", len(list.Items))
			}
			got = append(got, names(list)...)
			versions[list.GetResourceVersion()] = true
			if token = list.GetContinue(); token == "" {
				break
			}
			if number == 0 && leaves != "" {
				f.RemoveCluster(leaves, objectcachetest.Pods)
			}
		}
		if leaves == "" {
			if diff := cmp.Diff(want, append([]string{}, got...)); diff != "" && len(want)+len(got) > 0 {
				rt.Fatal(diff)
			}
			if len(versions) != 1 {
				rt.Fatalf("the pages have the versions %v", versions)
			}
			return
		}
		remaining := func(all []string) []string {
			return slices.DeleteFunc(slices.Clone(all), func(name string) bool { return strings.HasPrefix(name, leaves+":") })
		}
		if diff := cmp.Diff(remaining(want), remaining(got)); diff != "" && len(remaining(want))+len(remaining(got)) > 0 {
			rt.Fatal(diff)
		}
	})
}

// TestClusterFailsAfterTheHeaderIsSent checks that a page does not silently end without a cluster's
// objects if the cluster fails too late for a warning.
func TestClusterFailsAfterTheHeaderIsSent(t *testing.T) {
	f := newFixture(t, "m1", "m2")
	f.put("m1", pod("a", "p1"))
	f.put("m2", pod("a", "p2"))
	f.members["m2"].err = errors.New("no route")
	f.configure(proxying.Limits{HeldBytes: 1})
	first := f.send("/api/v1/pods?limit=5")
	if got := names(first.list(t)); !cmp.Equal(got, []string{"m1:a/p1"}) || first.list(t).GetContinue() == "" {
		t.Errorf("the first page has %q and the token %q", got, first.list(t).GetContinue())
	}
	second := f.send("/api/v1/pods?limit=5&continue=" + first.list(t).GetContinue())
	if len(second.list(t).Items) != 0 || !strings.Contains(second.Header().Get("Warning"), "no route") {
		t.Errorf("the second page has %d objects and the warning %q", len(second.list(t).Items), second.Header().Get("Warning"))
	}
	if unlimited := f.send("/api/v1/pods"); !strings.Contains(unlimited.Header().Get("Warning"), "no route") {
		t.Errorf("without a limit, the warning is %q", unlimited.Header().Get("Warning"))
	}
}
