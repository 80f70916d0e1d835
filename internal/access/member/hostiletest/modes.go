package hostiletest

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

// Mode is one attack on the clients of the member. With the zero value, the member responds to all
// requests correctly.
type Mode struct {
	// attack responds to a request and returns true, or returns false if the member should respond to the
	// request.
	attack func(m *Member, w http.ResponseWriter, r *http.Request) bool
}

// Honest responds to all requests correctly.
func Honest() Mode { return Mode{} }

// SilentLists never responds to lists and watches.
func SilentLists() Mode {
	return Mode{func(_ *Member, _ http.ResponseWriter, r *http.Request) bool {
		if !isListRequest(r) && r.URL.Query().Get("watch") == "" {
			return false
		}
		<-r.Context().Done()
		return true
	}}
}

// HugeList responds to each list with 100 MiB of managed objects, and ignores the limit in the request.
func HugeList() Mode {
	return onListRequests(func(w io.Writer, kind string) {
		_, _ = io.WriteString(w, listPrefix(kind, ""))
		for i := range 100 {
			if !writeWithFiller(w, objectJSON(kind, fmt.Sprintf("fat-%d", i), true, "FILLER")+",") {
				return
			}
		}
		_, _ = fmt.Fprintf(w, `%s]}`, objectJSON(kind, "last", true, ""))
	})
}

// filler is 1 MiB of text.
var filler = strings.Repeat("x", 1<<20)

// writeWithFiller writes text in parts and replaces the word FILLER by the variable filler, so that
// the filler exists only once in memory. It reports whether the client still reads.
func writeWithFiller(w io.Writer, text string) bool {
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

// EndlessList responds to each list with a list that never ends.
func EndlessList() Mode {
	return onListRequests(func(w io.Writer, kind string) {
		_, _ = io.WriteString(w, listPrefix(kind, ""))
		writeForever(w, func(i int) string { return objectJSON(kind, "o-"+strconv.Itoa(i), true, "") + "," })
	})
}

// EndlessPages responds to each list with an empty page and a continue token.
func EndlessPages() Mode {
	return onListRequests(func(w io.Writer, kind string) { _, _ = io.WriteString(w, listPrefix(kind, "more")+"]}") })
}

// Large texts are created only once, because tests measure the memory of the process.
var (
	smallValues  = strings.Repeat(`{"a":0},`, 400_000) + "{}]}]}"
	nestedArrays = strings.Repeat("[", 2_000_000)
	nulls        = strings.Repeat("null,", 800_000) + "null]}"
	yamlGroups   = "groups:\n" + strings.Repeat("-\n", 1_000_000)
	emptyPods    = protobufObject("PodList", bytes.Repeat([]byte{0x12, 0}, 2_000_000))
	podEvent     = protobufEvent(protobufObject("Pod", protobufField(2, bytes.Repeat([]byte{0x12, 0}, 2_000_000))))
)

// protobufEvent returns a watch event in protobuf. Its prefix is its length.
func protobufEvent(object []byte) []byte {
	event := append(protobufField(1, []byte("ADDED")), protobufField(2, protobufField(1, object))...)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(event))), event...) // 4 MB
}

// DenseList responds to each list with as many JSON objects per byte as possible.
func DenseList() Mode {
	return onListRequests(func(w io.Writer, kind string) {
		_, _ = io.WriteString(w, listPrefix(kind, "")+`{"data":[`)
		_, _ = io.WriteString(w, smallValues)
	})
}

// NestedList responds to each list with nested arrays.
func NestedList() Mode {
	return onListRequests(func(w io.Writer, kind string) {
		_, _ = io.WriteString(w, listPrefix(kind, "")+`{"data":`)
		_, _ = io.WriteString(w, nestedArrays)
	})
}

// NullList responds to each list with as many nulls per byte as possible.
func NullList() Mode {
	return onListRequests(func(w io.Writer, kind string) {
		_, _ = io.WriteString(w, listPrefix(kind, ""))
		_, _ = io.WriteString(w, nulls)
	})
}

// EmptyPods responds to lists of Pods in protobuf. Each list contains 2 million Pods of 2 bytes each.
func EmptyPods() Mode {
	return Mode{func(_ *Member, w http.ResponseWriter, r *http.Request) bool {
		if !isListRequest(r) || kindOf(r) != "Pod" {
			return false
		}
		w.Header().Set("Content-Type", "Application/vnd.kubernetes.Protobuf")
		_, _ = w.Write(emptyPods)
		return true
	}}
}

// EmptyContainers responds to each watch of Pods with a Pod that has 2 million containers of 2 bytes
// each.
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

// protobufObject returns an object in the protobuf encoding that API servers send.
func protobufObject(kind string, raw []byte) []byte {
	meta := append(protobufField(1, []byte("v1")), protobufField(2, []byte(kind))...)
	return append([]byte("k8s\x00"), append(protobufField(1, meta), protobufField(2, raw)...)...)
}

// protobufField returns a length-delimited protobuf field.
func protobufField(number uint64, inner []byte) []byte {
	text := binary.AppendUvarint(nil, number<<3|2)
	return append(binary.AppendUvarint(text, uint64(len(inner))), inner...)
}

// YAMLDiscovery responds to discovery with YAML, but with the media type of JSON.
func YAMLDiscovery() Mode {
	return Mode{func(_ *Member, w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/apis" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, yamlGroups)
		return true
	}}
}

// GzipBomb responds to each list with endless compressed spaces. One compressed byte contains a
// thousand spaces.
func GzipBomb() Mode {
	return Mode{func(_ *Member, w http.ResponseWriter, r *http.Request) bool {
		if !isListRequest(r) || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			return isListRequest(r)
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		writeForever(w, func(int) string { return packedSpaces })
		return true
	}}
}

// spaces and letters are 64 KiB of text.
var spaces, letters = strings.Repeat(" ", 1<<16), strings.Repeat("x", 1<<16)

// packedSpaces contains 4 MiB of spaces in the gzip format. The server compresses the spaces only
// once and sends packedSpaces many times, because a gzip reader decompresses a sequence of gzip
// files as one text.
var packedSpaces = gzipText(strings.Repeat(spaces, 64))

func gzipText(text string) string {
	var packed strings.Builder
	w := gzip.NewWriter(&packed)
	// A strings.Builder never returns an error.
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return packed.String()
}

// WrongKind responds to every list with a Secret.
func WrongKind() Mode {
	return onListRequests(func(w io.Writer, kind string) {
		_, _ = io.WriteString(w, listPrefix(kind, "")+objectJSON("Secret", "one", true, "")+"]}")
	})
}

// DuplicateKeys responds to lists with objects that contain the key metadata twice. Only the first
// metadata has the managed label.
func DuplicateKeys() Mode {
	return onListRequests(func(w io.Writer, kind string) {
		managed, _ := strings.CutSuffix(objectJSON(kind, "two-faced", true, ""), "}")
		_, _ = io.WriteString(w, listPrefix(kind, "")+managed+`,"metadata":{"name":"two-faced","namespace":"default"}}]}`)
	})
}

// EndlessEvent responds to each watch with an event that never ends.
func EndlessEvent() Mode {
	return onWatchRequests(func(w io.Writer, kind string) {
		_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":{"kind":%q,"data":"`, kind)
		writeForever(w, func(int) string { return letters })
	})
}

// EndlessMultilineEvent responds to each watch with an event that never ends and has newlines between
// its fields.
func EndlessMultilineEvent() Mode {
	return onWatchRequests(func(w io.Writer, kind string) {
		_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":{"kind":%q,"data":{"a":{}`, kind)
		writeForever(w, func(i int) string { return ",\n\"k" + strconv.Itoa(i) + "\":{\n}\n" })
	})
}

// EndlessManagedObjects responds to each watch with an endless sequence of managed objects.
func EndlessManagedObjects() Mode { return endlessObjects(true, "") }

// EndlessLargeManagedObjects responds to each watch with an endless sequence of managed objects of 1
// MiB.
func EndlessLargeManagedObjects() Mode { return endlessObjects(true, "FILLER") }

// EndlessUnlabeledObjects responds to each watch with an endless sequence of objects that do not have
// the managed label.
func EndlessUnlabeledObjects() Mode { return endlessObjects(false, "") }

func endlessObjects(managed bool, with string) Mode {
	return onWatchRequests(func(w io.Writer, kind string) {
		for i := 0; writeWithFiller(w, `{"type":"ADDED","object":`+objectJSON(kind, "o-"+strconv.Itoa(i), managed, with)+"}\n"); i++ {
		}
	})
}

// EndlessNodes responds to lists of nodes with pages that never end.
func EndlessNodes() Mode {
	page := 0
	return Mode{func(_ *Member, w http.ResponseWriter, r *http.Request) bool {
		if !isListRequest(r) || kindOf(r) != "Node" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		nodes := make([]string, 250)
		for i := range nodes {
			nodes[i] = objectJSON("Node", fmt.Sprintf("n-%d-%d", page, i), false, "")
		}
		page++
		_, _ = io.WriteString(w, listPrefix("Node", "more")+strings.Join(nodes, ",")+"]}")
		return true
	}}
}

// WrongObject responds to a request for an object with another object.
func WrongObject() Mode {
	return onGetRequests(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, objectJSON(kindOf(r), "another", true, ""))
	})
}

// Redirect redirects all requests except health probes to another server.
func Redirect(target string) Mode {
	return onAllExceptHealth(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, target+r.URL.Path, http.StatusTemporaryRedirect)
	})
}

// NotFound returns 404 to all requests except health probes, like a proxy without a backend.
func NotFound() Mode { return onAllExceptHealth(http.NotFound) }

// HTML responds to all requests except health probes with a web page.
func HTML() Mode {
	return onAllExceptHealth(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<html><body>Sign in</body></html>")
	})
}

// HugeError rejects all requests except health probes with a message of 10 MiB that contains
// terminal escapes.
func HugeError() Mode {
	return onAllExceptHealth(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After", "100000000")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"\u001b[2J\u001b]0;owned\u0007`)
		for range 160 {
			_, _ = io.WriteString(w, letters)
		}
		_, _ = io.WriteString(w, `"}`)
	})
}

// EscapedError rejects all requests except health probes with a short message that contains
// terminal escapes.
func EscapedError() Mode {
	return onAllExceptHealth(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no\u001b[2J\u001b]0;owned\u0007"}`)
	})
}

// HugeHeader responds to all requests except health probes with a header of 1 MiB, which consists
// mostly of warnings.
func HugeHeader() Mode {
	return onAllExceptHealth(func(w http.ResponseWriter, _ *http.Request) {
		for range 16 {
			w.Header().Add("Warning", `299 - "`+strings.ReplaceAll(spaces, " ", "w")+`"`)
		}
		w.WriteHeader(http.StatusOK)
	})
}

// HugeDiscovery responds to discovery with 10 000 groups.
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

// SlowAnswer sends the responses to all requests except health probes byte by byte.
func SlowAnswer() Mode {
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
			case <-m.closed:
				return true
			}
			_, _ = io.WriteString(w, " ")
			flush(w)
		}
	}}
}

func onListRequests(body func(w io.Writer, kind string)) Mode {
	return Mode{func(_ *Member, w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("sendInitialEvents") != "" {
			// The member responds like an API server that does not stream lists.
			writeJSON(w, http.StatusUnprocessableEntity,
				map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422})
			return true
		}
		if !isListRequest(r) {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		body(w, kindOf(r))
		return true
	}}
}

func onWatchRequests(body func(w io.Writer, kind string)) Mode {
	return Mode{func(_ *Member, w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("watch") == "" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		body(w, kindOf(r))
		return true
	}}
}

func onGetRequests(answer http.HandlerFunc) Mode {
	return Mode{func(_ *Member, w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasPrefix(r.URL.Path, "/api/v1/") || r.Method != http.MethodGet || isListRequest(r) || r.URL.Query().Get("watch") != "" {
			return false
		}
		answer(w, r)
		return true
	}}
}

func onAllExceptHealth(answer http.HandlerFunc) Mode {
	return Mode{func(_ *Member, w http.ResponseWriter, r *http.Request) bool {
		if !isHealth(r) {
			answer(w, r)
		}
		return !isHealth(r)
	}}
}

func isHealth(r *http.Request) bool { return r.URL.Path == "/readyz" || r.URL.Path == "/healthz" }

func isListRequest(r *http.Request) bool {
	if !strings.HasPrefix(r.URL.Path, "/api/v1/") || r.Method != http.MethodGet || r.URL.Query().Get("watch") != "" {
		return false
	}
	_, name := parsePath(r.URL.Path)
	return name == ""
}

func kindOf(r *http.Request) string {
	if !strings.HasPrefix(r.URL.Path, "/api/v1/") {
		return "ConfigMap"
	}
	resource, _ := parsePath(r.URL.Path)
	return kinds[resource]
}

// listPrefix returns the beginning of a list.
func listPrefix(kind, next string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"%sList","metadata":{"resourceVersion":"1","continue":%q},"items":[`, kind, next)
}

// objectJSON returns an object in JSON. The texts must not contain characters that JSON escapes.
// The function does not use fmt, which is slow under the race detector, because it is called for
// millions of objects.
func objectJSON(kind, name string, managed bool, filler string) string {
	labels := ""
	if managed {
		labels = `,"labels":{"` + workv1alpha1.ManagedByKarmadaLabel + `":"` + workv1alpha1.ManagedByKarmadaLabelValue + `"}`
	}
	return `{"apiVersion":"v1","kind":"` + kind + `","metadata":{"name":"` + name + `","namespace":"default","uid":"` + name +
		`","resourceVersion":"1"` + labels + `},"data":{"filler":"` + filler + `"}}`
}

// writeForever writes chunks until the client closes the connection.
func writeForever(w io.Writer, chunk func(i int) string) {
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
