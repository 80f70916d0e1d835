package execution

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/work"
)

// objectKey names one manifest of one Work.
type objectKey struct {
	work   types.NamespacedName
	kind   schema.GroupVersionKind
	object types.NamespacedName
}

func keyOf(of *workv1alpha1.Work, manifest *unstructured.Unstructured) objectKey {
	return objectKey{
		work:   nameOf(of),
		kind:   manifest.GroupVersionKind(),
		object: types.NamespacedName{Namespace: manifest.GetNamespace(), Name: manifest.GetName()},
	}
}

// entry is what a member answered when a manifest was last applied.
type entry struct {
	manifest, observed uint64
	// version is the resourceVersion of what was observed.
	version string
	contest work.Contest
	// told is who contests it.
	told string
}

// ledger remembers for every manifest what the member made of it. A member that
// defaults or changes fields that the manifest leaves out never shows the very
// manifest; without this memory every pass would write the same again.
//
// It may be lost: then an object is compared with its manifest once more.
type ledger struct {
	mu      sync.Mutex
	entries map[types.NamespacedName]map[objectKey]entry
	// released are Works that were let go and that the cache may still show.
	released map[types.NamespacedName]released
	// dispatching is what was told last about the dispatching of a Work.
	dispatching map[types.NamespacedName]string
	// wrote is when something of a Work was last changed in the member.
	wrote map[types.NamespacedName]time.Time
}

func newLedger() *ledger {
	return &ledger{
		entries:  map[types.NamespacedName]map[objectKey]entry{},
		released: map[types.NamespacedName]released{}, dispatching: map[types.NamespacedName]string{},
		wrote: map[types.NamespacedName]time.Time{},
	}
}

// remember notes that the manifest was applied and what the member holds now.
func (l *ledger) remember(key objectKey, manifest, observed *unstructured.Unstructured) {
	noted := entry{manifest: work.PrunedHash(manifest), observed: work.PrunedHash(observed), version: observed.GetResourceVersion()}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.entries[key.work] == nil {
		l.entries[key.work] = map[objectKey]entry{}
	}
	before := l.entries[key.work][key]
	noted.contest, noted.told = before.contest, before.told
	l.entries[key.work][key] = noted
}

// repair tells whether a write would repair an object: this very manifest was
// applied before, and the member does not hold it any more. wait is how long the
// repair has to wait because earlier ones did not last.
func (l *ledger) repair(key objectKey, manifest *unstructured.Unstructured, now time.Time) (repair bool, wait time.Duration) {
	l.mu.Lock()
	noted, ok := l.entries[key.work][key]
	l.mu.Unlock()
	if !ok || noted.manifest != work.PrunedHash(manifest) {
		return false, 0
	}
	return true, noted.contest.Wait(now)
}

// took tells whether this very manifest was applied, whatever became of it since.
func (l *ledger) took(key objectKey, manifest *unstructured.Unstructured) bool {
	l.mu.Lock()
	noted, ok := l.entries[key.work][key]
	l.mu.Unlock()
	return ok && noted.manifest == work.PrunedHash(manifest)
}

// tired tells whether the next repair of an object may be one too many.
func (l *ledger) tired(key objectKey) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries[key.work][key].contest.Repairs > 0
}

// repaired notes a repair, and who made it necessary.
func (l *ledger) repaired(key objectKey, now time.Time, told string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	noted, ok := l.entries[key.work][key]
	if !ok {
		return
	}
	noted.contest = noted.contest.Repaired(now)
	if told != "" {
		noted.told = told
	}
	l.entries[key.work][key] = noted
}

// contested tells who undoes the repairs of an object, and when to look again; 0
// means that nobody does.
func (l *ledger) contested(key objectKey, now time.Time) (told string, again time.Duration) {
	l.mu.Lock()
	noted := l.entries[key.work][key]
	l.mu.Unlock()
	rages, left := noted.contest.Rages(now)
	if !rages {
		return "", 0
	}
	return noted.told, sooner(noted.contest.Wait(now), left)
}

// differs tells whether an object was applied and is there in another version.
func (l *ledger) differs(key objectKey, version string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	noted, ok := l.entries[key.work][key]
	return ok && noted.version != version
}

// holds tells whether this very manifest was applied and the member still holds
// what it held then.
func (l *ledger) holds(key objectKey, manifest, observed *unstructured.Unstructured) bool {
	l.mu.Lock()
	noted, ok := l.entries[key.work][key]
	l.mu.Unlock()
	return ok && noted.manifest == work.PrunedHash(manifest) && noted.observed == work.PrunedHash(observed)
}

// released is a Work whose finalizer was removed.
type released struct {
	uid types.UID
	at  time.Time
}

// releasedFor is how long a watch may take to show that a released Work is gone.
// A Work that is there after that is there again, as after the restore of a backup.
const releasedFor = 30 * time.Second

// release notes that the finalizer of a Work was removed.
func (l *ledger) release(of *workv1alpha1.Work, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.entries, nameOf(of))
	l.released[nameOf(of)] = released{uid: of.UID, at: now}
}

// isReleased reports whether this very Work was released a moment ago.
func (l *ledger) isReleased(of *workv1alpha1.Work, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	known, ok := l.released[nameOf(of)]
	return ok && known.uid == of.UID && now.Sub(known.at) < releasedFor
}

func nameOf(of *workv1alpha1.Work) types.NamespacedName {
	return types.NamespacedName{Namespace: of.Namespace, Name: of.Name}
}

// forget drops what is remembered of a Work that is gone.
func (l *ledger) forget(of types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.entries, of)
	delete(l.released, of)
	delete(l.dispatching, of)
	delete(l.wrote, of)
}

// answerIsDue is for how long a status is expected to follow what was written.
const answerIsDue = 10 * time.Second

// noteWrite notes whether a pass changed something in the member, and tells
// whether one did lately: the member shows us our own write, which leads to a pass
// that finds everything as it should be.
func (l *ledger) noteWrite(of types.NamespacedName, wrote bool, now time.Time) (lately bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if wrote {
		l.wrote[of] = now
	}
	at, ok := l.wrote[of]
	if ok && now.Sub(at) >= answerIsDue {
		delete(l.wrote, of)
		return false
	}
	return ok
}

// news tells whether the status of the dispatching of a Work was not told yet. The
// condition that says so is written a moment later.
func (l *ledger) news(of *workv1alpha1.Work, status string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	told := l.dispatching[nameOf(of)] == status
	l.dispatching[nameOf(of)] = status
	return !told
}
