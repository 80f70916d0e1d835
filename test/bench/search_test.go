package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"karmada.io/karmada/test/bench/podmember"
)

func TestSearchOptionsValidate(t *testing.T) {
	required := []string{"--search-command=true", "--search-server=https://127.0.0.1:1"}
	tests := map[string]struct {
		flags []string
		valid bool
	}{
		"the defaults":                       {nil, true},
		"smaller numbers that are divisible": {[]string{"--search-pods=1000", "--search-listed-pods=100", "--search-members=10"}, true},
		"no command":                         {[]string{"--search-command="}, false},
		"no members":                         {[]string{"--search-members=0"}, false},
		"no watches":                         {[]string{"--search-watches=0"}, false},
		"more Pods listed than there are":    {[]string{"--search-pods=100", "--search-listed-pods=200"}, false},
		"namespaces of different sizes":      {[]string{"--search-pods=100000", "--search-listed-pods=30000"}, false},
		"a namespace that the members do not share evenly": {[]string{"--search-members=30"}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := defaultSearchOptions()
			flags := pflag.NewFlagSet("bench", pflag.ContinueOnError)
			o.addFlags(flags)
			if err := flags.Parse(append(required, test.flags...)); err != nil {
				t.Fatal(err)
			}
			if err := o.validate(); (err == nil) != test.valid {
				t.Errorf("validate() = %v, want valid: %t", err, test.valid)
			}
		})
	}
}

func TestRarePods(t *testing.T) {
	tests := map[string]struct{ pods, want int }{
		"the first Pod has the word": {1, 1},
		"all Pods before the second": {podmember.RareInterval, 1},
		"the second":                 {podmember.RareInterval + 1, 2},
		"the default":                {100_000, 4},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := rarePods(test.pods); got != test.want {
				t.Errorf("rarePods(%d) = %d, want %d", test.pods, got, test.want)
			}
		})
	}
}

func TestMemorySamplerKeepsThePeak(t *testing.T) {
	status := func(resident, anonymous, file int) *fstest.MapFile {
		return &fstest.MapFile{Data: fmt.Appendf(nil, "Name:\tsearch\nVmRSS:\t%d kB\nRssAnon:\t  %d kB\nRssFile:\t %d kB\nRssShmem:\t0 kB\n", resident, anonymous, file)}
	}
	proc := fstest.MapFS{"7/status": status(30, 10, 20)}
	m := &memorySampler{proc: proc, pid: 7}
	m.sample()
	proc["7/status"] = status(50, 40, 10)
	m.sample()
	proc["7/status"] = status(35, 10, 25)
	options := cmp.AllowUnexported(memory{})
	if diff := cmp.Diff(memory{35 << 10, 10 << 10, 25 << 10}, m.now(), options); diff != "" {
		t.Errorf("now() (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(memory{50 << 10, 40 << 10, 10 << 10}, m.peak(), options); diff != "" {
		t.Errorf("peak() (-want +got):\n%s", diff)
	}
	m.restart()
	delete(proc, "7/status") // the process has ended
	if diff := cmp.Diff(memory{35 << 10, 10 << 10, 25 << 10}, m.now(), options); diff != "" {
		t.Errorf("now() after the end (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(m.now(), m.peak(), options); diff != "" {
		t.Errorf("peak() after restart (-want +got):\n%s", diff)
	}
}

func TestChangeNumber(t *testing.T) {
	tests := map[string]struct {
		event string
		want  int
		ok    bool
	}{
		"the event of a change":       {`{"type":"MODIFIED","object":{"metadata":{"annotations":{"` + podmember.ChangeAnnotation + `":"12","x":"y"}}}}`, 12, true},
		"a bookmark":                  {`{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"12"}}}`, 0, false},
		"an event that is cut":        {`{"type":"MODIFIED","object":{"metadata":{"annotations":{"` + podmember.ChangeAnnotation + `":"12`, 0, false},
		"an annotation of other text": {`{"` + podmember.ChangeAnnotation + `":"many"}`, 0, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got, ok := changeNumber([]byte(test.event)); got != test.want || ok != test.ok {
				t.Errorf("changeNumber() = %d, %t, want %d, %t", got, ok, test.want, test.ok)
			}
		})
	}
}

// startSearchServer returns a client of a server that responds with one handler.
func startSearchServer(t *testing.T, handler http.HandlerFunc) *searchClient {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	config := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // the server of this test
	return &searchClient{server: server.URL, tls: config, http: server.Client()}
}

func TestListPodsReadsAllPages(t *testing.T) {
	client := startSearchServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("limit") != "2" {
			http.Error(w, "no limit", http.StatusBadRequest)
			return
		}
		page := map[string]string{
			"":    `{"metadata":{"resourceVersion":"v1","continue":"two"},"items":[{"kind":"Pod"},{}]}`,
			"two": `{"metadata":{"resourceVersion":"v1"},"items":[{}]}`,
		}[r.URL.Query().Get("continue")]
		_, _ = io.WriteString(w, page)
	})
	query := url.Values{"limit": {"2"}}
	got, err := client.listPods(t.Context(), "team", query)
	if err != nil || got.count != 3 || got.version != "v1" || got.took <= 0 {
		t.Errorf("listPods() = %+v, %v", got, err)
	}
	if query.Has("continue") {
		t.Error("listPods changed the query of its caller")
	}
	if _, err := client.listPods(t.Context(), "team", nil); !errors.Is(err, errUnexpectedResponse) || !strings.Contains(err.Error(), "no limit") {
		t.Errorf("a failed list returned %v", err)
	}
}

func TestWarningIsAnError(t *testing.T) {
	client := startSearchServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Warning", `299 - "cluster \"m1\": its objects are omitted"`)
	})
	if _, err := client.get(t.Context(), "/", nil); !errors.Is(err, errUnexpectedResponse) || !strings.Contains(err.Error(), "omitted") {
		t.Errorf("get() = %v, want the warning", err)
	}
}

func TestReadMetricsAddsLabels(t *testing.T) {
	client := startSearchServer(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "# TYPE objects gauge\nobjects{cluster=\"a\"} 3\nobjects{cluster=\"b\"} 4\n# TYPE lag gauge\nlag 0.5\n")
	})
	got, err := client.metrics(t.Context(), "objects", "lag", "missing")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]float64{"objects": 7, "lag": 0.5}, got); diff != "" {
		t.Errorf("metrics() (-want +got):\n%s", diff)
	}
}

// TestEventsOfMembersReachWatches changes Pods of a member, and watches the member itself in place of
// karmada-search.
func TestEventsOfMembersReachWatches(t *testing.T) {
	member, err := podmember.Start(podmember.Options{Pods: 10, Namespaces: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer member.Close()
	client := startSearchServer(t, func(w http.ResponseWriter, r *http.Request) {
		request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, member.URL+"/api/v1/pods?"+r.URL.RawQuery, http.NoBody)
		if err != nil {
			return
		}
		response, err := member.Client().Do(request)
		if err != nil {
			return
		}
		defer response.Body.Close()
		_ = http.NewResponseController(w).Flush()
		buffer := make([]byte, 32<<10)
		for {
			n, err := response.Body.Read(buffer)
			if n > 0 {
				_, _ = w.Write(buffer[:n])
				_ = http.NewResponseController(w).Flush()
			}
			if err != nil {
				return
			}
		}
	})
	s := &searchRun{
		bench: &bench{}, options: searchOptions{members: 1, pods: 10}, members: []*podmember.Member{member}, client: client, version: "1000000",
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	open, err := s.openWatches(ctx, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer open.close()
	delays, err := s.delays(ctx, open, 3, 1, 5)
	if err != nil || len(delays) != 5 {
		t.Fatalf("delays() = %v, %v", delays, err)
	}
}
