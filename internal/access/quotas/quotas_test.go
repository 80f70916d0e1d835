package quotas

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/quota"
)

func newQuota(namespace, name, cpu string) *unstructured.Unstructured {
	created := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"overall": map[string]any{"cpu": cpu}}}}
	created.SetNamespace(namespace)
	created.SetName(name)
	created.SetResourceVersion("1")
	return created
}

func newBinding(name, version string, replicas int32) *workv1alpha2.ResourceBinding {
	bound := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID(name), ResourceVersion: version,
	}}
	bound.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: replicas}}
	bound.Spec.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{
		ResourceRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
	}
	return bound
}

// quotaServer is a client for FederatedResourceQuotas that stores them like an API server: a patch needs
// the current resource version.
type quotaServer struct {
	dynamic.NamespaceableResourceInterface
	mu      sync.Mutex
	stored  map[string]*unstructured.Unstructured
	version int
	// beforePatch is called before each patch.
	beforePatch func()
}

func (q *quotaServer) Namespace(string) dynamic.ResourceInterface { return q }

func (q *quotaServer) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.get(name)
}

func (q *quotaServer) get(name string) (*unstructured.Unstructured, error) {
	if stored := q.stored[name]; stored != nil {
		return stored.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "federatedresourcequotas"}, name)
}

func (q *quotaServer) Patch(_ context.Context, name string, _ types.PatchType, data []byte, _ metav1.PatchOptions,
	_ ...string) (*unstructured.Unstructured, error) {
	if q.beforePatch != nil {
		q.beforePatch()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	stored, err := q.get(name)
	if err != nil {
		return nil, err
	}
	var patch struct{ Metadata metav1.ObjectMeta }
	if err := json.Unmarshal(data, &patch); err != nil {
		return nil, err
	}
	if patch.Metadata.ResourceVersion != stored.GetResourceVersion() {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "federatedresourcequotas"}, name, errors.New("changed"))
	}
	stored.SetAnnotations(patch.Metadata.Annotations)
	return q.store(stored), nil
}

func (q *quotaServer) store(object *unstructured.Unstructured) *unstructured.Unstructured {
	q.version++
	object.SetResourceVersion(strconv.Itoa(1000 + q.version))
	q.stored[object.GetName()] = object
	return object.DeepCopy()
}

// newEnforcer returns an Enforcer that has listed the given bindings and quotas.
func newEnforcer(t testing.TB, bindings []*workv1alpha2.ResourceBinding, quotas ...*unstructured.Unstructured) (*Enforcer, *quotaServer) {
	t.Helper()
	server := &quotaServer{stored: map[string]*unstructured.Unstructured{}}
	e := &Enforcer{quotas: server, index: newIndex(time.Now), namespaces: newLocks(), now: time.Now}
	var listed []storedQuota
	for _, each := range quotas {
		server.stored[each.GetName()] = each
		reduced, err := reduceQuota(each)
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, reduced)
	}
	e.index.mu.Lock()
	defer e.index.mu.Unlock()
	(&quotaStore{index: e.index, isFirst: true}).Replace(listed)
	(&bindingStore{index: e.index, isFirst: true}).Replace(reduceAll(t, bindings...))
	return e, server
}

func reduceAll(t testing.TB, bindings ...*workv1alpha2.ResourceBinding) []storedBinding {
	t.Helper()
	var reduced []storedBinding
	for _, each := range bindings {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(each)
		if err != nil {
			t.Fatal(err)
		}
		one, err := reduceBinding(&unstructured.Unstructured{Object: content})
		if err != nil {
			t.Fatal(err)
		}
		reduced = append(reduced, one)
	}
	return reduced
}

func TestCheck(t *testing.T) {
	api := newBinding("api", "5", 4)
	cases := map[string]struct {
		bound, old *workv1alpha2.ResourceBinding
		dryRun     bool
		want       metav1.StatusReason
		isRecorded bool
	}{
		"a new binding without clusters": {bound: newBinding("web", "", 0)},
		"a binding that fits":            {bound: newBinding("web", "6", 6), old: newBinding("web", "6", 0), isRecorded: true},
		"a dry run of it":                {bound: newBinding("web", "6", 6), old: newBinding("web", "6", 0), dryRun: true},
		"a new binding that fits":        {bound: newBinding("web", "", 6), isRecorded: true},
		"a binding that does not fit":    {bound: newBinding("web", "6", 7), old: newBinding("web", "6", 0), want: "QuotaExceeded"},
		"a dry run of that":              {bound: newBinding("web", "6", 7), old: newBinding("web", "6", 0), dryRun: true, want: "QuotaExceeded"},
		"a binding that shrinks":         {bound: newBinding("web", "6", 20), old: newBinding("web", "6", 30)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e, server := newEnforcer(t, []*workv1alpha2.ResourceBinding{api}, newQuota("shop", "team", "10"))
			err := e.Check(t.Context(), tc.bound, tc.old, tc.dryRun)
			if got := apierrors.ReasonForError(err); got != tc.want {
				t.Errorf("reason %q, want %q: %v", got, tc.want, err)
			}
			ledger := server.stored["team"].GetAnnotations()[policyv1alpha1.FederatedResourceQuotaLedgerAnnotation]
			if isRecorded := strings.Contains(ledger, `"uid":"web"`); isRecorded != tc.isRecorded {
				t.Errorf("recorded: %v, want %v: %s", isRecorded, tc.isRecorded, ledger)
			}
		})
	}
}

func TestOtherNamespacesAreNotLimited(t *testing.T) {
	e, _ := newEnforcer(t, nil, newQuota("other", "team", "1"))
	if err := e.Check(t.Context(), newBinding("web", "", 50), nil, false); err != nil {
		t.Error(err)
	}
}

// TestTwoAdmissionsShareTheLedger requires that an admission which has not seen the latest request of
// another admission gets a conflict and decides again.
func TestTwoAdmissionsShareTheLedger(t *testing.T) {
	first, server := newEnforcer(t, nil, newQuota("shop", "team", "10"))
	second, _ := newEnforcer(t, nil, newQuota("shop", "team", "10"))
	second.quotas = server
	if err := first.Check(t.Context(), newBinding("web", "", 6), nil, false); err != nil {
		t.Fatal(err)
	}
	if err := second.Check(t.Context(), newBinding("api", "", 5), nil, false); apierrors.ReasonForError(err) != "QuotaExceeded" {
		t.Errorf("the second admission ignores the first: %v", err)
	}
	if err := second.Check(t.Context(), newBinding("api", "", 4), nil, false); err != nil {
		t.Error(err)
	}
}

func TestConcurrentRequestsNeverExceedTheLimit(t *testing.T) {
	e, _ := newEnforcer(t, nil, newQuota("shop", "a", "10"), newQuota("shop", "b", "7"))
	var admitted, refused sync.Map
	var requests sync.WaitGroup
	for i := range 20 {
		requests.Go(func() {
			name := fmt.Sprintf("web-%d", i)
			switch err := e.Check(t.Context(), newBinding(name, "", 1), nil, false); {
			case err == nil:
				admitted.Store(name, true)
			case apierrors.ReasonForError(err) == "QuotaExceeded":
				refused.Store(name, true)
			default:
				t.Error(err)
			}
		})
	}
	requests.Wait()
	if got := [2]int{count(&admitted), count(&refused)}; got != [2]int{7, 13} {
		t.Errorf("admitted and refused %v, want 7 and 13", got)
	}
}

func TestOnlyAdmissionWritesNothing(t *testing.T) {
	e, server := newEnforcer(t, nil, newQuota("shop", "team", "10"))
	e.isOnlyAdmission, server.beforePatch = true, func() { t.Error("a quota was written") }
	if err := e.Check(t.Context(), newBinding("web", "", 6), nil, false); err != nil {
		t.Fatal(err)
	}
	if err := e.Check(t.Context(), newBinding("api", "", 5), nil, false); apierrors.ReasonForError(err) != "QuotaExceeded" {
		t.Errorf("the request before does not count: %v", err)
	}
}

func count(of *sync.Map) (n int) {
	of.Range(func(any, any) bool { n++; return true })
	return n
}

func TestQuotaThatIsDeletedLimitsNothing(t *testing.T) {
	e, server := newEnforcer(t, nil, newQuota("shop", "team", "10"))
	delete(server.stored, "team")
	if err := e.Check(t.Context(), newBinding("web", "", 6), nil, false); err != nil {
		t.Error(err)
	}
}

func TestQuotaThatChangesDuringTheCheckIsReadAgain(t *testing.T) {
	e, server := newEnforcer(t, nil, newQuota("shop", "team", "10"))
	var once sync.Once
	server.beforePatch = func() {
		once.Do(func() {
			server.mu.Lock()
			defer server.mu.Unlock()
			server.store(newQuota("shop", "team", "5"))
		})
	}
	if err := e.Check(t.Context(), newBinding("web", "", 6), nil, false); apierrors.ReasonForError(err) != "QuotaExceeded" {
		t.Errorf("the lowered limit is ignored: %v", err)
	}
}

func TestUnknownUsageRefusesGrowth(t *testing.T) {
	e := &Enforcer{index: newIndex(time.Now), namespaces: newLocks(), now: time.Now}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.Check(ctx, newBinding("web", "", 1), nil, false); !apierrors.IsInternalError(err) {
		t.Errorf("growth: %v, want an internal error", err)
	}
	if err := e.Check(ctx, newBinding("web", "5", 1), newBinding("web", "5", 2), false); err != nil {
		t.Errorf("shrinking needs no usage: %v", err)
	}
}

func TestInvalidLedgerCountsAsEmpty(t *testing.T) {
	stored := newQuota("shop", "team", "10")
	stored.SetAnnotations(map[string]string{policyv1alpha1.FederatedResourceQuotaLedgerAnnotation: `{"reservations": 3`})
	reduced, err := reduceQuota(stored)
	if err != nil || len(reduced.ledger.Reservations) != 0 {
		t.Errorf("ledger %v: %v", reduced.ledger, err)
	}
}

func FuzzReduceQuota(f *testing.F) {
	f.Add(`{"reservations":[{"uid":"a","usage":{"cpu":"1"},"expires":null}],"settledAt":"x"}`)
	f.Fuzz(func(t *testing.T, annotation string) {
		stored := newQuota("shop", "team", "10")
		stored.SetAnnotations(map[string]string{policyv1alpha1.FederatedResourceQuotaLedgerAnnotation: annotation})
		e, _ := newEnforcer(t, nil, stored)
		_ = e.Check(t.Context(), newBinding("web", "", 6), nil, true)
	})
}

func TestDeletedBindingsAreForgottenAfterTheirReservations(t *testing.T) {
	now := time.Unix(1000, 0)
	i := newIndex(func() time.Time { return now })
	store := &bindingStore{index: i}
	deleted := reduceAll(t, newBinding("web", "5", 3), newBinding("api", "6", 3))
	store.Set(deleted[0])
	store.Remove(deleted[0])
	want := quota.StoredUsage{ResourceVersion: "5"}
	if diff := cmp.Diff(want, i.bindings["shop"]["web"]); diff != "" {
		t.Errorf("the deletion is not visible (-want +got):\n%s", diff)
	}
	now = now.Add(quota.ReservationLifetime + time.Second)
	store.Remove(deleted[1])
	if _, isKept := i.bindings["shop"]["web"]; isKept || len(i.tombstones) != 1 {
		t.Errorf("%v and %d tombstones are kept, want only that of api", i.bindings["shop"], len(i.tombstones))
	}
}

// BenchmarkCheck measures the admission of a binding without the write of the ledger: 200 namespaces with
// 50 bindings and a quota each.
func BenchmarkCheck(b *testing.B) {
	var quotas []*unstructured.Unstructured
	e, _ := newEnforcer(b, nil)
	for n := range 200 {
		namespace := fmt.Sprintf("ns-%d", n)
		quotas = append(quotas, newQuota(namespace, "team", "1000"))
		for i := range 50 {
			bound := newBinding(fmt.Sprintf("%s-web-%d", namespace, i), strconv.Itoa(n*50+i+1), 2)
			bound.Namespace = namespace
			(&bindingStore{index: e.index}).Set(reduceAll(b, bound)[0])
		}
	}
	for _, each := range quotas {
		reduced, err := reduceQuota(each)
		if err != nil {
			b.Fatal(err)
		}
		e.index.setQuota(reduced)
	}
	bound := newBinding("web", "", 6)
	bound.Namespace = "ns-7"
	for b.Loop() {
		if err := e.Check(b.Context(), bound, nil, true); err != nil {
			b.Fatal(err)
		}
	}
}
