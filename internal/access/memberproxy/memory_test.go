package memberproxy_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"karmada.io/karmada/internal/access/memberproxy"
)

const onePod = `{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"web"}}]}`

// onePodMemory is the memory that onePod needs.
const onePodMemory = int64(len(onePod))

func respondWith(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }
}

// responseHead is a response without its body.
type responseHead struct {
	StatusCode int
	Header     http.Header
}

// listPods lists all clusters' Pods, and returns the clusters to which the Pods belong.
func listPods(t *testing.T, url string) (resp responseHead, clusters string) {
	t.Helper()
	httpResponse, err := http.DefaultClient.Do(newRequest(t, "GET", url+"/everywhere/api/v1/namespaces/a/pods", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer httpResponse.Body.Close()
	body, err := io.ReadAll(httpResponse.Body)
	if err != nil {
		t.Fatal(err)
	}
	var pods corev1.PodList
	_ = json.Unmarshal(body, &pods)
	for _, pod := range pods.Items {
		clusters += pod.Annotations["resource.karmada.io/query-from-cluster"] + " "
	}
	return responseHead{httpResponse.StatusCode, httpResponse.Header}, strings.TrimSpace(clusters)
}

func TestMemoryLimitsOfLists(t *testing.T) {
	tests := map[string]struct {
		room memberproxy.MemoryLimits
		// m2 is the response of the second of three members.
		m2              string
		clusters, warns string
	}{
		"exactly the limit":                    {memberproxy.MemoryLimits{Request: 3 * onePodMemory}, onePod, "m1 m2 m3", ""},
		"more than the limit of all responses": {memberproxy.MemoryLimits{Request: 3*onePodMemory - 1}, onePod, "any two", `is omitted: the responses of all clusters exceed`},
		"more than the limit of a member omits this member only": {memberproxy.MemoryLimits{Member: 3 * onePodMemory, Request: 5 * onePodMemory}, onePod + strings.Repeat(" ", 4*int(onePodMemory)), "m1 m3",
			`\"m2\" is omitted: its response exceeds 2`},
		"a response that is no list omits this member only": {memberproxy.MemoryLimits{}, `{"kind":"PodList","items":[{},5]}`, "m1 m3", `\"m2\" is omitted: reading its list: `},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f, _ := newFixture(t, respondWith(onePod))
			f.addMember(t, "m2", respondWith(test.m2))
			f.addMember(t, "m3", respondWith(onePod))
			f.proxy.SetMemoryLimits(test.room, testTimeout)
			resp, clusters := listPods(t, f.front(t).URL)
			warned := strings.Join(resp.Header["Warning"], "\n")
			if test.clusters == "any two" && len(strings.Fields(clusters)) == 2 {
				clusters = test.clusters
			}
			if clusters != test.clusters || !strings.Contains(warned, test.warns) || test.warns == "" && warned != "" {
				t.Errorf("Pods of %q, warnings %q", clusters, warned)
			}
			if !f.proxy.IsAllMemoryFree() {
				t.Error("memory is reserved after the end of the request")
			}
		})
	}
}

func TestMemoryLimitOfLookups(t *testing.T) {
	f, _ := newFixture(t, podServer("db"))
	f.addMember(t, "m2", respondWith(strings.Repeat(" ", 1000)))
	f.proxy.SetMemoryLimits(memberproxy.MemoryLimits{Lookup: 500}, testTimeout)
	if got, want := sendRequest(t, newRequest(t, "GET", f.front(t).URL+"/everywhere/api/v1/namespaces/a/pods/db", "")), (clientResponse{200, "GET db  by alice"}); got != want {
		t.Errorf("got %v, want %v: the response of m2 exceeds the limit of a lookup", got, want)
	}
}

func TestMemoryExhaustedReturnsRetryAfter(t *testing.T) {
	held, release := make(chan struct{}), make(chan struct{})
	first := true
	// The first response blocks after a part of its body.
	f, _ := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, onePod)
		if first {
			first = false
			_ = http.NewResponseController(w).Flush()
			close(held)
			<-release
		}
	}))
	f.proxy.SetMemoryLimits(memberproxy.MemoryLimits{All: onePodMemory}, testTimeout)
	front := f.front(t)
	done := make(chan string)
	go func() {
		_, clusters := listPods(t, front.URL)
		done <- clusters
	}()
	<-held
	resp, clusters := listPods(t, front.URL)
	for clusters == "m1" {
		// Retry, because the first request has not reserved its memory yet.
		resp, clusters = listPods(t, front.URL)
	}
	if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" {
		t.Errorf("got %d, Retry-After %q", resp.StatusCode, resp.Header.Get("Retry-After"))
	}
	close(release)
	if clusters := <-done; clusters != "m1" {
		t.Errorf("the request with the memory gets Pods of %q", clusters)
	}
	if resp, clusters := listPods(t, front.URL); clusters != "m1" {
		t.Errorf("afterwards: %d with Pods of %q", resp.StatusCode, clusters)
	}
}

func TestMemoryLimitOfOneMember(t *testing.T) {
	f, _ := newFixture(t, respondWith(onePod))
	f.addMember(t, "m2", respondWith(onePod+strings.Repeat(" ", 128<<10)))
	f.proxy.SetMemoryLimits(memberproxy.MemoryLimits{PerMember: 64 << 10}, testTimeout/10)
	resp, clusters := listPods(t, f.front(t).URL)
	if warned := strings.Join(resp.Header["Warning"], "\n"); clusters != "m1" || !strings.Contains(warned, `\"m2\" is omitted: its responses to other requests take 65536 bytes`) {
		t.Errorf("Pods of %q, warnings %q", clusters, warned)
	}
}

// TestSlowMemberDoesNotBlockRequests uses a member that sends a byte from time to time, so that it
// never exceeds the idle timeout.
func TestSlowMemberDoesNotBlockRequests(t *testing.T) {
	f, _ := newFixture(t, podServer("db"))
	f.addMember(t, "m2", http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		ticker := time.NewTicker(testTimeout / 4)
		defer ticker.Stop()
		for {
			select {
			case <-req.Context().Done():
				return
			case <-ticker.C:
				fmt.Fprint(w, " ")
				_ = http.NewResponseController(w).Flush()
			}
		}
	}))
	f.proxy.SetLookupTimeout(testTimeout)
	front := f.front(t)
	resp, clusters := listPods(t, front.URL)
	if warned := strings.Join(resp.Header["Warning"], "\n"); clusters != "m1" || !strings.Contains(warned, `\"m2\" (`+f.others[0].Spec.APIEndpoint+`) did not respond completely within 900ms`) {
		t.Errorf("list: Pods of %q, warnings %q", clusters, warned)
	}
	if got, want := sendRequest(t, newRequest(t, "GET", front.URL+"/everywhere/api/v1/namespaces/a/pods/db", "")), (clientResponse{200, "GET db  by alice"}); got != want {
		t.Errorf("object: got %v, want %v", got, want)
	}
}
