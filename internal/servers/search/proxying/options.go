package proxying

import (
	"cmp"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"karmada.io/karmada/internal/domain/fieldselection"
)

const mib = 1 << 20

// Limits limit the time and memory that requests use. The value 0 selects the default.
type Limits struct {
	// Idle is how long a member may send no data. The default is 5 s.
	Idle time.Duration
	// Suspect replaces Idle for a member that is not ready, or that failed to respond within the last
	// 30 s, so that it does not delay every request. The default is 1 s.
	Suspect time.Duration
	// Page is how long a member may take for one page of a list, or for one object. The default is
	// 30 s. For suspects, the limit is three times Suspect.
	Page time.Duration
	// Lookup is how long a member whose objects are not cached yet may take to report whether it has an
	// object, and how long a request waits for a cluster's first list. The default is 3 s.
	Lookup time.Duration
	// ClientRead is how long a watch's client may take to read 64 KiB of events. The default is
	// 1 minute.
	ClientRead time.Duration
	// PageBytes is the maximum size of a member's page, or of one object, in bytes. The default is
	// 16 MiB. A page that exceeds it is read again with fewer objects.
	PageBytes int64
	// PageObjects is the total number of objects that all clusters return in the first pages of one
	// list. The default is 2000.
	PageObjects int64
	// Lists is the maximum number of lists without a limit that are read from members at the same time.
	// The default is 64.
	Lists int64
	// HeldBytes is the number of bytes up to which a list is held back before its header is sent, so
	// that a cluster's error can still become the response's error or warning. The default is 8 MiB.
	HeldBytes int
	// BodyBytes is the maximum size of a write's body if the body must be changed, in bytes. The
	// default is 3 MiB, as in an API server.
	BodyBytes int64
	// Bookmark is the interval at which a watch sends bookmarks and its caller's permissions are
	// reviewed again. The default is 1 minute.
	Bookmark time.Duration
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Idle: cmp.Or(l.Idle, 5*time.Second), Suspect: cmp.Or(l.Suspect, time.Second), Page: cmp.Or(l.Page, 30*time.Second),
		Lookup:     cmp.Or(l.Lookup, 3*time.Second),
		ClientRead: cmp.Or(l.ClientRead, time.Minute), PageBytes: cmp.Or(l.PageBytes, 16*mib), PageObjects: cmp.Or(l.PageObjects, 2000),
		Lists: cmp.Or(l.Lists, 64), HeldBytes: cmp.Or(l.HeldBytes, 8*mib), BodyBytes: cmp.Or(l.BodyBytes, 3*mib),
		Bookmark: cmp.Or(l.Bookmark, time.Minute),
	}
}

// parseListOptions parses and validates the query of a list or watch.
func (r *request) parseListOptions() error {
	query := r.req.URL.Query()
	if err := metainternalversionscheme.ParameterCodec.DecodeParameters(query, metav1.SchemeGroupVersion, &r.options); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	r.options.Watch = r.info.Verb == "watch"
	if errs := validation.ValidateListOptions(&r.options, true); len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", errs)
	}
	var err error
	if r.fields, err = fieldselection.New(r.kind.GroupVersionKind().GroupKind(), r.options.FieldSelector); err != nil && !r.isLive() {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

// isLive reports whether the members serve a list or watch, and not the cache. The members then also
// decide which field selectors they support. As in an API server, a limit has no effect if
// resourceVersion is 0, which informers use.
func (r *request) isLive() bool {
	isCacheable := r.options.Watch || r.options.ResourceVersion == "0" && r.options.Continue == ""
	return r.format.IsTable || !isCacheable
}
