package watches

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// list passes all objects of the source to the sink.
func (l *Loop) list(ctx context.Context) error {
	l.Sink.BeginList()
	version, err := l.readPages(ctx)
	if errors.Is(err, ErrInconsistent) {
		l.Sink.EndList(nil)
	} else {
		l.Sink.EndList(err)
	}
	if err != nil {
		return fmt.Errorf("listing the objects: %w", err)
	}
	l.version, l.isUnproven = version, false
	return nil
}

// readPages reads all pages of a list from the storage. A list from the cache of the API server would
// be one response of any size.
//
// If the API server compacts its history between two pages, the list continues with newer objects, and
// readPages returns ErrInconsistent at the end. Such a list is still useful, because a slow API server
// might never return a consistent one, and because an object that it does not contain was deleted.
func (l *Loop) readPages(ctx context.Context) (version string, err error) {
	size := cmp.Or(l.source.PageSize, pageSize)
	if l.source.PageSize == 0 && l.source.Bounds != nil {
		size = l.source.Bounds.Limits.PageSize
	}
	options := metav1.ListOptions{Limit: size}
	objects, expirations := 0, 0
	for pages := 1; ; pages++ {
		err := l.readPage(ctx, &options, func(page runtime.Object) error {
			list, err := meta.ListAccessor(page)
			if err != nil {
				return err
			}
			version, options.Continue = list.GetResourceVersion(), list.GetContinue()
			objects += meta.LenList(page)
			return meta.EachListItem(page, l.Sink.AddListed)
		})
		if next := inconsistentContinue(err); next != "" && expirations < maxExpirations {
			expirations++
			options.Continue = next
			continue
		}
		if err != nil {
			return "", err
		}
		if options.Continue == "" {
			break
		}
		if l.source.Bounds != nil {
			if err := l.source.Bounds.CheckPages(l.source.Subject, pages, objects); err != nil {
				return "", err
			}
		}
		// Large objects made the page smaller. The next objects may be small.
		options.Limit = min(2*options.Limit, size)
	}
	switch {
	case version == "":
		return "", errNoVersion
	case expirations > 0:
		return "", ErrInconsistent
	}
	return version, nil
}

var errNoVersion = errors.New("the list has no resource version")

// ErrInconsistent reports that the objects of a list belong to different resource versions.
var ErrInconsistent = errors.New(
	"the API server compacted its history during the list, so the objects may be outdated and are listed again")

// inconsistentContinue returns the token that continues a list after its history was compacted. It
// returns "" for other errors, and if the API server offers no such token.
func inconsistentContinue(err error) string {
	var status apierrors.APIStatus
	if !apierrors.IsResourceExpired(err) || !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}

func (l *Loop) readPage(ctx context.Context, options *metav1.ListOptions, take func(runtime.Object) error) error {
	if l.source.Bounds != nil {
		return l.source.Bounds.ReadPage(ctx, options, l.source.ListPage, take)
	}
	page, err := l.source.ListPage(ctx, *options)
	if err != nil {
		return err
	}
	return take(page)
}

// isOlder reports whether a resource version is older than another. A version that is not a number is
// older, because nothing is proven about it.
func isOlder(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err != nil || order < 0
}
