package promote

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/dynamic"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"karmada.io/karmada/internal/cli/place"
)

// side is the control plane or the member.
type side struct {
	where   place.Place
	factory cmdutil.Factory
}

// found is an object of a side, and how it is reached there.
type found struct {
	*unstructured.Unstructured
	mapping *meta.RESTMapping
}

func (s side) reach(ctx context.Context) error { return place.Reach(ctx, s.factory, s.where) }

// find reads an object whose type is spelled as kubectl takes it.
func (s side) find(namespace, kind, name string) (found, error) {
	infos, err := s.factory.NewBuilder().Unstructured().
		NamespaceParam(namespace).DefaultNamespace().
		ResourceTypeOrNameArgs(false, kind, name).SingleResourceType().
		Do().Infos()
	if err != nil {
		return found{}, fmt.Errorf("reading from %s: %w", s.where, err)
	}
	if len(infos) != 1 {
		return found{}, fmt.Errorf("%s %s names %d objects of %s: promote them one by one", kind, name, len(infos), s.where)
	}
	return s.fromInfo(infos[0])
}

func (s side) fromInfo(info *resource.Info) (found, error) {
	object, ok := info.Object.(*unstructured.Unstructured)
	if !ok {
		return found{}, fmt.Errorf("reading %s from %s: got a %T", info.ObjectName(), s.where, info.Object)
	}
	return found{Unstructured: object, mapping: info.Mapping}, nil
}

// mappingOf is how objects of a kind are reached.
func (s side) mappingOf(kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapper, err := s.factory.ToRESTMapper()
	if err != nil {
		return nil, fmt.Errorf("reading the types of %s: %w", s.where, err)
	}
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("%s does not serve kind %s (%s): create its CustomResourceDefinition there first", s.where, kind.Kind, kind.GroupVersion())
	}
	if err != nil {
		return nil, fmt.Errorf("looking for kind %s in %s: %w", kind.Kind, s.where, err)
	}
	return mapping, nil
}

// at is where objects like this one are.
func (s side) at(mapping *meta.RESTMapping, namespace string) (dynamic.ResourceInterface, error) {
	all, err := s.factory.DynamicClient()
	if err != nil {
		return nil, fmt.Errorf("making a client of %s: %w", s.where, err)
	}
	if namespace == "" {
		return all.Resource(mapping.Resource), nil
	}
	return all.Resource(mapping.Resource).Namespace(namespace), nil
}

// get reads an object; nil means that there is none.
func (s side) get(ctx context.Context, mapping *meta.RESTMapping, namespace, name string) (*unstructured.Unstructured, error) {
	objects, err := s.at(mapping, namespace)
	if err != nil {
		return nil, err
	}
	object, err := objects.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s from %s: %w", title(mapping, namespace, name), s.where, err)
	}
	return object, nil
}

// list reads objects by their labels.
func (s side) list(ctx context.Context, mapping *meta.RESTMapping, namespace, selector string) ([]unstructured.Unstructured, error) {
	objects, err := s.at(mapping, namespace)
	if err != nil {
		return nil, err
	}
	listed, err := objects.List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("listing %s from %s: %w", mapping.Resource.Resource, s.where, err)
	}
	return listed.Items, nil
}

// create stores an object. A dry run has it checked only.
func (s side) create(ctx context.Context, mapping *meta.RESTMapping, object *unstructured.Unstructured, dryRun bool) (*unstructured.Unstructured, error) {
	objects, err := s.at(mapping, object.GetNamespace())
	if err != nil {
		return nil, err
	}
	how := metav1.CreateOptions{}
	if dryRun {
		how.DryRun = []string{metav1.DryRunAll}
	}
	stored, err := objects.Create(ctx, object, how)
	if err != nil {
		return nil, fmt.Errorf("creating %s in %s: %w", title(mapping, object.GetNamespace(), object.GetName()), s.where, err)
	}
	return stored, nil
}

// title names an object in messages.
func title(mapping *meta.RESTMapping, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return mapping.GroupVersionKind.Kind + " " + name
}
