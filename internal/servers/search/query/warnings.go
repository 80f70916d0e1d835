package query

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/authentication/user"

	"karmada.io/karmada/internal/servers/search/objectcache"
)

const (
	// maxWarnings is the maximum number of Warning headers. If there are more warnings, one additional
	// header contains the number of the others.
	maxWarnings = 10
	// maxWarningBytes is the maximum length of a warning, in bytes.
	maxWarningBytes = 512
)

// warnings collects the warnings of one response.
type warnings struct {
	caller user.Info
	// isNamespaced is true if the request reviews permissions for single namespaces.
	isNamespaced bool

	mu    sync.Mutex
	texts []string
}

// shortText formats a text on a single line, which a header requires.
func shortText(format string, args ...any) string {
	text := strings.ToValidUTF8(strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " "), "")
	if len(text) > maxWarningBytes {
		text = strings.ToValidUTF8(text[:maxWarningBytes], "") + "…"
	}
	return text
}

// add adds a warning unless the same warning exists.
func (w *warnings) add(format string, args ...any) {
	text := shortText(format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.texts, text) {
		w.texts = append(w.texts, text)
	}
}

// addOmitted adds a warning about a source that the caller may not read.
func (w *warnings) addOmitted(source objectcache.Source, err error) {
	switch {
	case err != nil:
		w.add("cluster %q is omitted: %v", source.Cluster, err)
	case !source.Namespaced:
		w.add("cluster %q is omitted: user %q may not read %s there: ask for the permission in this cluster", source.Cluster, w.caller.GetName(),
			resourceName(source))
	case w.isNamespaced:
		w.add("cluster %q: only objects of namespaces are shown in which user %q may list %s", source.Cluster, w.caller.GetName(),
			resourceName(source))
	default:
		w.add("cluster %q is omitted: user %q may not read %s there: request one namespace, or ask for the permission in this cluster",
			source.Cluster, w.caller.GetName(), resourceName(source))
	}
}

// addOutdated adds a warning about one cluster's sources that are not up to date. All sources must have
// the same state.
func (w *warnings) addOutdated(sources []*objectcache.ClusterObjects) {
	source := sources[0].Source()
	state, since, reason := sources[0].State()
	names := resourceName(*source)
	if len(sources) > 1 {
		names = fmt.Sprintf("%s and objects of %d other kinds", names, len(sources)-1)
	}
	if state == objectcache.Waiting {
		w.add("cluster %q is omitted: its %s are not cached yet: %s", source.Cluster, names, reasonOr(reason, "the first list is not complete"))
		return
	}
	w.add("cluster %q: its %s are as of %s: %s", source.Cluster, names, since.UTC().Format(time.RFC3339),
		reasonOr(reason, "the cluster is not watched"))
}

func reasonOr(reason, otherwise string) string {
	if reason == "" {
		return otherwise
	}
	return reason
}

func resourceName(source objectcache.Source) string {
	return source.GroupVersionResource().GroupResource().String()
}

// addTo adds the sorted warnings to the header.
func (w *warnings) addTo(header http.Header) {
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.Sort(w.texts)
	for i, text := range w.texts {
		if i == maxWarnings {
			text = fmt.Sprintf("%d more warnings are omitted", len(w.texts)-i)
		}
		if warning, err := utilnet.NewWarningHeader(299, "-", text); err == nil {
			header.Add("Warning", warning)
		}
		if i == maxWarnings {
			return
		}
	}
}
