package proxy_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"karmada.io/karmada/internal/servers/aggregated/proxy"
)

const onePod = `{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"web"}}]}`

// cost is the room that onePod takes: its text, and what an element takes beside it.
const cost = int64(len(onePod) + 256)

func says(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }
}

// head is an answer without its body.
type head struct {
	StatusCode int
	Header     http.Header
}

// listed asks all clusters for Pods and returns where the Pods are from.
func listed(t *testing.T, url string) (answer head, clusters string) {
	t.Helper()
	resp, err := http.DefaultClient.Do(request(t, "GET", url+"/everywhere/api/v1/namespaces/a/pods", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var pods corev1.PodList
	_ = json.Unmarshal(body, &pods)
	for _, pod := range pods.Items {
		clusters += pod.Annotations["resource.karmada.io/query-from-cluster"] + " "
	}
	return head{resp.StatusCode, resp.Header}, strings.TrimSpace(clusters)
}

func TestAnswersOfAllClustersAreBounded(t *testing.T) {
	tests := map[string]struct {
		room proxy.Room
		// m2 is what the second of three members answers.
		m2              string
		clusters, warns string
	}{
		"as much as they may":                             {proxy.Room{Request: 3 * cost}, onePod, "m1 m2 m3", ""},
		"a little more, though none of them alone has it": {proxy.Room{Request: 3*cost - 1}, onePod, "m1 m2", `\"m3\" is left out: the clusters together answer with more than`},
		"a member with too much costs itself only": {proxy.Room{Member: 3 * cost, Request: 5 * cost}, onePod + strings.Repeat(" ", 4*int(cost)), "m1 m3",
			`\"m2\" is left out: its answer takes more than 9`},
		"small elements take more than their text": {proxy.Room{Member: 3 * cost, Request: 9 * cost}, `{"kind":"PodList","items":[{},{},{},{}]}`, "m1 m3",
			`\"m2\" is left out: its answer takes more than 9`},
		"an object with too many fields": {proxy.Room{}, `{"kind":"PodList","items":[{"a":1` + strings.Repeat(`,"a":1`, 10_000) + `}]}`, "m1 m3",
			`more than 10000 fields`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f, _ := newFixture(t, says(onePod))
			f.add(t, "m2", says(test.m2))
			f.add(t, "m3", says(onePod))
			f.proxy.Provide(test.room, patience)
			resp, clusters := listed(t, f.front(t).URL)
			warned := strings.Join(resp.Header["Warning"], "\n")
			if clusters != test.clusters || !strings.Contains(warned, test.warns) || test.warns == "" && warned != "" {
				t.Errorf("Pods of %q, warnings %q", clusters, warned)
			}
			if !f.proxy.RoomLeft() {
				t.Error("room is held after the end of the request")
			}
		})
	}
}

func TestALookupTakesLittleRoom(t *testing.T) {
	f, _ := newFixture(t, holder("db"))
	f.add(t, "m2", says(strings.Repeat(" ", 1000)))
	f.proxy.Provide(proxy.Room{Lookup: 500}, patience)
	if got, want := do(t, request(t, "GET", f.front(t).URL+"/everywhere/api/v1/namespaces/a/pods/db", "")), (answer{200, "GET db  by alice"}); got != want {
		t.Errorf("got %v, want %v: the answer of m2 is larger than that of a lookup may be", got, want)
	}
}

func TestRequestsToAllClustersWaitForRoomAndThenSayWhenToTryAgain(t *testing.T) {
	held, release := make(chan struct{}), make(chan struct{})
	first := true
	// The first answer is held in the middle.
	f, _ := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, onePod)
		if first {
			first = false
			_ = http.NewResponseController(w).Flush()
			close(held)
			<-release
		}
	}))
	f.proxy.Provide(proxy.Room{All: 64 << 10}, patience)
	front := f.front(t)
	done := make(chan string)
	go func() {
		_, clusters := listed(t, front.URL)
		done <- clusters
	}()
	<-held
	resp, clusters := listed(t, front.URL)
	for clusters == "m1" {
		// The first request has not taken its room yet.
		resp, clusters = listed(t, front.URL)
	}
	if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" {
		t.Errorf("got %d, Retry-After %q", resp.StatusCode, resp.Header.Get("Retry-After"))
	}
	close(release)
	if clusters := <-done; clusters != "m1" {
		t.Errorf("the request that has the room gets Pods of %q", clusters)
	}
	if resp, clusters := listed(t, front.URL); clusters != "m1" {
		t.Errorf("afterwards: %d with Pods of %q", resp.StatusCode, clusters)
	}
}

func TestOneMemberDoesNotTakeTheRoomOfAll(t *testing.T) {
	f, _ := newFixture(t, says(onePod))
	f.add(t, "m2", says(onePod+strings.Repeat(" ", 128<<10)))
	f.proxy.Provide(proxy.Room{PerMember: 64 << 10}, patience/10)
	resp, clusters := listed(t, f.front(t).URL)
	if warned := strings.Join(resp.Header["Warning"], "\n"); clusters != "m1" || !strings.Contains(warned, `\"m2\" is left out: its answers to other requests take 65536 bytes`) {
		t.Errorf("Pods of %q, warnings %q", clusters, warned)
	}
}

// TestAMemberThatDripsHoldsNoRequest has a member send a byte now and then, and so
// never be silent.
func TestAMemberThatDripsHoldsNoRequest(t *testing.T) {
	f, _ := newFixture(t, holder("db"))
	f.add(t, "m2", http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		drip := time.NewTicker(patience / 4)
		defer drip.Stop()
		for {
			select {
			case <-req.Context().Done():
				return
			case <-drip.C:
				fmt.Fprint(w, " ")
				_ = http.NewResponseController(w).Flush()
			}
		}
	}))
	f.proxy.HurryLookups(patience)
	front := f.front(t)
	resp, clusters := listed(t, front.URL)
	if warned := strings.Join(resp.Header["Warning"], "\n"); clusters != "m1" || !strings.Contains(warned, `\"m2\" (`+f.others[0].Spec.APIEndpoint+`) did not answer completely within 900ms`) {
		t.Errorf("a list: Pods of %q, warnings %q", clusters, warned)
	}
	if got, want := do(t, request(t, "GET", front.URL+"/everywhere/api/v1/namespaces/a/pods/db", "")), (answer{200, "GET db  by alice"}); got != want {
		t.Errorf("an object: got %v, want %v", got, want)
	}
}

func TestElementsAreCountedWithoutReadingThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.String(), 1, 20).Draw(t, "texts")
		array := make([]any, len(texts))
		object := map[string]any{}
		for i, text := range texts {
			array[i] = []any{text, map[string]any{text: texts}}
			object[text] = array[i]
		}
		for value, want := range map[any]int{&array: len(array), &object: len(object)} {
			text, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			if got := proxy.Width(text); got != want {
				t.Fatalf("%d in %s, want %d", got, text, want)
			}
		}
	})
}
