package execution

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/domain/work"
)

const (
	// syncPatience is how long to wait for the first list of a kind before asking
	// for single objects: one list is cheaper than a get for every Work.
	syncPatience = 2 * time.Second
	// writeTries bounds the tries against an object that others write too.
	writeTries = 5
)

// delivery is one pass over the manifests of a Work.
type delivery struct {
	target *member.Member
	of     *workv1alpha1.Work
	// wrote tells that something was changed in the member, whose answer to that is
	// a status which is about to come.
	wrote bool
	// contests tell who undoes what is repaired.
	contests []string
	// again is when to look again though all is well; 0 means never.
	again time.Duration
}

// apply makes the member's object what the manifest says, and does nothing if it
// is that already.
func (c *controller) apply(ctx context.Context, d *delivery, manifest *unstructured.Unstructured) error {
	kind := manifest.GroupVersionKind()
	if err := d.target.Watch(ctx, kind); err != nil {
		return fmt.Errorf("applying %s in cluster %s: %w", describe(manifest), d.target.Name, err)
	}
	namespaced, err := d.target.Namespaced(kind)
	if err != nil {
		return fmt.Errorf("applying %s in cluster %s: %w", describe(manifest), d.target.Name, err)
	}
	if err := work.CheckScope(d.target.Name, manifest, namespaced); err != nil {
		return err
	}
	d.target.AwaitSync(ctx, kind, syncPatience)
	observed, _, err := d.target.Get(ctx, kind, client.ObjectKeyFromObject(manifest))
	switch {
	case apierrors.IsNotFound(err):
		err = c.create(ctx, d, manifest)
	case err != nil:
		return unreadable(d, manifest, err)
	default:
		err = c.update(ctx, d, manifest, observed)
	}
	if told, again := c.applied.contested(keyOf(d.of, manifest), c.now()); again > 0 {
		d.contests = append(d.contests, told)
		d.again = sooner(d.again, again)
	}
	return err
}

// create makes the object. If the member refuses that, the object may exist: it is
// newer than our view, or it is not managed and therefore not in the cache. Then the
// live object decides.
func (c *controller) create(ctx context.Context, d *delivery, manifest *unstructured.Unstructured) error {
	key := keyOf(d.of, manifest)
	repair, wait := c.applied.repair(key, manifest, c.now())
	if wait > 0 {
		return nil
	}
	created := manifest.DeepCopy()
	err := d.target.Client().Create(ctx, created)
	if mayExist(err) {
		observed, liveErr := c.live(ctx, d, manifest)
		switch {
		case liveErr == nil:
			return c.update(ctx, d, manifest, observed)
		case apierrors.IsAlreadyExists(err):
			return liveErr
		}
	}
	c.counters.create(d.target.Name, manifest, repair, err)
	if err != nil {
		return fmt.Errorf("creating %s in cluster %s: %w", describe(manifest), d.target.Name, blameOverrides(d.of, manifest, refused(err, true)))
	}
	d.wrote = true
	c.applied.remember(key, manifest, created)
	if repair {
		c.applied.repaired(key, c.now(), work.DescribeContest(d.target.Name, manifest, nil, member.FieldManager))
	}
	return nil
}

func (c *controller) update(ctx context.Context, d *delivery, manifest, observed *unstructured.Unstructured) error {
	for try := 1; ; try++ {
		err := c.updateOnce(ctx, d, manifest, observed)
		if !apierrors.IsConflict(err) || try == writeTries {
			return err
		}
		if observed, err = c.live(ctx, d, manifest); err != nil {
			return err
		}
	}
}

func (c *controller) updateOnce(ctx context.Context, d *delivery, manifest, observed *unstructured.Unstructured) error {
	if ok, owner := work.MayWrite(d.of, observed, manifest); !ok {
		return work.NewConflict(d.target.Name, observed, owner)
	}
	key := keyOf(d.of, manifest)
	if c.applied.holds(key, manifest, observed) {
		c.counters.update(d.target.Name, manifest, updateUnchanged, nil)
		return nil
	}
	desired, err := work.Desired(manifest, observed, c.retain(ctx, manifest))
	if err != nil {
		return fmt.Errorf("cluster %s: %w", d.target.Name, err)
	}
	if work.Same(desired, observed) {
		c.counters.update(d.target.Name, manifest, updateUnchanged, nil)
		c.applied.remember(key, manifest, observed)
		return nil
	}
	repair, wait := c.applied.repair(key, manifest, c.now())
	if wait > 0 {
		return nil
	}
	told := ""
	if repair && c.applied.tired(key) {
		told = c.accuse(ctx, d, manifest)
	}
	if err := d.target.Client().Update(ctx, desired); err != nil {
		c.counters.update(d.target.Name, manifest, updateFailed, err)
		return fmt.Errorf("updating %s in cluster %s: %w", describe(manifest), d.target.Name, blameOverrides(d.of, manifest, refused(err, false)))
	}
	d.wrote = true
	c.counters.update(d.target.Name, manifest, updateDone, nil)
	c.applied.remember(key, manifest, desired)
	if repair {
		c.applied.repaired(key, c.now(), told)
	}
	return nil
}

// accuse tells who undoes the repairs of an object. Caches do not keep the managed
// fields, so the member is asked, which happens as rarely as such repairs.
func (c *controller) accuse(ctx context.Context, d *delivery, manifest *unstructured.Unstructured) string {
	observed, err := c.live(ctx, d, manifest)
	if err != nil {
		// Who it was may be told next time; that it is so must be told now.
		observed = manifest
	}
	return work.DescribeContest(d.target.Name, manifest, observed, member.FieldManager)
}

// live asks the member for the object of a manifest.
func (c *controller) live(ctx context.Context, d *delivery, manifest *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	observed, err := d.target.GetLive(ctx, manifest.GroupVersionKind(), client.ObjectKeyFromObject(manifest))
	if err != nil {
		return nil, unreadable(d, manifest, err)
	}
	return observed, nil
}

func unreadable(d *delivery, manifest *unstructured.Unstructured, err error) error {
	return fmt.Errorf("reading %s in cluster %s: %w", describe(manifest), d.target.Name, err)
}

// retain is the kind's rule for what the member owns, nil when there is none.
func (c *controller) retain(ctx context.Context, manifest *unstructured.Unstructured) work.Retain {
	rule := c.rules.Rules(manifest.GroupVersionKind()).Retain
	if rule == nil {
		return nil
	}
	return func(desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		return rule(ctx, desired, observed)
	}
}

// sooner is the shorter of two times; 0 is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

func describe(object *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s", object.GetKind(), client.ObjectKeyFromObject(object))
}

// templateOf is the template that a manifest was made from, as far as an event
// needs it; nil when it was made from none.
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
