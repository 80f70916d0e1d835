package epoch

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	domain "karmada.io/karmada/internal/domain/epoch"
)

var noon = time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)

// fakeStorage is a store with a resourceVersion that the test sets.
type fakeStorage struct {
	client.WithWatch
	version string
	failure error
	now     time.Time
	reads   int
	// writeError is returned by all writes.
	writeError error
	// memory is the StorageRecord of the process.
	memory StorageRecord
}

func newStorage(t *testing.T, objects ...client.Object) *fakeStorage {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	s := &fakeStorage{version: "100", now: noon}
	byName := func(object client.Object) []string { return []string{object.GetName()} }
	s.WithWatch = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithIndex(&corev1.ConfigMap{}, "metadata.name", byName).
		WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
			s.reads++
			if s.failure != nil {
				return s.failure
			}
			err := c.List(ctx, list, o...)
			list.SetResourceVersion(s.version)
			return err
		}, Create: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.CreateOption) error {
			if s.writeError != nil {
				return s.writeError
			}
			return c.Create(ctx, object, o...)
		}}).Build()
	return s
}

func (f *fakeStorage) watch(writes bool) *Watcher {
	o := Options{Reader: f, Record: &f.memory, Now: func() time.Time { return f.now }, NewID: func() string { return "new" }}
	if writes {
		o.Writer = f
	}
	return New(o)
}

func (f *fakeStorage) stored(t *testing.T) domain.Epoch {
	t.Helper()
	found := NewConfigMap(domain.Epoch{})
	if err := f.Get(t.Context(), client.ObjectKeyFromObject(found), found); err != nil {
		t.Fatal(err)
	}
	return domain.Read(found.Data, found.Annotations)
}

func (f *fakeStorage) replace(t *testing.T, e domain.Epoch) {
	t.Helper()
	found := NewConfigMap(e)
	if err := f.Get(t.Context(), client.ObjectKeyFromObject(found), found); err != nil {
		t.Fatal(err)
	}
	found.Data = e.Data()
	if err := f.Update(t.Context(), found); err != nil {
		t.Fatal(err)
	}
}

func TestFirstEpoch(t *testing.T) {
	s := newStorage(t)
	w := s.watch(true)
	for range 2 {
		if err := w.check(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.stored(t); got.ID != "new" || got.Cause != domain.CauseInstalled || got.NeedsConfirmation() {
		t.Errorf("epoch %+v", got)
	}
}

func TestReplacedStorageStopsWatch(t *testing.T) {
	restored := domain.New("b", domain.CauseRestored, noon, noon)
	tests := map[string]struct {
		change func(*testing.T, *fakeStorage)
		writes bool
		// cause is the cause of the epoch that is stored after the call.
		cause domain.Cause
	}{
		"a restore begins a new epoch":         {func(t *testing.T, s *fakeStorage) { s.replace(t, restored) }, true, domain.CauseRestored},
		"the resourceVersion went back":        {func(_ *testing.T, s *fakeStorage) { s.version = "99" }, true, domain.CauseStorageReplaced},
		"the resourceVersion jumped ahead":     {func(_ *testing.T, s *fakeStorage) { s.version = "1000000100" }, true, domain.CauseStorageReplaced},
		"an agent, without the right to write": {func(_ *testing.T, s *fakeStorage) { s.version = "99" }, false, domain.CauseInstalled},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStorage(t, NewConfigMap(domain.New("a", domain.CauseInstalled, noon, time.Time{})))
			w := s.watch(test.writes)
			if err := w.check(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			test.change(t, s)
			if err := w.check(t.Context(), 0); !errors.Is(err, ErrStorageReplaced) {
				t.Fatalf("error %v, want %v", err, ErrStorageReplaced)
			}
			if now, err := w.Epoch(t.Context()); !now.NeedsConfirmation() || !errors.Is(err, ErrStorageReplaced) {
				t.Errorf("a process that must start again may delete: %+v, %v", now, err)
			}
			if got := s.stored(t); got.Cause != test.cause {
				t.Errorf("epoch %+v, want cause %s", got, test.cause)
			}
			if err := s.watch(test.writes).check(t.Context(), 0); errors.Is(err, ErrStorageReplaced) {
				t.Errorf("the restarted components end as well: %v", err)
			}
		})
	}
}

func (f *fakeStorage) remove(t *testing.T) {
	t.Helper()
	if err := f.Delete(t.Context(), NewConfigMap(domain.Epoch{})); err != nil {
		t.Fatal(err)
	}
}

// Restarted components know what the process read before. Until a new epoch has begun, they must
// not treat the storage like the storage at a first start.
func TestNoDeletionAfterReplacement(t *testing.T) {
	installed, restored := domain.New("a", domain.CauseInstalled, noon, time.Time{}), domain.New("b", domain.CauseRestored, noon.Add(time.Hour), noon)
	first := domain.New("c", domain.CauseInstalled, noon.Add(2*time.Hour), time.Time{})
	confirmed := NewConfigMap(restored)
	confirmed.Annotations = map[string]string{clusterv1alpha1.ConfirmRestoreAnnotation: "b"}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, clusterv1alpha1.EpochName, nil)
	gone := func(t *testing.T, s *fakeStorage) { s.remove(t) }
	begunAnew := func(t *testing.T, s *fakeStorage) { s.replace(t, first) }
	older := func(_ *testing.T, s *fakeStorage) { s.version = "99" }
	unreadable := func(t *testing.T, s *fakeStorage) { s.remove(t); s.failure = forbidden }
	tests := map[string]struct {
		object     *corev1.ConfigMap
		replace    func(*testing.T, *fakeStorage)
		writes     bool
		writeError error
		// begun is the cause of the epoch that is stored after the call. It is empty if no epoch is
		// stored.
		begun domain.Cause
	}{
		"the ConfigMap is gone":                                            {NewConfigMap(installed), gone, true, nil, domain.CauseStorageReplaced},
		"the ConfigMap of an unconfirmed restore is gone":                  {NewConfigMap(restored), gone, true, nil, domain.CauseStorageReplaced},
		"the ConfigMap of a confirmed restore is gone":                     {confirmed, gone, true, nil, domain.CauseStorageReplaced},
		"the ConfigMap is gone, for an agent":                              {NewConfigMap(installed), gone, false, nil, ""},
		"the ConfigMap is gone, writes are forbidden":                      {NewConfigMap(installed), gone, true, forbidden, ""},
		"another process began a first epoch":                              {NewConfigMap(installed), begunAnew, true, nil, domain.CauseStorageReplaced},
		"another process began a first epoch, for an agent":                {NewConfigMap(installed), begunAnew, false, nil, domain.CauseInstalled},
		"the first epoch is stored again":                                  {confirmed, func(t *testing.T, s *fakeStorage) { s.replace(t, installed) }, true, nil, domain.CauseStorageReplaced},
		"the resourceVersion went back":                                    {NewConfigMap(installed), older, true, nil, domain.CauseStorageReplaced},
		"the resourceVersion of a confirmed epoch went back":               {confirmed, older, true, nil, domain.CauseStorageReplaced},
		"the resourceVersion of a confirmed epoch went back, for an agent": {confirmed, older, false, nil, domain.CauseRestored},
		"the ConfigMap and the right to read it are gone":                  {NewConfigMap(installed), unreadable, false, nil, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStorage(t, test.object.DeepCopy())
			if err := s.watch(test.writes).check(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			s.writeError = test.writeError
			test.replace(t, s)
			for restart := range 3 {
				w := s.watch(test.writes)
				for range 3 {
					s.now = s.now.Add(time.Hour)
					if now, err := w.Epoch(t.Context()); !now.NeedsConfirmation() {
						t.Errorf("after restart %d: may delete: %+v, %v", restart, now, err)
					}
				}
			}
			s.failure = nil
			stored, object, err := s.watch(false).readEpoch(t.Context())
			if err != nil || (object == nil) != (test.begun == "") || object != nil && stored.Epoch.Cause != test.begun {
				t.Errorf("epoch %+v, want cause %q; error %v", stored.Epoch, test.begun, err)
			}
		})
	}
}

func TestAgentContinuesAfterConfirmation(t *testing.T) {
	s := newStorage(t, NewConfigMap(domain.New("a", domain.CauseInstalled, noon, time.Time{})))
	for _, change := range []func(){
		func() { s.version = "99" },
		func() { s.replace(t, domain.New("b", domain.CauseStorageReplaced, noon.Add(time.Minute), time.Time{})) },
	} {
		_ = s.watch(false).check(t.Context(), 0)
		change()
		_ = s.watch(false).check(t.Context(), 0)
	}
	confirmed := NewConfigMap(domain.Epoch{})
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(confirmed), confirmed); err != nil {
		t.Fatal(err)
	}
	confirmed.Annotations = map[string]string{clusterv1alpha1.ConfirmRestoreAnnotation: "b"}
	if err := s.Update(t.Context(), confirmed); err != nil {
		t.Fatal(err)
	}
	if now, err := s.watch(false).Epoch(t.Context()); err != nil || now.NeedsConfirmation() {
		t.Errorf("epoch %+v, error %v", now, err)
	}
}

// An agent loses its Lease while the API server is unavailable, and its components start again.
func TestReplacementBetweenRestartsIsDetected(t *testing.T) {
	s := newStorage(t, NewConfigMap(domain.New("a", domain.CauseInstalled, noon, time.Time{})))
	if err := s.watch(false).check(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	s.version = "99"
	if err := s.watch(false).check(t.Context(), 0); !errors.Is(err, ErrStorageReplaced) {
		t.Errorf("error %v, want %v", err, ErrStorageReplaced)
	}
}

func TestAgentOfControlPlaneWithoutEpochs(t *testing.T) {
	s := newStorage(t)
	if err := s.watch(false).check(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	s.version = "99"
	if err := s.watch(false).check(t.Context(), 0); !errors.Is(err, ErrStorageReplaced) {
		t.Errorf("error %v, want %v", err, ErrStorageReplaced)
	}
	if now, err := s.watch(false).Epoch(t.Context()); err != nil || now.NeedsConfirmation() {
		t.Errorf("epoch %+v, error %v", now, err)
	}
}

func TestEpochAllowsDeletion(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, clusterv1alpha1.EpochName, nil)
	installed, restored := domain.New("a", domain.CauseInstalled, noon, time.Time{}), domain.New("b", domain.CauseRestored, noon, noon)
	confirmed := NewConfigMap(restored)
	confirmed.Annotations = map[string]string{clusterv1alpha1.ConfirmRestoreAnnotation: "b"}
	tests := map[string]struct {
		object *corev1.ConfigMap
		// before and failure are the errors of the reads before and during the call. later is the
		// time between these reads.
		before, failure error
		later           time.Duration
		writes          bool
		held            bool
		origin          string
	}{
		"not restored":                                   {object: NewConfigMap(installed)},
		"restored, not confirmed":                        {object: NewConfigMap(restored), held: true, origin: "restored from a backup of 2030-05-01T12:00:00Z"},
		"restored and confirmed":                         {object: confirmed},
		"an unavailable API server":                      {object: NewConfigMap(installed), failure: errors.New("no answer"), later: time.Minute, held: true},
		"Forbidden after a successful read":              {object: NewConfigMap(installed), failure: forbidden, later: time.Hour, held: true},
		"Forbidden at the start":                         {before: forbidden, failure: forbidden, later: time.Second, held: true},
		"Forbidden for an agent of an earlier version":   {before: forbidden, failure: forbidden, later: time.Minute},
		"the right was granted late, restored":           {object: NewConfigMap(restored), before: forbidden, later: time.Second, held: true, origin: "restored"},
		"Forbidden for a component of the control plane": {before: forbidden, failure: forbidden, later: time.Hour, writes: true, held: true},
		"a read within the last second is used":          {object: NewConfigMap(installed), failure: errors.New("no answer"), later: time.Second / 2},
		"no ConfigMap":                                   {},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStorage(t)
			if test.object != nil {
				s = newStorage(t, test.object.DeepCopy())
			}
			w := s.watch(test.writes)
			s.failure = test.before
			_, _ = w.Epoch(t.Context())
			s.now, s.failure = s.now.Add(test.later), test.failure
			now, err := w.Epoch(t.Context())
			if held := now.NeedsConfirmation(); held != test.held || (held && test.origin == "") != (err != nil) {
				t.Errorf("held %t, want %t: %v", held, test.held, err)
			}
			if !strings.Contains(now.DescribeOrigin(), test.origin) {
				t.Errorf("origin %q, want %q in it", now.DescribeOrigin(), test.origin)
			}
		})
	}
}
