package hostiletest

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

// Mode is one way to do harm; the zero value does none.
type Mode struct {
	// attack reports whether it answered the request.
	attack func(m *Member, w http.ResponseWriter, r *http.Request) bool
}

// Honest does no harm.
func Honest() Mode { return Mode{} }

// HugeList answers each list with 100 MiB of marked objects, whatever the limit is.
func HugeList() Mode {
	return onLists(func(w io.Writer, kind string) {
		_, _ = io.WriteString(w, head(kind, ""))
		for i := range 100 {
			if !filled(w, object(kind, fmt.Sprintf("fat-%d", i), true, "FILLER")+",") {
				return
			}
		}
		_, _ = fmt.Fprintf(w, `%s]}`, object(kind, "last", true, ""))
	})
}

// filler is 1 MiB of text.
var filler = strings.Repeat("x", 1<<20)

// filled writes text with the filler in its place, in parts, so that the filler is in
// memory once. It reports whether the client still reads.
func filled(w io.Writer, text string) bool {
	start, end, found := strings.Cut(text, "FILLER")
	if !found {
		_, err := io.WriteString(w, text)
		return err == nil
	}
	for _, part := range []string{start, filler, end} {
		if _, err := io.WriteString(w, part); err != nil {
			return false
		}
	}
	return true
}

// EndlessList answers each list with one that does not end.
func EndlessList() Mode {
	return onLists(func(w io.Writer, kind string) {
		_, _ = io.WriteString(w, head(kind, ""))
		forever(w, func(i int) string { return object(kind, fmt.Sprintf("o-%d", i), true, "") + "," })
	})
}

// EndlessPages answers each list with an empty page that another one follows.
func EndlessPages() Mode {
	return onLists(func(w io.Writer, kind string) { _, _ = io.WriteString(w, head(kind, "more")+"]}") })
}

// Large texts are made once: tests measure the memory of the process.
var (
	smallValues = strings.Repeat(`{"a":0},`, 400_000) + "{}]}]}"
	arrays      = strings.Repeat("[", 2_000_000)
	nulls       = strings.Repeat("null,", 800_000) + "null]}"
	groups      = "groups:\n" + strings.Repeat("-\n", 1_000_000)
	emptyPods   = inProtobuf("PodList", bytes.Repeat([]byte{0x12, 0}, 2_000_000))
	podEvent    = eventOf(inProtobuf("Pod", delimited(2, bytes.Repeat([]byte{0x12, 0}, 2_000_000))))
)

// eventOf is the event of a watch in protobuf, with its length before it.
func eventOf(object []byte) []byte {
	event := append(delimited(1, []byte("ADDED")), delimited(2, delimited(1, object))...)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(event))), event...) //nolint:gosec // 4 MB
}

// DenseList answers each list with as many JSON objects as fit.
func DenseList() Mode {
	return onLists(func(w io.Writer, kind string) {
		_, _ = io.WriteString(w, head(kind, "")+`{"data":[`)
		_, _ = io.WriteString(w, smallValues)
	})
}

// DeepList answers each list with arrays in arrays.
func DeepList() Mode {
	return onLists(func(w io.Writer, kind string) {
		_, _ = io.WriteString(w, head(kind, "")+`{"data":`)
		_, _ = io.WriteString(w, arrays)
	})
}

// NullList answers each list with as many nulls as fit.
func NullList() Mode {
	return onLists(func(w io.Writer, kind string) {
		_, _ = io.WriteString(w, head(kind, ""))
		_, _ = io.WriteString(w, nulls)
	})
}

// EmptyPods answers lists of Pods in protobuf with two million Pods of two bytes.
func EmptyPods() Mode {
	return Mode{func(_ *Member, w http.ResponseWriter, r *http.Request) bool {
		if !lists(r) || kindOf(r) != "Pod" {
			return false
		}
		w.Header().Set("Content-Type", "Application/vnd.kubernetes.Protobuf")
		_, _ = w.Write(emptyPods)
		return true
	}}
}

// EmptyContainers tells in each watch of Pods of one with two million containers of two
// bytes.
func EmptyContainers() Mode {
	return Mode{func(_ *Member, w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("watch") == "" || kindOf(r) != "Pod" {
			return false
		}
		w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf;stream=watch")
		_, _ = w.Write(podEvent)
		return true
	}}
}

// inProtobuf is an object as API servers send it.
func inProtobuf(kind string, raw []byte) []byte {
	meta := append(delimited(1, []byte("v1")), delimited(2, []byte(kind))...)
	return append([]byte("k8s\x00"), append(delimited(1, meta), delimited(2, raw)...)...)
}

// delimited is a field in protobuf.
func delimited(number uint64, inner []byte) []byte {
	text := binary.AppendUvarint(nil, number<<3|2)
	return append(binary.AppendUvarint(text, uint64(len(inner))), inner...)
}

// YAMLDiscovery answers discovery in YAML that calls itself JSON.
func YAMLDiscovery() Mode {
	return Mode{func(_ *Member, w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/apis" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, groups)
		return true
	}}
}

// GzipBomb answers each list with spaces without end, a thousand of them in a byte.
func GzipBomb() Mode {
	return Mode{func(_ *Member, w http.ResponseWriter, r *http.Request) bool {
		if !lists(r) || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			return lists(r)
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(w)
		forever(packed, func(int) string { return spaces })
		return true
	}}
}

var spaces = strings.Repeat(" ", 1<<16)

// LyingKind answers lists with Secrets.
func LyingKind() Mode {
	return onLists(func(w io.Writer, kind string) {
		_, _ = io.WriteString(w, head(kind, "")+object("Secret", "one", true, "")+"]}")
	})
}

// DuplicateKeys answers lists with objects that bear the label only as long as the
// second of two equal keys is not read.
func DuplicateKeys() Mode {
	return onLists(func(w io.Writer, kind string) {
		marked, _ := strings.CutSuffix(object(kind, "two-faced", true, ""), "}")
		_, _ = io.WriteString(w, head(kind, "")+marked+`,"metadata":{"name":"two-faced","namespace":"default"}}]}`)
	})
}

// EndlessEvent begins an event in each watch that does not end.
func EndlessEvent() Mode {
	return onWatches(func(w io.Writer, kind string) {
		_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":{"kind":%q,"data":"`, kind)
		forever(w, func(int) string { return strings.ReplaceAll(spaces, " ", "x") })
	})
}

// EndlessLines begins an event with newlines between its fields that does not end.
func EndlessLines() Mode {
	return onWatches(func(w io.Writer, kind string) {
		_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":{"kind":%q,"data":{"a":{}`, kind)
		forever(w, func(i int) string { return fmt.Sprintf(",\n\"k%d\":{\n}\n", i) })
	})
}

// ManyMarked tells in each watch of objects without end that are marked.
func ManyMarked() Mode { return many(true, "") }

// FatMarked tells in each watch of marked objects of 1 MiB without end.
func FatMarked() Mode { return many(true, "FILLER") }

// ManyUnmarked tells in each watch of objects without end that are not marked.
func ManyUnmarked() Mode { return many(false, "") }

func many(marked bool, with string) Mode {
	return onWatches(func(w io.Writer, kind string) {
		for i := 0; filled(w, `{"type":"ADDED","object":`+object(kind, fmt.Sprintf("o-%d", i), marked, with)+"}\n"); i++ {
		}
	})
}

// ManyNodes answers lists of nodes with pages without end.
func ManyNodes() Mode {
	page := 0
	return Mode{func(_ *Member, w http.ResponseWriter, r *http.Request) bool {
		if !lists(r) || kindOf(r) != "Node" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		nodes := make([]string, 250)
		for i := range nodes {
			nodes[i] = object("Node", fmt.Sprintf("n-%d-%d", page, i), false, "")
		}
		page++
		_, _ = io.WriteString(w, head("Node", "more")+strings.Join(nodes, ",")+"]}")
		return true
	}}
}

// LyingName answers a request for an object with another one.
func LyingName() Mode {
	return onObjects(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, object(kindOf(r), "another", true, ""))
	})
}

// Redirect sends all requests but health to another server.
func Redirect(to string) Mode {
	return onAll(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, to+r.URL.Path, http.StatusTemporaryRedirect)
	})
}

// NotFound answers 404 to all requests but health, as a proxy without a backend does.
func NotFound() Mode { return onAll(http.NotFound) }

// HTML answers all requests but health with a page.
func HTML() Mode {
	return onAll(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<html><body>Sign in</body></html>")
	})
}

// HugeError refuses all requests but health with a message of 10 MiB that a terminal
// would obey.
func HugeError() Mode {
	return onAll(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After", "100000000")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"\u001b[2J\u001b]0;owned\u0007`)
		for range 160 {
			_, _ = io.WriteString(w, strings.ReplaceAll(spaces, " ", "x"))
		}
		_, _ = io.WriteString(w, `"}`)
	})
}

// EscapedError refuses all requests but health with a short message that a terminal
// would obey.
func EscapedError() Mode {
	return onAll(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no\u001b[2J\u001b]0;owned\u0007"}`)
	})
}

// HugeHeader answers all requests but health with a header of 1 MiB, most of it in
// warnings.
func HugeHeader() Mode {
	return onAll(func(w http.ResponseWriter, _ *http.Request) {
		for range 16 {
			w.Header().Add("Warning", `299 - "`+strings.ReplaceAll(spaces, " ", "w")+`"`)
		}
		w.WriteHeader(http.StatusOK)
	})
}

// HugeDiscovery lists a hundred thousand groups.
func HugeDiscovery() Mode {
	return Mode{func(_ *Member, w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/apis" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[`)
		for i := range 10_000 {
			_, _ = fmt.Fprintf(w, `{"name":"g%d","versions":[{"groupVersion":"g%d/v1","version":"v1"}]},`, i, i)
		}
		_, _ = io.WriteString(w, `{"name":"last","versions":[]}]}`)
		return true
	}}
}

// SlowDrip answers all requests but health byte by byte.
func SlowDrip() Mode {
	return Mode{func(m *Member, w http.ResponseWriter, r *http.Request) bool {
		if isHealth(r) {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
			case <-r.Context().Done():
				return true
			case <-m.ended:
				return true
			}
			_, _ = io.WriteString(w, " ")
			flush(w)
		}
	}}
}

func onLists(body func(w io.Writer, kind string)) Mode {
	return Mode{func(_ *Member, w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("sendInitialEvents") != "" {
			// As a server that does not stream lists.
			write(w, http.StatusUnprocessableEntity, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422})
			return true
		}
		if !lists(r) {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		body(w, kindOf(r))
		return true
	}}
}

func onWatches(body func(w io.Writer, kind string)) Mode {
	return Mode{func(_ *Member, w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("watch") == "" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		body(w, kindOf(r))
		return true
	}}
}

func onObjects(answer http.HandlerFunc) Mode {
	return Mode{func(_ *Member, w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Path, "/api/v1/") || r.Method != http.MethodGet || lists(r) || r.URL.Query().Get("watch") != "" {
			return false
		}
		answer(w, r)
		return true
	}}
}

func onAll(answer http.HandlerFunc) Mode {
	return Mode{func(_ *Member, w http.ResponseWriter, r *http.Request) bool {
		if !isHealth(r) {
			answer(w, r)
		}
		return !isHealth(r)
	}}
}

func isHealth(r *http.Request) bool { return r.URL.Path == "/readyz" || r.URL.Path == "/healthz" }

func lists(r *http.Request) bool {
	if !strings.HasPrefix(r.URL.Path, "/api/v1/") || r.Method != http.MethodGet || r.URL.Query().Get("watch") != "" {
		return false
	}
	_, name := asked(r.URL.Path)
	return name == ""
}

func kindOf(r *http.Request) string {
	if !strings.HasPrefix(r.URL.Path, "/api/v1/") {
		return "ConfigMap"
	}
	resource, _ := asked(r.URL.Path)
	return kinds[resource]
}

// head is the beginning of a list.
func head(kind, next string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"%sList","metadata":{"resourceVersion":"1","continue":%q},"items":[`, kind, next)
}

func object(kind, name string, marked bool, filler string) string {
	labels := ""
	if marked {
		labels = fmt.Sprintf(`,"labels":{%q:%q}`, workv1alpha1.ManagedByKarmadaLabel, workv1alpha1.ManagedByKarmadaLabelValue)
	}
	return fmt.Sprintf(`{"apiVersion":"v1","kind":%q,"metadata":{"name":%q,"namespace":"default","uid":%q,"resourceVersion":"1"%s},"data":{"filler":%q}}`,
		kind, name, name, labels, filler)
}

// forever writes until the client is gone.
func forever(w io.Writer, chunk func(i int) string) {
	var buffer bytes.Buffer
	for i := 0; ; i++ {
		buffer.WriteString(chunk(i))
		if buffer.Len() < 1<<14 {
			continue
		}
		if _, err := buffer.WriteTo(w); err != nil {
			return
		}
	}
}
