package clusterclient

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/loop/patch"
)

// ReadOwner sets the member client's Owner to the control plane's ID. If the user may not read the ID, Owner
// stays empty: new objects then name no owner, and objects that name an owner are neither used nor deleted.
func (c *Client) ReadOwner(ctx context.Context, karmada *Client) error {
	id, err := karmada.ID(ctx)
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return nil
	}
	c.Owner = id
	return err
}

// EnsureOwned does the same as Ensure for an object that belongs to a single control plane. It returns an
// OtherOwnerError if the object belongs to another one.
func (c *Client) EnsureOwned(ctx context.Context, want client.Object, adopt func(have client.Object) error) (client.Object, error) {
	return c.EnsureShared(ctx, want, func(have client.Object) error {
		if err := c.checkOwner(have); err != nil {
			return err
		}
		if ownersOf(have) == "" && c.Owner != "" && !c.DryRun {
			c.Log.Printf("warning: %s in %s exists and names no control plane; from now on it belongs to this one", c.Describe(have), c.Name)
		}
		return adopt(have)
	})
}

// EnsureShared does the same as Ensure for an object that several control planes may use. The object names
// all of them.
func (c *Client) EnsureShared(ctx context.Context, want client.Object, adopt func(have client.Object) error) (client.Object, error) {
	want = want.DeepCopyObject().(client.Object)
	setOwners(want, cluster.AddOwner("", c.Owner))
	isAdopted := false
	stored, err := c.Ensure(ctx, want, func(have client.Object) error {
		if err := adopt(have); err != nil {
			return err
		}
		owners := cluster.AddOwner(ownersOf(have), c.Owner)
		isAdopted = owners != ownersOf(have)
		setOwners(have, owners)
		return nil
	})
	if err == nil && isAdopted {
		c.adopted = append(c.adopted, stored)
	}
	return stored, err
}

// VerifyOwner returns an OtherOwnerError if objects belong to another control plane. It ignores objects that
// do not exist or name no owner.
func (c *Client) VerifyOwner(ctx context.Context, objects ...client.Object) error {
	var stored []client.Object
	for _, object := range objects {
		have, err := c.Get(ctx, object)
		if err != nil {
			return err
		}
		if have != nil {
			stored = append(stored, have)
		}
	}
	return c.checkOwner(stored...)
}

func (c *Client) checkOwner(stored ...client.Object) error {
	found := &OtherOwnerError{Cluster: c.Name, Host: c.Host, Owner: c.Owner}
	for _, object := range stored {
		if other := cluster.OtherOwner(ownersOf(object), c.Owner); other != "" {
			found.Other = other
			found.Objects = append(found.Objects, c.Describe(object))
			if object.GetNamespace() != "" && !slices.Contains(found.releaseArguments, "--namespace="+object.GetNamespace()) {
				found.releaseArguments = append(found.releaseArguments, "--namespace="+object.GetNamespace())
			}
			kind, _, _ := strings.Cut(c.Describe(object), " ")
			found.releaseArguments = append(found.releaseArguments, strings.ToLower(kind)+"/"+object.GetName())
		}
	}
	if found.Other == "" {
		return nil
	}
	return found
}

// OtherOwnerError means that objects in a member belong to another control plane.
type OtherOwnerError struct {
	// Cluster and Host are the member's name and address in messages.
	Cluster, Host string
	// Owner is this control plane's ID, which may be empty. Other is the other control plane's ID.
	Owner, Other string
	// Objects describes the other control plane's objects by kind and name.
	Objects []string

	// releaseArguments are arguments of kubectl annotate that select the objects.
	releaseArguments []string
}

func (o *OtherOwnerError) Error() string {
	id := "an ID that this user may not read"
	if o.Owner != "" {
		id = "ID " + o.Owner
	}
	return fmt.Sprintf("%s (%s) is already a member of the control plane with ID %s, while this control plane has %s; these objects belong to the other one: %s\n"+
		"Use another name for the cluster in this control plane, or remove it from the other control plane first. If that control plane no longer exists, "+
		"release the objects in the member and try again: kubectl annotate %s %s-",
		o.Cluster, o.Host, o.Other, id, strings.Join(o.Objects, ", "), strings.Join(o.releaseArguments, " "),
		clusterv1alpha1.ControlPlaneAnnotation)
}

// DeleteOwned deletes an object in a member. If other control planes own the object too, DeleteOwned only
// removes this one from its owners.
func (c *Client) DeleteOwned(ctx context.Context, object client.Object) error {
	return c.change(ctx, object, func(have client.Object) error {
		remaining := cluster.RemoveOwner(ownersOf(have), c.Owner)
		if remaining != "" {
			c.Log.Printf("%s %s in %s: it belongs to the control plane with ID %s", c.Keeping(), c.Describe(have), c.Name, remaining)
			return c.setOwners(ctx, have, remaining)
		}
		// The precondition on the resource version makes the request fail if another control plane has just
		// become an owner.
		return c.deleteObject(ctx, have, client.Preconditions{UID: ptr.To(have.GetUID()), ResourceVersion: ptr.To(have.GetResourceVersion())})
	})
}

// Keeping returns the verb for messages about an object that is not deleted.
func (c *Client) Keeping() string {
	if c.DryRun {
		return "would keep"
	}
	return "keeping"
}

// Release removes this control plane from the object's owners. It does not delete the object.
func (c *Client) Release(ctx context.Context, object client.Object) error {
	return c.change(ctx, object, func(have client.Object) error {
		return c.setOwners(ctx, have, cluster.RemoveOwner(ownersOf(have), c.Owner))
	})
}

// change calls act with the stored object, and again after a conflict. It does nothing if the object does
// not exist or was replaced after the caller read it.
func (c *Client) change(ctx context.Context, object client.Object, act func(have client.Object) error) error {
	var err error
	for range maxCreateAttempts {
		have, getErr := c.Get(ctx, object)
		if getErr != nil || have == nil || object.GetUID() != "" && have.GetUID() != object.GetUID() {
			return getErr
		}
		if err = act(have); !apierrors.IsConflict(err) {
			return err
		}
	}
	return err
}

// setOwners stores the owners of a member's object.
func (c *Client) setOwners(ctx context.Context, have client.Object, owners string) error {
	if c.DryRun {
		return nil
	}
	before := have.DeepCopyObject().(client.Object)
	setOwners(have, owners)
	if _, err := patch.Object(ctx, c.API, before, have); client.IgnoreNotFound(err) != nil {
		return c.WrapError("changing", have, err)
	}
	return nil
}

// ownersOf returns the annotation that contains the owners' IDs.
func ownersOf(object client.Object) string {
	return object.GetAnnotations()[clusterv1alpha1.ControlPlaneAnnotation]
}

// setOwners sets the annotation that contains the owners' IDs, or removes it if owners is empty.
func setOwners(object client.Object, owners string) {
	annotations := maps.Clone(object.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[clusterv1alpha1.ControlPlaneAnnotation] = owners
	if owners == "" {
		delete(annotations, clusterv1alpha1.ControlPlaneAnnotation)
	}
	object.SetAnnotations(annotations)
}
