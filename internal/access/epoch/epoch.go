// Package epoch detects that the storage of the control plane was replaced while this process runs,
// and decides whether the process may delete objects in members.
//
// A Watcher reads the ConfigMap of the epoch every 5 seconds without a cache. It compares the epoch
// and the resourceVersion of the storage with its previous read. If the epoch or the
// resourceVersion shows that the storage was replaced, for example by a backup, the Watcher ends
// with ErrStorageReplaced. The components of the process then start again without any state.
//
// Invariants: if the epoch cannot be read, no deletion is allowed. A process starts its components
// again even if it has no right to write the ConfigMap. After a process found that the storage was
// replaced, it deletes nothing until a new epoch has begun.
package epoch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	domain "karmada.io/karmada/internal/domain/epoch"
)

// ErrStorageReplaced reports that the storage was replaced since the previous read of this process.
var ErrStorageReplaced = errors.New("the storage of the control plane was replaced, so the state of this process is not valid any more")

// errNoNewEpoch reports that the storage was replaced, and that since then no epoch has begun that
// needs the confirmation of a user.
var errNoNewEpoch = errors.New("the storage of the control plane was replaced and no new epoch has begun since, so nothing is deleted in member clusters: start a controller manager, which begins one, or begin one by hand as for a restore")

const (
	// pollInterval is the interval at which a Watcher reads the epoch.
	pollInterval = 5 * time.Second
	// readTimeout limits the duration of one read.
	readTimeout = 30 * time.Second
	// maxReadAge is how long the result of a read may be used for decisions about deletions.
	maxReadAge = time.Second
	// forbiddenGracePeriod is how long an agent treats Forbidden at its start as temporary. A
	// starting API server may reject requests that it allows a moment later. After this period,
	// Forbidden means that the control plane has an earlier version, which lets no agent read the
	// ConfigMap. For components of the control plane, which need the right and have the same
	// version, Forbidden is always an error.
	forbiddenGracePeriod = 30 * time.Second
)

// Options configure a Watcher.
type Options struct {
	// Reader lists ConfigMaps without a cache.
	Reader client.Reader
	// Writer creates and updates the ConfigMap. It is nil in an agent.
	Writer client.Writer
	// Record is the state that earlier Watchers of the process recorded. nil means an empty record,
	// as in a process that has just started.
	Record *StorageRecord
	// Metrics may be nil.
	Metrics *Metrics
	// Now and NewID may be replaced by tests.
	Now   func() time.Time
	NewID func() string
}

// Watcher monitors the epoch of the storage. The mutex of the StorageRecord also guards the
// Watcher.
type Watcher struct {
	options Options
	memory  *StorageRecord

	// lastReadAt is the time of the last successful read.
	lastReadAt time.Time
	// forbiddenSince is the time at which the API server first rejected the read as Forbidden. It
	// is zero after the API server has allowed a read.
	forbiddenSince time.Time
	// isReplaced is set when a read shows that the storage was replaced.
	isReplaced bool
}

// New returns a Watcher that has not read anything yet.
func New(o Options) *Watcher {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = uuid.NewString
	}
	if o.Record == nil {
		o.Record = &StorageRecord{}
	}
	return &Watcher{options: o, memory: o.Record}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable. It returns false because the caches
// of a standby replica become invalid too if the storage is replaced.
func (*Watcher) NeedLeaderElection() bool { return false }

// Start reads the epoch periodically until ctx ends. It returns ErrStorageReplaced if the storage
// was replaced.
func (w *Watcher) Start(ctx context.Context) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		if err := w.check(ctx, 0); errors.Is(err, ErrStorageReplaced) {
			klog.FromContext(ctx).Info("Starting the components again", "reason", err.Error())
			return err
		} else if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).V(2).Info("Epoch of the control plane is unknown", "cause", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Epoch returns the epoch of the control plane, or the zero value if the control plane has no
// epoch. It reads the storage unless the last read is less than a second old. An epoch that is
// returned with an error allows no deletion.
func (w *Watcher) Epoch(ctx context.Context) (domain.Epoch, error) {
	if err := w.check(ctx, maxReadAge); err != nil {
		return domain.Epoch{Cause: domain.CauseUnknown}, err
	}
	w.memory.mu.Lock()
	defer w.memory.mu.Unlock()
	return w.memory.last.Epoch, nil
}

// check reads the epoch unless it was read recently, and compares the result with the previous
// read. Concurrent callers share one read.
func (w *Watcher) check(ctx context.Context, maxAge time.Duration) error {
	w.memory.mu.Lock()
	defer w.memory.mu.Unlock()
	if w.isReplaced {
		return ErrStorageReplaced
	}
	if maxAge > 0 && !w.lastReadAt.IsZero() && w.options.Now().Sub(w.lastReadAt) < maxAge {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	sight, stored, err := w.readEpoch(ctx)
	if apierrors.IsForbidden(err) {
		return w.handleForbidden(err)
	}
	if err != nil {
		return err
	}
	w.forbiddenSince = time.Time{}
	return w.compare(ctx, sight, stored)
}

// handleForbidden handles a read that the API server rejected as Forbidden. If the API server never
// allowed a read by this agent, the agent belongs to a control plane without epochs.
func (w *Watcher) handleForbidden(err error) error {
	now := w.options.Now()
	if w.forbiddenSince.IsZero() {
		w.forbiddenSince = now
	}
	if w.options.Writer != nil || w.memory.isKnown || w.memory.replaced != nil || now.Sub(w.forbiddenSince) < forbiddenGracePeriod {
		return fmt.Errorf("%w: allow the user of this process to list this ConfigMap", err)
	}
	w.lastReadAt = now
	return nil
}

// compare compares the state of the storage with the previous read.
func (w *Watcher) compare(ctx context.Context, now domain.Snapshot, stored *corev1.ConfigMap) error {
	before, change := w.memory.last, domain.SameStorage
	if w.memory.isKnown {
		change = domain.CompareSnapshots(before, now)
	}
	if change == domain.SameStorage {
		return w.acceptStorage(ctx, now, stored)
	}
	announced := change == domain.AnotherEpoch && now.Epoch.Follows(before.Epoch)
	if !announced {
		if err := w.beginEpoch(ctx, stored, domain.CauseStorageReplaced); err != nil {
			return err
		}
	}
	w.memory.reset(announced || !w.expectsEpochs(before.Epoch))
	w.isReplaced = true
	return fmt.Errorf("%w: epoch %q at resourceVersion %s, before %q at %s",
		ErrStorageReplaced, now.Epoch.ID, now.ResourceVersion, before.Epoch.ID, before.ResourceVersion)
}

// expectsEpochs reports whether a new epoch begins after the storage was replaced. It is false for
// a control plane of an earlier version, which has no epochs.
func (w *Watcher) expectsEpochs(before domain.Epoch) bool {
	return w.options.Writer != nil || before != domain.Epoch{}
}

// acceptStorage records the first read, or a read of the same storage as the previous read. If the
// storage was replaced before, acceptStorage returns an error until the new epoch has begun.
func (w *Watcher) acceptStorage(ctx context.Context, now domain.Snapshot, stored *corev1.ConfigMap) error {
	if w.memory.awaitsNewEpoch(now.Epoch) {
		if err := w.beginEpoch(ctx, stored, domain.CauseStorageReplaced); err != nil {
			return err
		}
		return fmt.Errorf("%w: ConfigMap %s/%s holds epoch %q, and before the replacement it held %q",
			errNoNewEpoch, clusterv1alpha1.NamespaceKarmadaSystem, clusterv1alpha1.EpochName, now.Epoch.ID, w.memory.replaced.ID)
	}
	w.memory.store(now)
	w.lastReadAt = w.options.Now()
	w.options.Metrics.setEpoch(now.Epoch)
	return w.beginEpoch(ctx, stored, domain.CauseInstalled)
}

// readEpoch lists the ConfigMap of the epoch, because a list contains the resourceVersion of the
// storage. The returned ConfigMap is nil if it does not exist.
func (w *Watcher) readEpoch(ctx context.Context) (domain.Snapshot, *corev1.ConfigMap, error) {
	list := &corev1.ConfigMapList{}
	err := w.options.Reader.List(ctx, list, client.InNamespace(clusterv1alpha1.NamespaceKarmadaSystem),
		client.MatchingFields{"metadata.name": clusterv1alpha1.EpochName})
	if err != nil {
		return domain.Snapshot{}, nil, fmt.Errorf("reading ConfigMap %s/%s: %w", clusterv1alpha1.NamespaceKarmadaSystem,
			clusterv1alpha1.EpochName, err)
	}
	sight := domain.Snapshot{ResourceVersion: list.ResourceVersion}
	for i := range list.Items {
		if stored := &list.Items[i]; stored.Name == clusterv1alpha1.EpochName {
			sight.Epoch = domain.Read(stored.Data, stored.Annotations)
			return sight, stored, nil
		}
	}
	return sight, nil, nil
}

// beginEpoch writes a new epoch. It writes the first epoch only if there is none. It returns no
// error if another process has written the epoch first, or if this process has no right to write
// it.
func (w *Watcher) beginEpoch(ctx context.Context, stored *corev1.ConfigMap, cause domain.Cause) error {
	if w.options.Writer == nil || cause == domain.CauseInstalled && stored != nil {
		return nil
	}
	next := domain.New(w.options.NewID(), cause, w.options.Now(), time.Time{})
	var err error
	if stored == nil {
		err = w.options.Writer.Create(ctx, NewConfigMap(next))
	} else {
		fresh := stored.DeepCopy()
		fresh.Data = next.Data()
		err = w.options.Writer.Update(ctx, fresh)
	}
	if err == nil || apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("writing ConfigMap %s/%s: %w", clusterv1alpha1.NamespaceKarmadaSystem, clusterv1alpha1.EpochName, err)
}

// NewConfigMap returns the ConfigMap that stores an epoch.
func NewConfigMap(e domain.Epoch) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: clusterv1alpha1.NamespaceKarmadaSystem, Name: clusterv1alpha1.EpochName,
			Labels: map[string]string{clusterv1alpha1.KarmadaSystemLabel: clusterv1alpha1.KarmadaSystemLabelValue},
		},
		Data: e.Data(),
	}
}
