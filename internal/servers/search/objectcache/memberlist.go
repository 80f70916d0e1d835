package objectcache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
)

const (
	// concurrentPages is the number of pages of all clusters that are read at the same time.
	concurrentPages = 6
	// maxPageSlotTime is the time after which a page that is still being read does not count any more.
	maxPageSlotTime = 2 * time.Second
)

// maxExpiredPages limits how often one list continues after a compaction. Members compact each few minutes.
const maxExpiredPages = 100

// maxNameBytes limits names and namespaces, as API servers do for most kinds.
const maxNameBytes = 253

// Errors for answers that no API server gives.
var (
	errWrongAnswer  = errors.New("the member answers with something else than it was asked for")
	errInconsistent = errors.New("the member compacted its history during the list: the objects may be outdated, and are listed again")
	errNoVersion    = errors.New("the list of the member has no resourceVersion")
)

func (s Source) describe() string {
	return fmt.Sprintf("%s of cluster %q", s.GroupVersionResource().GroupResource(), s.Cluster)
}

func (w *watchAttempt) resource() dynamic.NamespaceableResourceInterface {
	return w.connection.objects.Resource(w.writer.Source().GroupVersionResource())
}

// validate returns an error for an object of another kind, or without a usable name.
func (w *watchAttempt) validate(object *unstructured.Unstructured) error {
	source := w.writer.Source()
	if got := object.GroupVersionKind(); got != source.Kind {
		return fmt.Errorf("an object of kind %q: %w", got, errWrongAnswer)
	}
	name, namespace := object.GetName(), object.GetNamespace()
	if name == "" || len(name) > maxNameBytes || len(namespace) > maxNameBytes || (namespace != "") != source.Namespaced {
		return fmt.Errorf("an object with the name %q in the namespace %q: %w", name, namespace, errWrongAnswer)
	}
	return nil
}

// hasRestarted reports whether the resourceVersions of the member are lower than before. A watch from
// the old resourceVersion would get no events until the member reaches it.
func (w *watchAttempt) hasRestarted(ctx context.Context) (bool, error) {
	version := ""
	options := metav1.ListOptions{Limit: 1}
	err := w.connection.member.ReadPage(ctx, &options, w.listPage, func(page runtime.Object) error {
		version = page.(*unstructured.UnstructuredList).GetResourceVersion()
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("reading the resourceVersion of %s: %w", w.writer.Source().describe(), err)
	}
	return version == "" || IsOlder(version, w.writer.ResourceVersion()), nil
}

func (w *watchAttempt) listPage(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	return w.resource().List(ctx, o)
}

// list reads all objects of the member in pages, and stores them.
//
// If the member compacts its history between two pages, the list continues with newer objects. Then it is
// not consistent: objects of the first pages may have changed meanwhile, and the versions that a
// watch would need are gone. Its objects are stored, because a slow member might never be read otherwise,
// but they are Stale, and listed again. Deletions are certain also in such a list: an object that a page
// does not contain was gone when the page was read.
func (w *watchAttempt) list(ctx context.Context) error {
	select {
	case w.listSlots <- struct{}{}:
		defer func() { <-w.listSlots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	list := &memberList{watchAttempt: w}
	defer list.release()
	if err := list.read(ctx); err != nil {
		return fmt.Errorf("listing %s: %w", w.writer.Source().describe(), err)
	}
	// A watch that was stopped meanwhile must not become Current.
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if list.expired > 0 {
		err := fmt.Errorf("listing %s: %w", w.writer.Source().describe(), errInconsistent)
		w.writer.replace(list.objects, list.version, Stale, describeFailure(err))
		return err
	}
	w.writer.Replace(list.objects, list.version)
	return nil
}

// read reads all pages.
func (l *memberList) read(ctx context.Context) error {
	pageSize := l.cache.options.PageSize
	options := metav1.ListOptions{Limit: pageSize}
	for pages := 1; ; pages++ {
		err := l.readPage(ctx, &options, l)
		if next := inconsistentContinue(err); next != "" && l.expired < maxExpiredPages {
			l.expired++
			options.Continue = next
			continue
		}
		// An empty page counts as one object, because otherwise a list of empty pages would never end.
		if err == nil {
			err = l.cache.options.checkLimits(max(pages, len(l.objects)), l.bytes)
		}
		if err != nil {
			return err
		}
		if options.Continue = l.next; options.Continue == "" {
			break
		}
		// Too large pages made the limit smaller. Other objects may be small.
		options.Limit = min(2*options.Limit, pageSize)
	}
	if l.version == "" {
		return errNoVersion
	}
	return nil
}

// inconsistentContinue returns the token with which a list continues after its history was compacted, or
// "" if err is another error or the member offers no such token.
func inconsistentContinue(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}

// readPage reads one page. Only a few pages of all clusters are read at the same time, because a decoded
// page needs much more memory than its compressed objects.
func (w *watchAttempt) readPage(ctx context.Context, options *metav1.ListOptions, list *memberList) error {
	slots := w.cache.watches.pageSlots
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	release := sync.OnceFunc(func() { <-slots })
	defer release()
	// A member that does not answer must not delay other members.
	early := time.AfterFunc(maxPageSlotTime, release)
	defer early.Stop()
	return w.connection.member.ReadPage(ctx, options, w.listPage, list.add)
}

// memberList collects the compressed objects of a list.
type memberList struct {
	*watchAttempt
	objects       []*Object
	bytes         int64
	version, next string
	// reserved is the memory of the objects that are not cached yet. It counts until they are.
	reserved int64
	// expired is the number of pages before which the member compacted its history.
	expired int
}

func (l *memberList) release() { l.cache.budget.add(l.writer.Source().Cluster, -l.reserved) }

// add compresses the objects of a page.
func (l *memberList) add(page runtime.Object) error {
	list, ok := page.(*unstructured.UnstructuredList)
	if !ok {
		return fmt.Errorf("a page of type %T: %w", page, errWrongAnswer)
	}
	l.version, l.next = list.GetResourceVersion(), list.GetContinue()
	// After a restart of the numbering, the same resourceVersion may stand for another content.
	canReuse := !IsOlder(l.version, l.writer.ResourceVersion())
	for i := range list.Items {
		object := &list.Items[i]
		if err := l.validate(object); err != nil {
			return err
		}
		encoded, err := l.encode(object, canReuse)
		if err != nil {
			return err
		}
		l.objects, l.bytes = append(l.objects, encoded), l.bytes+encoded.maxBytes()
		// The decoded object is not needed any more.
		list.Items[i].Object = nil
	}
	return nil
}

func (l *memberList) encode(object *unstructured.Unstructured, canReuse bool) (*Object, error) {
	if canReuse {
		if cached := l.writer.reuse(object); cached != nil {
			return cached, nil
		}
	}
	encoded, err := l.writer.Encode(object)
	if err != nil {
		return nil, err
	}
	cluster, bytes := l.writer.Source().Cluster, encoded.maxBytes()
	if err := l.cache.budget.check(cluster, bytes); err != nil {
		return nil, err
	}
	l.cache.budget.add(cluster, bytes)
	l.reserved += bytes
	return encoded, nil
}
