package loop

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// state returns a ConfigMap with a UID and a version.
func state(uid, version string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: types.UID(uid), ResourceVersion: version}}
}

// newWritesOf returns a tracker with one write of the owner "web". age is how long ago the write
// was recorded.
func newWritesOf(written client.Object, age time.Duration) *Writes[string] {
	now := noon
	w := NewWrites[string](func() time.Time { return now })
	if written != nil {
		w.RecordState("web", written)
	}
	now = noon.Add(age)
	return w
}

func TestWritesCompareStates(t *testing.T) {
	tests := map[string]struct {
		written  *corev1.ConfigMap
		age      time.Duration
		observed *corev1.ConfigMap
		// isStale, isOwn and returnsWritten are the results of IsStale, IsOwn and Latest.
		isStale, isOwn, returnsWritten bool
		// isKept is true if the write must still be tracked afterwards.
		isKept bool
	}{
		"no write":                               {observed: state("1", "5")},
		"the state before the write":             {written: state("1", "7"), observed: state("1", "5"), isStale: true, isOwn: true, returnsWritten: true, isKept: true},
		"the written state":                      {written: state("1", "7"), observed: state("1", "7"), isOwn: true},
		"a newer state":                          {written: state("1", "7"), observed: state("1", "9")},
		"an older write":                         {written: state("1", "7"), age: maxCacheLag, observed: state("1", "5")},
		"a longer version is newer":              {written: state("1", "9"), observed: state("1", "10")},
		"a version of another format":            {written: state("1", "7"), observed: state("1", "x")},
		"another object that is newer":           {written: state("1", "7"), observed: state("2", "9")},
		"another object, of a restored storage":  {written: state("1", "7"), observed: state("2", "5"), isStale: true, isKept: true},
		"another object, with the same version ": {written: state("1", "7"), observed: state("2", "7")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			writes := func() *Writes[string] {
				if test.written == nil {
					return newWritesOf(nil, test.age)
				}
				return newWritesOf(test.written, test.age)
			}
			stale := writes()
			if got := stale.IsStale("web", test.observed); got != test.isStale {
				t.Errorf("IsStale = %t", got)
			}
			if got := len(stale.byOwner) > 0; got != test.isKept {
				t.Errorf("the write is kept: %t, want %t", got, test.isKept)
			}
			if got := writes().IsOwn("web", test.observed); got != test.isOwn {
				t.Errorf("IsOwn = %t", got)
			}
			if got := Latest(writes(), "web", test.observed) == test.written; got != test.returnsWritten {
				t.Errorf("Latest returns the write: %t", got)
			}
		})
	}
}

func TestWritesForgetDeleted(t *testing.T) {
	tests := map[string]struct {
		deleted *corev1.ConfigMap
		want    bool
	}{
		"the written state":                 {state("1", "7"), true},
		"a later state":                     {state("1", "9"), true},
		"a former object of the same name":  {state("0", "5"), false},
		"a version that cannot be compared": {state("1", "x"), false},
		"a state without a version":         {state("1", ""), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWritesOf(state("1", "7"), 0)
			w.ForgetDeleted("web", test.deleted)
			if got := len(w.byOwner) == 0; got != test.want {
				t.Errorf("forgotten: %t", got)
			}
		})
	}
}

func TestWritesKeepOwnersAndObjectsApart(t *testing.T) {
	w := newWritesOf(state("1", "7"), 0)
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("v1")
	object.SetKind("ConfigMap")
	object.SetNamespace("shop")
	object.SetName("web")
	object.SetResourceVersion("5")
	if w.IsStale("web", object) {
		t.Error("the write of a typed object makes an unstructured one stale")
	}
	if w.IsStale("other", state("1", "5")) {
		t.Error("the write of one owner makes the cache of another stale")
	}
	if !w.IsStale("web", state("1", "5")) {
		t.Error("the write is lost")
	}
	w.ForgetObject("web", state("1", "5"))
	if w.IsStale("web", state("1", "5")) {
		t.Error("a forgotten write makes the cache stale")
	}
	w.Record("web", state("1", "7"))
	w.Forget("web")
	if len(w.byOwner) != 0 {
		t.Error("a forgotten owner has writes")
	}
}

// reader returns one object, NotFound if the object is nil, or an error.
type reader struct {
	client.Reader
	object *corev1.ConfigMap
	err    error
}

func (r reader) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if r.err != nil {
		return r.err
	}
	if r.object == nil {
		return errNotFound
	}
	r.object.DeepCopyInto(into.(*corev1.ConfigMap)) // the tests write ConfigMaps only
	return nil
}

func TestWritesAreVisible(t *testing.T) {
	errDown := errors.New("the server is down")
	tests := map[string]struct {
		age           time.Duration
		cache, server reader
		want          bool
		err           error
	}{
		"the cache shows the write":                      {cache: reader{object: state("1", "7")}, want: true},
		"the cache shows a newer state":                  {cache: reader{object: state("1", "9")}, want: true},
		"the cache shows an older state":                 {cache: reader{object: state("1", "5")}, server: reader{err: errDown}},
		"the cache has no such object":                   {server: reader{err: errDown}},
		"the cache cannot be read":                       {cache: reader{err: errDown}, err: errDown},
		"the cache lags, and the server has the write":   {age: serverCheckDelay, cache: reader{object: state("1", "5")}, server: reader{object: state("1", "7")}},
		"a new object is missing in a lagging cache":     {age: serverCheckDelay, server: reader{object: state("1", "7")}},
		"the object was deleted while the cache lagged":  {age: serverCheckDelay, want: true},
		"the write is lost, as the server has an older":  {age: serverCheckDelay, cache: reader{object: state("1", "5")}, server: reader{object: state("1", "5")}, want: true},
		"the server cannot be read":                      {age: serverCheckDelay, server: reader{err: errDown}, err: errDown},
		"a write stays until the server was asked again": {age: maxCacheLag, cache: reader{object: state("1", "5")}, server: reader{object: state("1", "7")}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWritesOf(state("1", "7"), test.age)
			got, err := w.AreVisible(t.Context(), "web", test.cache, test.server)
			if got != test.want || !errors.Is(err, test.err) {
				t.Errorf("visible: %t, error %v, want %t and %v", got, err, test.want, test.err)
			}
			if isKept := len(w.byOwner) > 0; isKept == test.want {
				t.Errorf("the write is kept: %t", isKept)
			}
		})
	}
	if visible, err := NewWrites[string](nil).AreVisible(t.Context(), "web", reader{}, reader{}); !visible || err != nil {
		t.Errorf("without a write: %t, %v", visible, err)
	}
}
