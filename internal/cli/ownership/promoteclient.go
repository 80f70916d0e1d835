package ownership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/dynamic"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/tenancy"
)

// clusterClient reads and writes objects of the control plane or of the member.
type clusterClient struct {
	target  command.Target
	factory cmdutil.Factory
}

// clusterObject is an object of a cluster with its REST mapping.
type clusterObject struct {
	*unstructured.Unstructured
	mapping *meta.RESTMapping
}

func (c clusterClient) verifyReachable(ctx context.Context) error {
	return command.VerifyReachable(ctx, c.factory, c.target)
}

// findObject reads an object. The type is written as in kubectl.
func (c clusterClient) findObject(namespace, kind, name string) (clusterObject, error) {
	infos, err := c.factory.NewBuilder().Unstructured().
		NamespaceParam(namespace).DefaultNamespace().
		ResourceTypeOrNameArgs(false, kind, name).SingleResourceType().
		Do().Infos()
	if err != nil {
		return clusterObject{}, fmt.Errorf("reading from %s: %w", c.target, err)
	}
	if len(infos) != 1 {
		return clusterObject{}, fmt.Errorf("%s %s matches %d objects of %s: promote them one by one", kind, name, len(infos), c.target)
	}
	return c.fromInfo(infos[0])
}

func (c clusterClient) fromInfo(info *resource.Info) (clusterObject, error) {
	object, ok := info.Object.(*unstructured.Unstructured)
	if !ok {
		return clusterObject{}, fmt.Errorf("reading %s from %s: got a %T", info.ObjectName(), c.target, info.Object)
	}
	return clusterObject{Unstructured: object, mapping: info.Mapping}, nil
}

// mappingOf returns the REST mapping of a kind.
func (c clusterClient) mappingOf(kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapper, err := c.factory.ToRESTMapper()
	if err != nil {
		return nil, fmt.Errorf("reading the types of %s: %w", c.target, err)
	}
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("%s does not serve kind %s (%s): create its CustomResourceDefinition there first", c.target, kind.Kind,
			kind.GroupVersion())
	}
	if err != nil {
		return nil, fmt.Errorf("looking for kind %s in %s: %w", kind.Kind, c.target, err)
	}
	return mapping, nil
}

// resourceClient returns the client of the resource in the namespace.
func (c clusterClient) resourceClient(mapping *meta.RESTMapping, namespace string) (dynamic.ResourceInterface, error) {
	all, err := c.factory.DynamicClient()
	if err != nil {
		return nil, fmt.Errorf("creating a client of %s: %w", c.target, err)
	}
	if namespace == "" {
		return all.Resource(mapping.Resource), nil
	}
	return all.Resource(mapping.Resource).Namespace(namespace), nil
}

// get reads an object. It returns nil if the object does not exist.
func (c clusterClient) get(ctx context.Context, mapping *meta.RESTMapping, namespace, name string) (*unstructured.Unstructured, error) {
	objects, err := c.resourceClient(mapping, namespace)
	if err != nil {
		return nil, err
	}
	object, err := objects.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s from %s: %w", describeObject(mapping, namespace, name), c.target, err)
	}
	return object, nil
}

// list reads the objects that match a label selector.
func (c clusterClient) list(ctx context.Context, mapping *meta.RESTMapping, namespace,
	selector string) ([]unstructured.Unstructured, error) {
	objects, err := c.resourceClient(mapping, namespace)
	if err != nil {
		return nil, err
	}
	listed, err := objects.List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("listing %s from %s: %w", mapping.Resource.Resource, c.target, err)
	}
	return listed.Items, nil
}

// create stores an object. With dryRun the server validates the object and does not store it.
func (c clusterClient) create(ctx context.Context, mapping *meta.RESTMapping, object *unstructured.Unstructured,
	dryRun bool) (*unstructured.Unstructured, error) {
	objects, err := c.resourceClient(mapping, object.GetNamespace())
	if err != nil {
		return nil, err
	}
	options := metav1.CreateOptions{}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	stored, err := objects.Create(ctx, object, options)
	if err != nil {
		return nil, fmt.Errorf("creating %s in %s: %w", describeObject(mapping, object.GetNamespace(), object.GetName()), c.target, err)
	}
	return stored, nil
}

// describeObject returns kind, namespace and name of an object for messages.
func describeObject(mapping *meta.RESTMapping, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return mapping.GroupVersionKind.Kind + " " + name
}

// rollbackTimeout is the time limit for deleting the created objects.
const rollbackTimeout = 30 * time.Second

// createdObjects are the objects that this run created in the control plane, in the order
// of their creation.
type createdObjects []clusterObject

// rollBack deletes the objects in reverse order. It keeps objects that have changed since their
// creation. It also keeps a template that has a binding already, because the deletion of this
// template would delete the objects in members.
func (c createdObjects) rollBack(ctx context.Context, karmada clusterClient, messagef func(string, ...any)) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	var errs []error
	for _, object := range slices.Backward(c) {
		name := describeObject(object.mapping, object.GetNamespace(), object.GetName())
		isBound, err := karmada.hasBinding(ctx, object)
		if err == nil && !isBound {
			err = karmada.deleteUnchanged(ctx, object)
		}
		switch {
		case isBound || apierrors.IsConflict(err):
			messagef("%s stays in the control plane because it is already in use", name)
		case err != nil:
			errs = append(errs, fmt.Errorf("deleting %s after the failure: %w", name, err))
		default:
			messagef("deleted %s from the control plane", name)
		}
	}
	return errors.Join(errs...)
}

// deleteUnchanged deletes an object. It returns an error if the object has changed since its
// creation.
func (c clusterClient) deleteUnchanged(ctx context.Context, object clusterObject) error {
	objects, err := c.resourceClient(object.mapping, object.GetNamespace())
	if err != nil {
		return err
	}
	uid, version := object.GetUID(), object.GetResourceVersion()
	err = objects.Delete(ctx, object.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// hasBinding reports whether a template has a binding, which propagates the template to members.
// Policies have no bindings.
func (c clusterClient) hasBinding(ctx context.Context, object clusterObject) (bool, error) {
	if tenancy.DefaultSkippedAPIs().Skips(object.GroupVersionKind()) {
		return false, nil
	}
	kind := schema.GroupVersionKind{Group: workv1alpha2.GroupVersion.Group, Version: workv1alpha2.GroupVersion.Version,
		Kind: workv1alpha2.ResourceKindResourceBinding}
	if object.GetNamespace() == "" {
		kind.Kind = workv1alpha2.ResourceKindClusterResourceBinding
	}
	mapping, err := c.mappingOf(kind)
	if err != nil {
		return false, err
	}
	get := func(name string) (binding.Object, error) {
		found, err := c.get(ctx, mapping, object.GetNamespace(), name)
		if err != nil || found == nil {
			return nil, err
		}
		bound := binding.New(object.GetNamespace() != "")
		return bound, runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, bound)
	}
	bound, _, err := binding.Find(object.GroupVersionKind().GroupKind(), object.GetName(), get)
	return bound != nil, err
}
