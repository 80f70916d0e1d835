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
	// maxWarnings limits the number of Warning headers. One more contains the number of omitted
	// warnings.
	maxWarnings = 10
	// maxWarning limits the length of a warning in bytes.
	maxWarning = 512
)

// warnings collects the warnings of one answer.
type warnings struct {
	caller user.Info
	// isNamespaced says that the request is for one namespace, or reviews namespaces.
	isNamespaced bool

	mu    sync.Mutex
	texts []string
}

// shortText formats a text of a single line, as the value of a header must be.
func shortText(format string, args ...any) string {
	text := strings.ToValidUTF8(strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " "), "")
	if len(text) > maxWarning {
		text = strings.ToValidUTF8(text[:maxWarning], "") + "…"
	}
	return text
}

// add adds a warning, once.
func (w *warnings) add(format string, args ...any) {
	text := shortText(format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.texts, text) {
		w.texts = append(w.texts, text)
	}
}

// leftOut adds the warning for a source that the caller may not read.
func (w *warnings) leftOut(source objectcache.Source, err error) {
	switch {
	case err != nil:
		w.add("cluster %q is omitted: %v", source.Cluster, err)
	case !source.Namespaced:
		w.add("cluster %q is omitted: user %q may not read %s there: ask for the right in this cluster", source.Cluster, w.caller.GetName(), resourceName(source))
	case w.isNamespaced:
		w.add("cluster %q: only objects of namespaces are shown in which user %q may list %s", source.Cluster, w.caller.GetName(), resourceName(source))
	default:
		w.add("cluster %q is omitted: user %q may not read %s there: ask for one namespace, or for the right in this cluster", source.Cluster, w.caller.GetName(), resourceName(source))
	}
}

// outdated adds the warning for sources of one cluster that are not up to date. All sources have the
// same state.
func (w *warnings) outdated(sources []*objectcache.ClusterObjects) {
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
	w.add("cluster %q: its %s are as of %s: %s", source.Cluster, names, since.UTC().Format(time.RFC3339), reasonOr(reason, "the cluster is not watched"))
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

// addTo adds the warnings to a header, sorted.
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
