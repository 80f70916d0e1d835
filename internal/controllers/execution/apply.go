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

// apply makes the member's object what the manifest says, and does nothing if it
// is that already.
func (c *controller) apply(ctx context.Context, target *member.Member, of *workv1alpha1.Work, manifest *unstructured.Unstructured) error {
	kind := manifest.GroupVersionKind()
	if err := target.Watch(ctx, kind); err != nil {
		return fmt.Errorf("cluster %s: %w", target.Name, err)
	}
	target.AwaitSync(ctx, kind, syncPatience)
	observed, _, err := target.Get(ctx, kind, client.ObjectKeyFromObject(manifest))
	if apierrors.IsNotFound(err) {
		return c.create(ctx, target, of, manifest)
	}
	if err != nil {
		return fmt.Errorf("reading %s in cluster %s: %w", describe(manifest), target.Name, err)
	}
	return c.update(ctx, target, of, manifest, observed)
}

// create makes the object. One that is there already is either newer than our
// view or not ours, and is looked at once more.
func (c *controller) create(ctx context.Context, target *member.Member, of *workv1alpha1.Work, manifest *unstructured.Unstructured) error {
	created := manifest.DeepCopy()
	err := target.Client().Create(ctx, created)
	if err == nil {
		c.applied.remember(keyOf(of, manifest), manifest, created)
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating %s in cluster %s: %w", describe(manifest), target.Name, err)
	}
	observed, err := target.GetLive(ctx, manifest.GroupVersionKind(), client.ObjectKeyFromObject(manifest))
	if err != nil {
		return fmt.Errorf("reading %s in cluster %s: %w", describe(manifest), target.Name, err)
	}
	return c.update(ctx, target, of, manifest, observed)
}

func (c *controller) update(ctx context.Context, target *member.Member, of *workv1alpha1.Work, manifest, observed *unstructured.Unstructured) error {
	for try := 1; ; try++ {
		err := c.updateOnce(ctx, target, of, manifest, observed)
		if !apierrors.IsConflict(err) || try == writeTries {
			return err
		}
		observed, err = target.GetLive(ctx, manifest.GroupVersionKind(), client.ObjectKeyFromObject(manifest))
		if err != nil {
			return fmt.Errorf("reading %s in cluster %s: %w", describe(manifest), target.Name, err)
		}
	}
}

func (c *controller) updateOnce(ctx context.Context, target *member.Member, of *workv1alpha1.Work, manifest, observed *unstructured.Unstructured) error {
	if ok, owner := work.MayWrite(observed, manifest); !ok {
		return work.NewConflict(target.Name, observed, owner)
	}
	key := keyOf(of, manifest)
	if c.applied.holds(key, manifest, observed) {
		return nil
	}
	desired, err := work.Desired(manifest, observed, c.retain(ctx, manifest))
	if err != nil {
		return fmt.Errorf("cluster %s: %w", target.Name, err)
	}
	if work.Same(desired, observed) {
		c.applied.remember(key, manifest, observed)
		return nil
	}
	if err := target.Client().Update(ctx, desired); err != nil {
		return fmt.Errorf("updating %s in cluster %s: %w", describe(manifest), target.Name, err)
	}
	c.applied.remember(key, manifest, desired)
	return nil
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
