package quotas

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/quota"
)

// index holds the usages of all bindings and the limits of all quotas by namespace.
type index struct {
	now func() time.Time

	mu         sync.Mutex
	bindings   map[string]map[types.UID]quota.StoredUsage
	tombstones []tombstone
	quotas     map[string]map[string]storedQuota
	// ledgers are the ledgers that are not stored in an annotation, by namespace.
	ledgers map[string]quota.Ledger
	// version is the newest resource version of a binding. listVersion is that of the current list.
	version, listVersion string
	missingLists         int
	// listed is closed when bindings and quotas have been listed.
	listed chan struct{}
}

// tombstone is a deleted binding. It is kept as long as a reservation of the binding may be open.
type tombstone struct {
	namespace string
	uid       types.UID
	deletedAt time.Time
}

// storedBinding is the relevant part of a ResourceBinding.
type storedBinding struct {
	namespace string
	uid       types.UID
	usage     quota.StoredUsage
}

// storedQuota is the relevant part of a FederatedResourceQuota.
type storedQuota struct {
	namespace, name, resourceVersion string
	overall                          corev1.ResourceList
	ledger                           quota.Ledger
}

func newIndex(now func() time.Time) *index {
	return &index{
		now: now, bindings: map[string]map[types.UID]quota.StoredUsage{}, quotas: map[string]map[string]storedQuota{},
		ledgers: map[string]quota.Ledger{}, missingLists: 2, listed: make(chan struct{}),
	}
}

// namespace returns the state of a namespace, and the quota whose annotation holds its ledger: the
// first by name. It reports false if the namespace has no quota.
func (i *index) namespace(name string) (quota.Namespace, storedQuota, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	names := slices.Sorted(maps.Keys(i.quotas[name]))
	if len(names) == 0 {
		return quota.Namespace{}, storedQuota{}, false
	}
	state := quota.Namespace{Name: name, Stored: maps.Clone(i.bindings[name]), Version: i.version, Ledger: i.ledgers[name]}
	for _, each := range names {
		stored := i.quotas[name][each]
		state.Limits = append(state.Limits, quota.Limit{QuotaName: each, Overall: stored.overall})
		// Another quota holds the ledger if it was the first by name until now.
		state.Ledger = state.Ledger.Merge(stored.ledger)
	}
	return state, i.quotas[name][names[0]], true
}

func (i *index) setLedger(namespace string, ledger quota.Ledger) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ledgers[namespace] = ledger
}

// recordListVersion stores the resource version of the list of bindings in progress.
func (i *index) recordListVersion(version string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.listVersion = version
}

// endList records that the first list of a kind is complete. The caller holds i.mu.
func (i *index) endList(isFirst *bool) {
	if !*isFirst {
		return
	}
	*isFirst = false
	if i.missingLists--; i.missingLists == 0 {
		close(i.listed)
	}
}

// setQuota stores a quota unless a newer state is stored. The caller holds i.mu.
func (i *index) setQuota(changed storedQuota) {
	stored, ok := i.quotas[changed.namespace][changed.name]
	if ok && quota.IsOlder(changed.resourceVersion, stored.resourceVersion) {
		return
	}
	setIn(i.quotas, changed.namespace, changed.name, changed)
}

// bindingStore stores the bindings that a watch delivers. Its methods are called with the lock.
type bindingStore struct {
	*index
	isFirst bool
}

// Set implements watches.ReducedStore, as do the methods below.
func (b *bindingStore) Set(changed storedBinding) {
	setIn(b.bindings, changed.namespace, changed.uid, changed.usage)
	b.advance(changed.usage.ResourceVersion)
}

// Remove keeps a tombstone of a deleted binding.
func (b *bindingStore) Remove(deleted storedBinding) {
	deleted.usage.Usage = nil
	b.Set(deleted)
	now := b.now()
	for len(b.tombstones) > 0 && now.Sub(b.tombstones[0].deletedAt) > quota.ReservationLifetime {
		deleteIn(b.bindings, b.tombstones[0].namespace, b.tombstones[0].uid)
		b.tombstones = b.tombstones[1:]
	}
	b.tombstones = append(b.tombstones, tombstone{namespace: deleted.namespace, uid: deleted.uid, deletedAt: now})
}

// Replace stores the bindings of a complete list.
func (b *bindingStore) Replace(listed []storedBinding) {
	clear(b.bindings)
	b.tombstones = nil
	for _, each := range listed {
		b.Set(each)
	}
	b.advance(b.listVersion)
	b.endList(&b.isFirst)
}

func (b *bindingStore) advance(version string) {
	if quota.IsOlder(b.version, version) {
		b.version = version
	}
}

// quotaStore stores the quotas that a watch delivers. Its methods are called with the lock.
type quotaStore struct {
	*index
	isFirst bool
}

// Set implements watches.ReducedStore, as do the methods below.
func (q *quotaStore) Set(changed storedQuota) { q.setQuota(changed) }

// Remove removes a deleted quota.
func (q *quotaStore) Remove(deleted storedQuota) {
	deleteIn(q.quotas, deleted.namespace, deleted.name)
	if len(q.quotas[deleted.namespace]) == 0 {
		delete(q.ledgers, deleted.namespace)
	}
}

// Replace stores the quotas of a complete list.
func (q *quotaStore) Replace(listed []storedQuota) {
	clear(q.quotas)
	for _, each := range listed {
		q.Set(each)
	}
	q.endList(&q.isFirst)
}

// reduceBinding returns the relevant part of a ResourceBinding. It decodes only the fields on which
// the usage depends, because most of a binding is larger.
func reduceBinding(object runtime.Object) (storedBinding, error) {
	stored, ok := object.(*unstructured.Unstructured)
	if !ok {
		return storedBinding{}, fmt.Errorf("got %T instead of a ResourceBinding", object)
	}
	reduced := storedBinding{namespace: stored.GetNamespace(), uid: stored.GetUID()}
	content, _ := stored.Object["spec"].(map[string]any)
	fields := map[string]any{}
	for _, field := range []string{"clusters", "replicaRequirements", "components"} {
		if value, ok := content[field]; ok {
			fields[field] = value
		}
	}
	spec := workv1alpha2.ResourceBindingSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &spec); err != nil {
		return reduced, fmt.Errorf("decoding ResourceBinding %s/%s: %w", stored.GetNamespace(), stored.GetName(), err)
	}
	reduced.usage = quota.StoredUsage{ResourceVersion: stored.GetResourceVersion(), Usage: quota.BindingUsage(&spec)}
	return reduced, nil
}

// reduceQuota returns the relevant part of a FederatedResourceQuota. An invalid ledger counts as
// empty, because its reservations last only a short time and a user may have changed the annotation.
func reduceQuota(object runtime.Object) (storedQuota, error) {
	stored, ok := object.(*unstructured.Unstructured)
	if !ok {
		return storedQuota{}, fmt.Errorf("got %T instead of a FederatedResourceQuota", object)
	}
	reduced := storedQuota{namespace: stored.GetNamespace(), name: stored.GetName(), resourceVersion: stored.GetResourceVersion()}
	decoded := policyv1alpha1.FederatedResourceQuota{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, &decoded); err != nil {
		return reduced, fmt.Errorf("decoding FederatedResourceQuota %s/%s: %w", reduced.namespace, reduced.name, err)
	}
	reduced.overall = decoded.Spec.Overall
	if text := decoded.Annotations[policyv1alpha1.FederatedResourceQuotaLedgerAnnotation]; text != "" {
		ledger := quota.Ledger{}
		if json.Unmarshal([]byte(text), &ledger) == nil {
			reduced.ledger = ledger
		}
	}
	return reduced, nil
}

func setIn[K comparable, V any](all map[string]map[K]V, namespace string, key K, value V) {
	if all[namespace] == nil {
		all[namespace] = map[K]V{}
	}
	all[namespace][key] = value
}

func deleteIn[K comparable, V any](all map[string]map[K]V, namespace string, key K) {
	delete(all[namespace], key)
	if len(all[namespace]) == 0 {
		delete(all, namespace)
	}
}
