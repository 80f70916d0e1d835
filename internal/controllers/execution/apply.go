package execution

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/domain/work"
)

const (
	// listSyncTimeout is the maximum time to wait for the first list of a kind. After that time
	// objects are read one by one. The wait is useful because one list costs less than one read for
	// every Work.
	listSyncTimeout = 2 * time.Second
	// unlistedRetryDelay is the delay before the next pass of a Work that contains a kind whose
	// first list did not arrive in time.
	unlistedRetryDelay = 10 * time.Second
	// maxWriteAttempts is the maximum number of attempts to write an object. Attempts can conflict,
	// because other programs also write the object.
	maxWriteAttempts = 5
)

// delivery is the state of one pass over the manifests of a Work.
type delivery struct {
	member *member.Member
	work   *workv1alpha1.Work
	// kinds are the kinds of the manifests.
	kinds []schema.GroupVersionKind
	// hasWritten is true if the pass changed an object in the member. In that case a new status is
	// expected.
	hasWritten bool
	// driftConflicts are the descriptions of the drift conflicts of the objects of the Work.
	driftConflicts []string
	// requeueAfter is the delay until the next pass if this pass succeeds. 0 means that no further
	// pass is needed.
	requeueAfter time.Duration
}

// applyManifest creates or updates the object of a manifest in the member. It writes nothing if the
// object already equals the manifest.
func (c *controller) applyManifest(ctx context.Context, d *delivery, manifest *unstructured.Unstructured) error {
	kind := manifest.GroupVersionKind()
	// The Work is added to the index before the rules are read, so that no change of the rules is
	// missed.
	c.interpreted.Add(workKey(d.work), kind)
	if err := d.member.Watch(kind); err != nil {
		return fmt.Errorf("applying %s in cluster %s: %w", describeObject(manifest), d.member.Name, err)
	}
	namespaced, err := d.member.IsNamespaced(kind)
	if err != nil {
		return fmt.Errorf("applying %s in cluster %s: %w", describeObject(manifest), d.member.Name, err)
	}
	if err := work.ValidateScope(d.member.Name, manifest, namespaced); err != nil {
		return err
	}
	if !d.member.WaitForList(ctx, kind, listSyncTimeout) && d.member.WatchDenial(kind) == nil {
		// Another pass is needed, because a change or deletion of the object before the list
		// arrives causes no event.
		d.requeueAfter = shorterDelay(d.requeueAfter, unlistedRetryDelay)
	}
	observed, _, err := d.member.Get(ctx, kind, client.ObjectKeyFromObject(manifest))
	switch {
	case apierrors.IsNotFound(err):
		err = c.createObject(ctx, d, manifest)
	case err != nil:
		return newReadError(d, manifest, err)
	default:
		err = c.updateObject(ctx, d, manifest, observed)
	}
	if message, retryAfter := c.tracker.driftConflict(keyOf(d.work, manifest), c.now()); retryAfter > 0 {
		d.driftConflicts = append(d.driftConflicts, message)
		d.requeueAfter = shorterDelay(d.requeueAfter, retryAfter)
	}
	return err
}

// createObject creates the object in the member, unless it is a finished Job. If the member rejects
// the request, the object may exist, because the cache is older than the object, or because the
// object has no Karmada label and is not in the cache. In that case createObject reads the object
// from the API server of the member and updates it.
func (c *controller) createObject(ctx context.Context, d *delivery, manifest *unstructured.Unstructured) error {
	if work.WasExecuted(d.work, manifest) {
		return nil
	}
	key := keyOf(d.work, manifest)
	repair, wait := c.tracker.repairDelay(key, manifest, c.now())
	if wait > 0 {
		return nil
	}
	created := manifest.DeepCopy()
	err := d.member.Client().Create(ctx, created)
	if mayObjectExist(err) {
		observed, liveErr := c.readLive(ctx, d, manifest)
		switch {
		case liveErr == nil:
			return c.updateObject(ctx, d, manifest, observed)
		case apierrors.IsAlreadyExists(err):
			return liveErr
		}
	}
	c.metrics.countCreate(d.member.Name, manifest, repair, err)
	if err != nil {
		return fmt.Errorf("creating %s in cluster %s: %w", describeObject(manifest), d.member.Name,
			explainRejection(ctx, d, manifest, newRejectionError(err, true)))
	}
	d.hasWritten = true
	c.tracker.recordApplied(key, manifest, created)
	if repair {
		c.tracker.recordRepair(key, c.now(), work.DescribeDriftConflict(d.member.Name, manifest, nil, member.FieldManager))
	}
	return nil
}

func (c *controller) updateObject(ctx context.Context, d *delivery, manifest, observed *unstructured.Unstructured) error {
	for attempt := 1; ; attempt++ {
		err := c.attemptUpdate(ctx, d, manifest, observed)
		if !apierrors.IsConflict(err) || attempt == maxWriteAttempts {
			return err
		}
		if observed, err = c.readLive(ctx, d, manifest); err != nil {
			return err
		}
	}
}

func (c *controller) attemptUpdate(ctx context.Context, d *delivery, manifest, observed *unstructured.Unstructured) error {
	if ok, owner := work.MayWrite(d.work, observed, manifest); !ok {
		return work.NewConflict(d.member.Name, observed, owner)
	}
	key := keyOf(d.work, manifest)
	if c.tracker.isUnchanged(key, manifest, observed) {
		c.metrics.countUpdate(d.member.Name, manifest, updateUnchanged, nil)
		return nil
	}
	desired, err := work.DesiredObject(manifest, observed, c.retainRule(ctx, manifest))
	if err != nil {
		return fmt.Errorf("cluster %s: %w", d.member.Name, err)
	}
	if work.IsInSync(desired, observed) {
		c.metrics.countUpdate(d.member.Name, manifest, updateUnchanged, nil)
		c.tracker.recordApplied(key, manifest, observed)
		return nil
	}
	repair, wait := c.tracker.repairDelay(key, manifest, c.now())
	if wait > 0 {
		return nil
	}
	conflictMessage := ""
	if repair && c.tracker.hasRecentRepairs(key) {
		conflictMessage = c.describeDriftConflict(ctx, d, manifest)
	}
	if err := d.member.Client().Update(ctx, desired); err != nil {
		c.metrics.countUpdate(d.member.Name, manifest, updateFailed, err)
		return fmt.Errorf("updating %s in cluster %s: %w", describeObject(manifest), d.member.Name,
			explainRejection(ctx, d, manifest, newRejectionError(err, false)))
	}
	d.hasWritten = true
	c.metrics.countUpdate(d.member.Name, manifest, updateDone, nil)
	c.tracker.recordApplied(key, manifest, desired)
	if repair {
		c.tracker.recordRepair(key, c.now(), conflictMessage)
	}
	return nil
}

// describeDriftConflict returns a message that names the field managers that revert the repairs of
// an object. It reads the object from the API server of the member, because caches do not contain
// managed fields. This costs little, because such repairs are rare.
func (c *controller) describeDriftConflict(ctx context.Context, d *delivery, manifest *unstructured.Unstructured) string {
	observed, err := c.readLive(ctx, d, manifest)
	if err != nil {
		// The conflict is reported now, without the field managers, because a later pass can add
		// them.
		observed = manifest
	}
	return work.DescribeDriftConflict(d.member.Name, manifest, observed, member.FieldManager)
}

// readLive reads the object of a manifest from the API server of the member.
func (c *controller) readLive(ctx context.Context, d *delivery, manifest *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	observed, err := d.member.GetLive(ctx, manifest.GroupVersionKind(), client.ObjectKeyFromObject(manifest))
	if err != nil {
		return nil, newReadError(d, manifest, err)
	}
	return observed, nil
}

func newReadError(d *delivery, manifest *unstructured.Unstructured, err error) error {
	return fmt.Errorf("reading %s in cluster %s: %w", describeObject(manifest), d.member.Name, err)
}

// retainRule returns the rule of a kind for fields that the member owns. It returns nil if the kind
// has no such rule.
func (c *controller) retainRule(ctx context.Context, manifest *unstructured.Unstructured) work.RetainFunc {
	rule := c.rules.Rules(manifest.GroupVersionKind()).Retain
	if rule == nil {
		return nil
	}
	return func(desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		retained, err := rule(ctx, desired, observed)
		if err != nil {
			return nil, &retainError{err}
		}
		return retained, nil
	}
}

// retainError is an error of the rule for fields that the member owns.
type retainError struct{ error }

func (r *retainError) Unwrap() error { return r.error }

// shorterDelay returns the shorter of two delays. 0 means that there is no delay to compare.
func shorterDelay(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

func describeObject(object *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s", object.GetKind(), client.ObjectKeyFromObject(object))
}

// templateOf returns the template of a manifest, with only the fields that an event needs. It
// returns nil if the manifest has no template.
func templateOf(manifest *unstructured.Unstructured) *unstructured.Unstructured {
	uid := manifest.GetAnnotations()[workv1alpha2.ResourceTemplateUIDAnnotation]
	if uid == "" {
		return nil
	}
	template := &unstructured.Unstructured{}
	template.SetGroupVersionKind(manifest.GroupVersionKind())
	template.SetNamespace(manifest.GetNamespace())
	template.SetName(manifest.GetName())
	template.SetUID(types.UID(uid))
	return template
}
