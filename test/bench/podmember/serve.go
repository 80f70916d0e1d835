package podmember

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// minGzipBytes is the size from which API servers compress a response.
const minGzipBytes = 128 << 10

// flushBytes is the size of the parts in which a list is written.
const flushBytes = 64 << 10

func (m *Member) serve(w http.ResponseWriter, r *http.Request) {
	at := strings.TrimSuffix(r.URL.Path, "/")
	w.Header().Set("Content-Type", "application/json")
	if document, ok := m.documents[at]; ok {
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusCreated)
		}
		_, _ = w.Write(document)
		return
	}
	if at == "/readyz" || at == "/healthz" {
		_, _ = io.WriteString(w, "ok")
		return
	}
	first, end, ok := m.selected(at)
	switch {
	case !ok || r.Method != http.MethodGet:
		writeStatus(w, http.StatusNotFound, "NotFound")
	case r.URL.Query().Get("watch") == "true" || r.URL.Query().Get("watch") == "1":
		m.serveWatch(w, r, first, end)
	default:
		m.serveList(w, r, first, end)
	}
}

// selected returns the numbers of the Pods of a collection. ok is false for another path.
func (m *Member) selected(path string) (first, end int, ok bool) {
	if path == "/api/v1/pods" {
		return 0, m.pods.options.Pods, true
	}
	namespace, isNamespaced := strings.CutPrefix(path, "/api/v1/namespaces/")
	namespace, isPods := strings.CutSuffix(namespace, "/pods")
	if !isNamespaced || !isPods || strings.Contains(namespace, "/") {
		return 0, 0, false
	}
	first, end = m.pods.inNamespace(namespace)
	return first, end, true
}

// serveList writes the Pods from first to end - 1, or a page of them.
func (m *Member) serveList(w http.ResponseWriter, r *http.Request, first, end int) {
	query := r.URL.Query()
	begin, last := first, end
	if text := query.Get("continue"); text != "" {
		at, err := position(text)
		if err != nil || at < first || at > end {
			writeStatus(w, http.StatusBadRequest, "BadRequest")
			return
		}
		begin = at
	}
	if limit, err := strconv.Atoi(query.Get("limit")); err == nil && limit > 0 {
		last = min(begin+limit, end)
	}
	version, _, _ := m.state()
	head := fmt.Sprintf(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"%d"`, version)
	if last < end {
		head += fmt.Sprintf(`,"continue":%q,"remainingItemCount":%d`, token(last), end-last)
	}
	out, finish := compressed(w, r, (last-begin)*len(podTemplate))
	defer finish()
	buffer := append([]byte(head), `},"items":[`...)
	for i := begin; i < last; i++ {
		if i > begin {
			buffer = append(buffer, ',')
		}
		buffer = m.appendPod(buffer, i)
		if len(buffer) > flushBytes {
			if _, err := out.Write(buffer); err != nil {
				return
			}
			buffer = buffer[:0]
		}
	}
	_, _ = out.Write(append(buffer, "]}\n"...)) // an error means that the client is gone
}

// compressed returns a writer that compresses a large response, as API servers do, and a function that
// must be called at the end.
func compressed(w http.ResponseWriter, r *http.Request, size int) (out io.Writer, finish func()) {
	if size < minGzipBytes || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		return w, func() {}
	}
	w.Header().Set("Content-Encoding", "gzip")
	zipped, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return w, func() {}
	}
	return zipped, func() { _ = zipped.Close() }
}

// serveWatch sends the changes of the Pods from first to end - 1 after the resourceVersion of the
// request, and bookmarks.
func (m *Member) serveWatch(w http.ResponseWriter, r *http.Request, first, end int) {
	from, err := strconv.ParseInt(r.URL.Query().Get("resourceVersion"), 10, 64)
	if err != nil || from < firstVersion {
		writeStatus(w, http.StatusGone, "Expired")
		return
	}
	ctx := r.Context()
	ended := m.ended(r)
	bookmarks := time.NewTicker(m.pods.options.Bookmark)
	defer bookmarks.Stop()
	if r.URL.Query().Get("allowWatchBookmarks") != "true" {
		bookmarks.Stop()
	}
	flush := http.NewResponseController(w).Flush
	for {
		version, changes, changed := m.state()
		for n := min(from-firstVersion, int64(len(changes))); n < int64(len(changes)); n++ {
			if changes[n].pod < first || changes[n].pod >= end {
				continue
			}
			event := m.pods.append([]byte(`{"type":"MODIFIED","object":`), changes[n].pod, firstVersion+n+1, changes[n].number)
			_, _ = w.Write(append(event, "}\n"...)) // Flush returns the error
		}
		from = version
		if flush() != nil {
			return
		}
		select {
		case <-changed:
		case <-bookmarks.C:
			_, _ = fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"%d"}}}`+"\n", from)
		case <-ended:
			return
		case <-ctx.Done():
			return
		case <-m.closed:
			return
		}
	}
}

// ended returns a channel that receives when the timeout of a watch is over. It is nil without a
// timeout.
func (m *Member) ended(r *http.Request) <-chan time.Time {
	seconds, err := strconv.Atoi(r.URL.Query().Get("timeoutSeconds"))
	if err != nil || seconds <= 0 {
		return nil
	}
	return time.After(time.Duration(seconds) * time.Second)
}

func writeStatus(w http.ResponseWriter, code int, reason string) {
	w.WriteHeader(code)
	_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":%q,"message":%q,"code":%d}`+"\n",
		reason, http.StatusText(code), code)
}
