package clusterclient

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/loop/patch"
)

// Delete deletes the object and ignores that it does not exist. If the object has a UID, Delete does not
// delete another object of the same name.
func (c *Client) Delete(ctx context.Context, object client.Object) error {
	var options []client.DeleteOption
	if uid := object.GetUID(); uid != "" {
		options = append(options, client.Preconditions{UID: &uid})
	}
	return c.deleteObject(ctx, object, options...)
}

func (c *Client) deleteObject(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	if c.DryRun {
		c.Log.Printf("would delete %s in %s", c.Describe(object), c.Name)
		return nil
	}
	err := c.API.Delete(ctx, object, options...)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return c.WrapError("deleting", object, err)
	}
	c.Log.Printf("deleted %s in %s", c.Describe(object), c.Name)
	return nil
}

// AwaitGone waits until the object no longer exists or was replaced by another object of the same name. If
// ctx ends first, wait.Interrupted returns true for the returned error.
func (c *Client) AwaitGone(ctx context.Context, object client.Object) error {
	backoff := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 1.5, Cap: time.Second, Steps: 20}
	return backoff.DelayFunc().Until(ctx, true, false, func(ctx context.Context) (bool, error) {
		have, err := c.Get(ctx, object)
		if err != nil {
			// A failed read does not prove that the object is gone, because the API server may be restarting.
			// The caller's context limits the wait.
			if ctx.Err() != nil || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
				return false, err
			}
			return false, nil
		}
		return have == nil || (object.GetUID() != "" && have.GetUID() != object.GetUID()), nil
	})
}

// RemoveFinalizers removes all finalizers of an object.
func (c *Client) RemoveFinalizers(ctx context.Context, object client.Object) error {
	have, err := c.Get(ctx, object)
	if err != nil || have == nil || len(have.GetFinalizers()) == 0 {
		return err
	}
	before := have.DeepCopyObject().(client.Object)
	have.SetFinalizers(nil)
	if _, err := patch.Object(ctx, c.API, before, have); client.IgnoreNotFound(err) != nil {
		return c.WrapError("removing the finalizers of", have, err)
	}
	return nil
}
