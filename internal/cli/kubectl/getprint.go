package kubectl

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	kubectlget "k8s.io/kubectl/pkg/cmd/get"
	"k8s.io/kubectl/pkg/scheme"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/cli/command"
)

func (o *getOptions) printTables(results []targetResult) error {
	found, err := newSections(results)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		o.printNoResources(results)
		return nil
	}
	severalKinds := includesSeveralKinds(results)
	for i, s := range found {
		if i > 0 && !*o.printFlags.NoHeaders {
			fmt.Fprintln(o.Program.Out)
		}
		printer, err := o.newPrinter(s.mapping, severalKinds)
		if err != nil {
			return err
		}
		if err := printer.PrintObj(s.table, o.Program.Out); err != nil {
			return fmt.Errorf("printing the table of %s: %w", s.mapping.Resource.Resource, err)
		}
	}
	return nil
}

func (o *getOptions) newPrinter(mapping *meta.RESTMapping, withKind bool) (printers.ResourcePrinter, error) {
	flags := o.printFlags.Copy()
	human := *flags.HumanReadableFlags
	flags.HumanReadableFlags = &human
	if mapping != nil {
		flags.SetKind(mapping.GroupVersionKind.GroupKind())
		if o.allNamespaces && mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			human.WithNamespace = true
		}
	}
	if withKind {
		human.ShowKind = &withKind
	}
	printer, err := flags.ToPrinter()
	if err != nil {
		return nil, err
	}
	if field := *human.SortBy; field != "" && !o.isWatch() {
		printer = &kubectlget.SortingPrinter{Delegate: printer, SortField: field, Decoder: scheme.Codecs.UniversalDecoder()}
	}
	return printer, nil
}

// printObjects prints the requested object if one object was requested by name, and otherwise a
// list of all objects.
func (o *getOptions) printObjects(results []targetResult) error {
	list := &unstructured.UnstructuredList{Object: map[string]any{
		"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""},
	}}
	single, failed := len(results) == 1 && results[0].isSingle, false
	for _, a := range results {
		failed = failed || a.err != nil
		for _, info := range a.infos {
			items, err := itemsOf(info.Object)
			if err != nil {
				return err
			}
			for _, item := range items {
				list.Items = append(list.Items, *annotateCluster(item, a.target))
			}
		}
	}
	if len(list.Items) == 0 && (failed || o.ignoreNotFound) {
		return nil
	}
	printer, err := o.newPrinter(nil, false)
	if err != nil {
		return err
	}
	if single && len(list.Items) == 1 {
		return printer.PrintObj(&list.Items[0], o.Program.Out)
	}
	return printer.PrintObj(list, o.Program.Out)
}

// itemsOf returns the items of a list, or the object itself.
func itemsOf(object runtime.Object) ([]*unstructured.Unstructured, error) {
	content, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("unexpected response of type %T", object)
	}
	if !content.IsList() {
		return []*unstructured.Unstructured{content}, nil
	}
	var items []*unstructured.Unstructured
	err := content.EachListItem(func(item runtime.Object) error {
		items = append(items, item.(*unstructured.Unstructured))
		return nil
	})
	return items, err
}

// annotateCluster sets the annotation that contains the name of the member. It does not change
// objects of the control plane.
func annotateCluster(object *unstructured.Unstructured, target command.Target) *unstructured.Unstructured {
	if !target.IsMember() {
		return object
	}
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[clusterv1alpha1.QueryFromClusterAnnotation] = target.Name()
	object.SetAnnotations(annotations)
	return object
}

// printNoResources prints that no objects were found. It prints nothing if a target failed, or if
// the user set --ignore-not-found.
func (o *getOptions) printNoResources(results []targetResult) {
	namespaced, namespace := !o.allNamespaces, ""
	for _, a := range results {
		if a.err != nil {
			return
		}
		namespace = a.namespace
		for _, info := range a.infos {
			namespaced = namespaced && info.Namespaced()
		}
	}
	switch {
	case o.ignoreNotFound:
	case namespaced:
		o.Program.Messagef("No resources found in %s namespace.", namespace)
	default:
		o.Program.Messagef("No resources found")
	}
}
