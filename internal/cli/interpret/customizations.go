package interpret

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/domain/interpreter/customization"
)

const kindName = configv1alpha1.ResourceKindResourceInterpreterCustomization

var customizationKind = configv1alpha1.GroupVersion.WithKind(kindName)

// readCustomizations reads the customizations of all files.
func (o *options) readCustomizations(ctx context.Context) ([]source, error) {
	var found []source
	for _, name := range o.filenames {
		files, err := o.expand(name)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			documents, err := o.readDocuments(ctx, file)
			if err != nil {
				return nil, fmt.Errorf("-f: %w", err)
			}
			for _, document := range documents {
				read, err := document.customizations()
				if err != nil {
					return nil, fmt.Errorf("-f: %w", err)
				}
				found = append(found, read...)
			}
		}
	}
	return found, nil
}

// customizations returns the customization of a document, or those of a list.
func (d document) customizations() ([]source, error) {
	object, err := d.object()
	if err != nil {
		return nil, err
	}
	if !object.IsList() {
		read, err := d.customization(object)
		return []source{read}, err
	}
	var found []source
	err = object.EachListItem(func(item runtime.Object) error {
		each, ok := item.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("%s: unexpected type %T", d.place(), item)
		}
		read, err := d.customization(each)
		found = append(found, read)
		return err
	})
	return found, err
}

// customization decodes an object. An unknown field is an error, because a misspelled operation
// would be ignored otherwise.
func (d document) customization(object *unstructured.Unstructured) (source, error) {
	if kind := object.GroupVersionKind(); kind != customizationKind {
		return source{}, fmt.Errorf("%s has %s, not %s", d.place(), describeKind(kind), describeKind(customizationKind))
	}
	read := &configv1alpha1.ResourceInterpreterCustomization{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, read, true); err != nil {
		if wrong := findWrongType(object.Object, &configv1alpha1.ResourceInterpreterCustomization{}); wrong != nil {
			err = wrong
		}
		return source{}, fmt.Errorf("%s: reading %s: %w", d.place(), strings.TrimSpace(kindName+" "+object.GetName()), err)
	}
	return source{ResourceInterpreterCustomization: read, place: d.source}, nil
}

// getCustomizations reads the named customizations from the control plane.
func (o *options) getCustomizations(ctx context.Context, names []string) ([]source, error) {
	karmada, err := o.customizationClient()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var found []source
	for _, name := range names {
		read, err := getCustomization(ctx, karmada, name)
		if err != nil {
			return nil, err
		}
		found = append(found, source{ResourceInterpreterCustomization: read, place: kindName + " " + name})
	}
	return found, nil
}

// getCustomization reads a customization. If it does not exist, the error lists those that exist.
func getCustomization(ctx context.Context, karmada client.Reader, name string) (*configv1alpha1.ResourceInterpreterCustomization, error) {
	read := &configv1alpha1.ResourceInterpreterCustomization{}
	err := karmada.Get(ctx, client.ObjectKey{Name: name}, read)
	if apierrors.IsNotFound(err) {
		existing, listErr := listNames(ctx, karmada)
		if listErr != nil {
			return nil, fmt.Errorf("reading %s %s: %w", kindName, name, err)
		}
		if len(existing) == 0 {
			return nil, fmt.Errorf("there is no %s %q: the control plane has none", kindName, name)
		}
		return nil, fmt.Errorf("there is no %s %q: the control plane has %s", kindName, name, strings.Join(existing, ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", kindName, name, err)
	}
	// The client removes the kind from the object.
	read.SetGroupVersionKind(customizationKind)
	return read, nil
}

// listNames returns the names of all customizations in the control plane, sorted.
func listNames(ctx context.Context, karmada client.Reader) (names []string, err error) {
	var list configv1alpha1.ResourceInterpreterCustomizationList
	if err := karmada.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing the customizations of the control plane: %w", err)
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}

// customizationClient returns a client of the control plane that knows only customizations. It needs
// no discovery.
func (o *options) customizationClient() (client.Client, error) {
	config, err := o.Program.KarmadaKubeconfig(o.Context).Config()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.Timeout, config.WarningHandler = requestTimeout, o.Program
	scheme := runtime.NewScheme()
	if err := configv1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering API types: %w", err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(customizationKind, meta.RESTScopeRoot)
	karmada, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("creating a client of the control plane (%s): %w", config.Host, err)
	}
	return karmada, nil
}

// completeNames completes names of customizations in the control plane.
func (o *options) completeNames(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	none := cobra.ShellCompDirectiveNoFileComp
	if len(o.filenames) > 0 {
		return nil, none
	}
	karmada, err := o.customizationClient()
	if err != nil {
		return nil, none
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), command.CompletionTimeout)
	defer cancel()
	names, err := listNames(ctx, karmada)
	if err != nil {
		return nil, none
	}
	return without(names, args), none
}

// noteUnusedScripts prints a note for each script of the operations that never runs, because another
// customization of the same kind has a script for the same operation. The control plane rejects such
// customizations.
func (o *options) noteUnusedScripts(sources []source, operations ...customization.Operation) {
	customizations := customizationsOf(sources)
	merged := customization.Merge(customizations)
	for _, each := range customizations {
		kind := customization.TargetOf(each)
		for _, operation := range operations {
			used := merged[kind][operation.Name]
			if operation.Mergeable || operation.Script(&each.Spec.Customizations) == "" || used[0].Customization == each.Name {
				continue
			}
			o.Program.Messagef("note: the script %s of customization %s does not run: customization %s has one for %s too",
				operation.Name, each.Name, used[0].Customization, describeKind(kind))
		}
	}
}
