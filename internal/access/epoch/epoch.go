// Package epoch answers "has the storage of the control plane been replaced under this
// process, and may it delete objects in members?".
//
// A Watch looks at the ConfigMap of the epoch every few seconds, past all caches, and
// ends with ErrAnother as soon as the storage is not the one that the process knows.
// The host of the process then begins anew, without anything that it remembered.
//
// Invariants: an epoch that cannot be read allows no deletion. A process that may not
// write the ConfigMap still starts anew. After a process found the storage replaced, it
// deletes nothing until an epoch began that follows.
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

// ErrAnother says that the storage of the control plane is not the one that this
// process knows.
var ErrAnother = errors.New("the storage of the control plane was replaced, so that what this process remembers is not true any more")

// errNoNewEpoch says that the storage was replaced, and that no epoch which a user has to
// confirm began since.
var errNoNewEpoch = errors.New("the storage of the control plane was replaced and no epoch has begun since, so that nothing is deleted in member clusters: let a controller manager begin one, or begin it as for a restore by hand")

const (
	// pollInterval is how often a Watch looks.
	pollInterval = 5 * time.Second
	// readTimeout bounds one look.
	readTimeout = 30 * time.Second
	// maxReadAge is for how long a look answers questions about deletions.
	maxReadAge = time.Second
	// forbiddenGracePeriod is how long an agent that was refused from its start takes that for
	// something that passes: an API server that starts refuses what it allows a moment
	// later. A control plane of an earlier version lets no agent read the ConfigMap. The
	// components of a control plane are of one version and need the right.
	forbiddenGracePeriod = 30 * time.Second
)

// Options say how a Watch reaches the storage.
type Options struct {
	// Reader lists ConfigMaps, without a cache.
	Reader client.Reader
	// Writer creates and updates the ConfigMap. It is nil where only others do.
	Writer client.Writer
	// Memory is what the process knows from earlier Watches; nil is that of a process
	// that starts.
	Memory *Memory
	// Metrics may be nil.
	Metrics *Metrics
	// Now and NewID may be replaced by tests.
	Now   func() time.Time
	NewID func() string
}

// Watch knows the epoch of the storage. The mutex of the Memory guards the Watch too.
type Watch struct {
	options Options
	memory  *Memory

	// lastReadAt is when the last look succeeded.
	lastReadAt time.Time
	// forbiddenSince is when the API server first refused the look, zero once it allowed
	// one.
	forbiddenSince time.Time
	// isReplaced is set once the storage is not the one that this Watch knows.
	isReplaced bool
}

// New makes a Watch, which has seen nothing yet.
func New(o Options) *Watch {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = uuid.NewString
	}
	if o.Memory == nil {
		o.Memory = &Memory{}
	}
	return &Watch{options: o, memory: o.Memory}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: a process that stands by
// has caches too.
func (*Watch) NeedLeaderElection() bool { return false }

// Start looks at the epoch until ctx ends. It returns ErrAnother when the storage is
// another one.
func (w *Watch) Start(ctx context.Context) error {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		if err := w.check(ctx, 0); errors.Is(err, ErrAnother) {
			klog.FromContext(ctx).Info("Beginning anew", "reason", err.Error())
			return err
		} else if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).V(2).Info("Epoch of the control plane is not known", "cause", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Epoch returns the epoch of the control plane, the zero value where there is none. It
// reads the storage unless that was done within the last second. The epoch that comes
// with an error allows no deletion.
func (w *Watch) Epoch(ctx context.Context) (domain.Epoch, error) {
	if err := w.check(ctx, maxReadAge); err != nil {
		return domain.Epoch{Cause: domain.Unknown}, err
	}
	w.memory.mu.Lock()
	defer w.memory.mu.Unlock()
	return w.memory.last.Epoch, nil
}

// check reads the epoch unless that was done lately, and compares it with what was seen
// before. Callers wait for each other, so that one of them asks for all.
func (w *Watch) check(ctx context.Context, lately time.Duration) error {
	w.memory.mu.Lock()
	defer w.memory.mu.Unlock()
	if w.isReplaced {
		return ErrAnother
	}
	if lately > 0 && !w.lastReadAt.IsZero() && w.options.Now().Sub(w.lastReadAt) < lately {
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

// handleForbidden decides about a look that the API server did not allow. An agent that never
// was allowed one serves a control plane that has no epochs.
func (w *Watch) handleForbidden(err error) error {
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

// compare compares a look with the one before.
func (w *Watch) compare(ctx context.Context, now domain.Sight, stored *corev1.ConfigMap) error {
	before, verdict := w.memory.last, domain.Same
	if w.memory.isKnown {
		verdict = domain.Judge(before, now)
	}
	if verdict == domain.Same {
		return w.acceptStorage(ctx, now, stored)
	}
	announced := verdict == domain.Another && now.Epoch.Follows(before.Epoch)
	if !announced {
		if err := w.beginEpoch(ctx, stored, domain.StorageReplaced); err != nil {
			return err
		}
	}
	w.memory.reset(announced || !w.expectsEpochs(before.Epoch))
	w.isReplaced = true
	return fmt.Errorf("%w: epoch %q at resourceVersion %s, before %q at %s",
		ErrAnother, now.Epoch.ID, now.Version, before.Epoch.ID, before.Version)
}

// expectsEpochs reports whether an epoch begins after a storage was replaced. A control
// plane of an earlier version begins none.
func (w *Watch) expectsEpochs(before domain.Epoch) bool {
	return w.options.Writer != nil || before != domain.Epoch{}
}

// acceptStorage notes a look at the storage that is known, or the first look at one. If the
// storage was replaced, it waits for the epoch that follows.
func (w *Watch) acceptStorage(ctx context.Context, now domain.Sight, stored *corev1.ConfigMap) error {
	if w.memory.awaitsNewEpoch(now.Epoch) {
		if err := w.beginEpoch(ctx, stored, domain.StorageReplaced); err != nil {
			return err
		}
		return fmt.Errorf("%w: ConfigMap %s/%s holds epoch %q, and before the replacement it held %q",
			errNoNewEpoch, clusterv1alpha1.NamespaceKarmadaSystem, clusterv1alpha1.EpochName, now.Epoch.ID, w.memory.replaced.ID)
	}
	w.memory.store(now)
	w.lastReadAt = w.options.Now()
	w.options.Metrics.setEpoch(now.Epoch)
	return w.beginEpoch(ctx, stored, domain.Installed)
}

// readEpoch lists the ConfigMap, for a list tells the resourceVersion of the storage. The
// ConfigMap is nil where there is none.
func (w *Watch) readEpoch(ctx context.Context) (domain.Sight, *corev1.ConfigMap, error) {
	list := &corev1.ConfigMapList{}
	err := w.options.Reader.List(ctx, list, client.InNamespace(clusterv1alpha1.NamespaceKarmadaSystem),
		client.MatchingFields{"metadata.name": clusterv1alpha1.EpochName})
	if err != nil {
		return domain.Sight{}, nil, fmt.Errorf("reading ConfigMap %s/%s: %w", clusterv1alpha1.NamespaceKarmadaSystem, clusterv1alpha1.EpochName, err)
	}
	sight := domain.Sight{Version: list.ResourceVersion}
	for i := range list.Items {
		if stored := &list.Items[i]; stored.Name == clusterv1alpha1.EpochName {
			sight.Epoch = domain.Read(stored.Data, stored.Annotations)
			return sight, stored, nil
		}
	}
	return sight, nil, nil
}

// beginEpoch writes a new epoch, the first one only where there is none. Another process may
// have done so first, and a process need not have the right.
func (w *Watch) beginEpoch(ctx context.Context, stored *corev1.ConfigMap, cause domain.Cause) error {
	if w.options.Writer == nil || cause == domain.Installed && stored != nil {
		return nil
	}
	next := domain.New(w.options.NewID(), cause, w.options.Now(), time.Time{})
	var err error
	if stored == nil {
		err = w.options.Writer.Create(ctx, Object(next))
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

// Object is the ConfigMap of an epoch.
func Object(e domain.Epoch) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: clusterv1alpha1.NamespaceKarmadaSystem, Name: clusterv1alpha1.EpochName,
			Labels: map[string]string{clusterv1alpha1.KarmadaSystemLabel: clusterv1alpha1.KarmadaSystemLabelValue},
		},
		Data: e.Data(),
	}
}
