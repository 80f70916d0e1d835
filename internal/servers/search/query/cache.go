package query

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	internalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/klog/v2"

	"karmada.io/karmada/internal/servers/search/objectcache"
)

// ServeCache returns all clusters' cached objects at the given path of a Kubernetes API, such as
// /apis/apps/v1/deployments. Of the list options in the query, only the label selector has an effect.
func (h *Handler) ServeCache(w http.ResponseWriter, req *http.Request, nativePath string, query url.Values, caller user.Info) {
	ctx := req.Context()
	path, err := parseNativePath(nativePath)
	if err != nil {
		writeError(ctx, w, err)
		return
	}
	selector, err := labelSelector(query)
	if err != nil {
		// Existing clients expect errors in this form.
		writeJSON(ctx, w, http.StatusBadRequest, map[string]string{"error": err.Error()})
		return
	}
	found := &warnings{caller: caller}
	kind := h.cache.Kind(path.resource)
	if kind == nil {
		// The list's kind is unknown, because the cache knows only the kinds in registries.
		found.add("no ResourceRegistry selects %s: add its kind to a registry, or correct the path", path.resource.String())
		found.addTo(w.Header())
		writeJSON(ctx, w, http.StatusOK, metav1.List{TypeMeta: metav1.TypeMeta{Kind: "List", APIVersion: "v1"}, Items: []runtime.RawExtension{}})
		return
	}
	sources := h.readable(ctx, kind.Snapshot(), path, caller, found)
	found.addTo(w.Header())
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(http.StatusOK)
	if err := writeObjects(ctx, w, kind, sources, path, selector); err != nil {
		klog.FromContext(ctx).V(1).Info("The list of cached objects is incomplete", "resource", path.resource.String(), "reason", err.Error())
		// Close the connection, because the client must not mistake an incomplete list for a complete
		// one.
		panic(http.ErrAbortHandler)
	}
}

// labelSelector validates the list options and returns the label selector.
func labelSelector(query url.Values) (labels.Selector, error) {
	options := internalversion.ListOptions{}
	if err := internalversionscheme.ParameterCodec.DecodeParameters(query, metav1.SchemeGroupVersion, &options); err != nil {
		return nil, err
	}
	if options.LabelSelector == nil {
		return labels.Everything(), nil
	}
	return options.LabelSelector, nil
}

// readable returns the sources whose objects at the path the caller may read. It reviews all sources,
// even those without objects, because otherwise a warning would reveal that an object exists.
func (h *Handler) readable(ctx context.Context, snapshot *objectcache.Snapshot, path nativePath, caller user.Info,
	found *warnings) []*objectcache.ClusterObjects {
	a := h.newAccess(caller, 0)
	candidates := snapshot.Clusters()
	verb := verbList
	if path.name != "" {
		verb = verbGet
	}
	allowed := make([]bool, len(candidates))
	slots := make(chan struct{}, maxReviews)
	var reviews sync.WaitGroup
	for i, objects := range candidates {
		slots <- struct{}{}
		reviews.Go(func() {
			defer func() { <-slots }()
			isAllowed, err := a.reviewPermission(ctx, verb, *objects.Source(), path.reviewNamespace(), path.name)
			if err != nil || !isAllowed {
				found.addOmitted(*objects.Source(), err)
				return
			}
			allowed[i] = true
		})
	}
	reviews.Wait()
	var sources []*objectcache.ClusterObjects
	for i, objects := range candidates {
		if !allowed[i] {
			continue
		}
		state, _, _ := objects.State()
		if state != objectcache.Current {
			found.addOutdated([]*objectcache.ClusterObjects{objects})
		}
		if state != objectcache.Waiting {
			sources = append(sources, objects)
		}
	}
	return sources
}

// objectsOf returns the source's objects at the path.
func objectsOf(objects *objectcache.ClusterObjects, path nativePath) iter.Seq[*objectcache.Object] {
	if path.name == "" {
		return objects.All(path.namespace)
	}
	return func(yield func(*objectcache.Object) bool) {
		if object := objects.Get(path.namespace, path.name); object != nil {
			yield(object)
		}
	}
}

// writeObjects writes the list, one object after another.
func writeObjects(ctx context.Context, w http.ResponseWriter, kind *objectcache.Kind, sources []*objectcache.ClusterObjects,
	path nativePath, selector labels.Selector) error {
	buffered := bufio.NewWriterSize(w, 64<<10)
	gvk := kind.GroupVersionKind()
	head, err := json.Marshal(metav1.TypeMeta{Kind: gvk.Kind + "List", APIVersion: gvk.GroupVersion().String()})
	if err != nil {
		return err
	}
	// Errors of the writer are kept until Flush.
	_, _ = fmt.Fprintf(buffered, `%s,"metadata":{},"items":[`, head[:len(head)-1])
	var object []byte
	separator := ""
	for _, source := range sources {
		for cached := range objectsOf(source, path) {
			if path.name == "" && !selector.Matches(cached.Labels()) {
				continue
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			if object, err = cached.AppendJSON(append(object[:0], separator...)); err != nil {
				return err
			}
			if _, err := buffered.Write(object); err != nil {
				return err
			}
			separator = ","
		}
	}
	_, _ = buffered.WriteString("]}\n")
	return buffered.Flush()
}
