package side

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/access/patch"
)

// Delete deletes an object; one that is not there is fine. An object that was
// read before is deleted only as long as it is the same.
func (s *Side) Delete(ctx context.Context, object client.Object) error {
	var options []client.DeleteOption
	if uid := object.GetUID(); uid != "" {
		options = append(options, client.Preconditions{UID: &uid})
	}
	err := s.API.Delete(ctx, object, options...)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return s.Explain("deleting", object, err)
	}
	s.Log.Printf("deleted %s in %s", s.Describe(object), s.Name)
	return nil
}

// AwaitGone waits until an object is gone, or replaced by one of the same name.
// wait.Interrupted holds for the error when ctx ends first.
func (s *Side) AwaitGone(ctx context.Context, object client.Object) error {
	pace := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 1.5, Cap: time.Second, Steps: 20}
	return pace.DelayFunc().Until(ctx, true, false, func(ctx context.Context) (bool, error) {
		have, err := s.Get(ctx, object)
		if err != nil {
			// A control plane that is busy or restarting says nothing about the
			// object; the caller's limit ends this.
			if ctx.Err() != nil || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
				return false, err
			}
			return false, nil
		}
		return have == nil || (object.GetUID() != "" && have.GetUID() != object.GetUID()), nil
	})
}

// TakeFinalizers lets an object that is being deleted go.
func (s *Side) TakeFinalizers(ctx context.Context, object client.Object) error {
	have, err := s.Get(ctx, object)
	if err != nil || have == nil || len(have.GetFinalizers()) == 0 {
		return err
	}
	before := have.DeepCopyObject().(client.Object)
	have.SetFinalizers(nil)
	if _, err := patch.Object(ctx, s.API, before, have); client.IgnoreNotFound(err) != nil {
		return s.Explain("taking the finalizers off", have, err)
	}
	return nil
}
