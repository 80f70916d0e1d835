package interpret

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/domain/interpreter"
)

const kindName = configv1alpha1.ResourceKindResourceInterpreterCustomization

var customizationKind = configv1alpha1.GroupVersion.WithKind(kindName)

// source is a customization with the location from which it was read.
type source struct {
	*configv1alpha1.ResourceInterpreterCustomization
	// location is a path, a URL, or the kind and name of an object in the control plane.
	location string
}

// customizationsOf returns the customizations of the sources. A customization without a name gets its location as the name, so
// that errors of its scripts name the location.
func customizationsOf(sources []source) (found []*configv1alpha1.ResourceInterpreterCustomization) {
	for _, source := range sources {
		named := source.ResourceInterpreterCustomization
		if named.Name == "" {
			named = named.DeepCopy()
			named.Name = source.location
		}
		found = append(found, named)
	}
	return found
}

// readCustomizations reads the customizations of all files or, if names are given, those in the
// control plane.
func (o *options) readCustomizations(ctx context.Context, names []string) ([]source, error) {
	if len(names) > 0 {
		return o.getCustomizations(ctx, names)
	}
	var found []source
	for _, name := range o.filenames {
		files, err := o.expand(name)
		if err != nil {
			return nil, fmt.Errorf("-f: %w", err)
		}
		for _, file := range files {
			documents, err := o.readDocuments(ctx, file)
			if err != nil {
				return nil, fmt.Errorf("-f: %w", err)
			}
			for _, document := range documents {
				read, err := document.customization()
				if err != nil {
					return nil, fmt.Errorf("-f: %w", err)
				}
				found = append(found, source{read, document.source})
			}
		}
	}
	return found, nil
}

// expand returns the paths and URLs for one value of -f, which can be a directory or a pattern. The files of a directory are
// sorted.
func (o *options) expand(name string) (files []string, err error) {
	info, err := os.Stat(name)
	switch {
	case isStream(name) || err == nil && !info.IsDir():
		return []string{name}, nil
	case errors.Is(err, fs.ErrNotExist):
		if files, _ = filepath.Glob(name); len(files) == 0 {
			return nil, fmt.Errorf("the file %s does not exist", name)
		}
		return files, nil
	case err != nil:
		return nil, err
	}
	types := []string{".json", ".yaml", ".yml"}
	err = filepath.WalkDir(name, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != name && !o.recursive:
			return filepath.SkipDir
		case !entry.IsDir() && slices.Contains(types, filepath.Ext(path)):
			files = append(files, path)
		}
		return nil
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("the directory %s has no file that ends with %s", name, strings.Join(types, ", "))
	}
	return files, err
}

// customization decodes the document. Unknown fields are errors, because otherwise a misspelled operation would be ignored.
func (d document) customization() (*configv1alpha1.ResourceInterpreterCustomization, error) {
	object, err := d.object()
	if err != nil {
		return nil, err
	}
	if kind := object.GroupVersionKind(); kind != customizationKind {
		return nil, fmt.Errorf("%s has %s, not %s", d.place(), describeKind(kind), describeKind(customizationKind))
	}
	read := &configv1alpha1.ResourceInterpreterCustomization{}
	if err := d.decode(read); err != nil {
		return nil, fmt.Errorf("%s: reading %s: %w", d.place(), strings.TrimSpace(kindName+" "+object.GetName()), err)
	}
	return read, nil
}

// getCustomizations reads the named customizations from the control plane. If one does not exist, the error lists the existing
// ones.
func (o *options) getCustomizations(ctx context.Context, names []string) ([]source, error) {
	karmada, err := o.customizationClient()
	if err != nil {
		return nil, err
	}
	var found []source
	for _, name := range names {
		read := &configv1alpha1.ResourceInterpreterCustomization{}
		err := karmada.Get(ctx, client.ObjectKey{Name: name}, read)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading %s %s: %w", kindName, name, err)
		}
		if err != nil {
			return nil, notFoundError(ctx, karmada, name)
		}
		// The client removes the kind from the object.
		read.SetGroupVersionKind(customizationKind)
		found = append(found, source{read, kindName + " " + name})
	}
	return found, nil
}

func notFoundError(ctx context.Context, karmada client.Reader, name string) error {
	existing, err := listNames(ctx, karmada)
	switch {
	case err != nil:
		return fmt.Errorf("there is no %s %q in the control plane", kindName, name)
	case len(existing) == 0:
		existing = []string{"none"}
	}
	return fmt.Errorf("there is no %s %q: the control plane has %s", kindName, name, strings.Join(existing, ", "))
}

// listNames returns the names of all customizations in the control plane, sorted.
func listNames(ctx context.Context, karmada client.Reader) (names []string, err error) {
	var list configv1alpha1.ResourceInterpreterCustomizationList
	err = karmada.List(ctx, &list)
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, err
}

// customizationClient returns a client for the customizations of the control plane.
func (o *options) customizationClient() (client.Client, error) {
	config, err := o.Program.KarmadaKubeconfig(o.Context).Config()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.Timeout, config.WarningHandler = requestTimeout, o.Program
	return command.NewKindClient(config, customizationKind, meta.RESTScopeRoot, configv1alpha1.AddToScheme)
}

// completeNames completes names of customizations in the control plane.
func (o *options) completeNames(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	none := cobra.ShellCompDirectiveNoFileComp
	karmada, err := o.customizationClient()
	if err != nil || len(o.filenames) > 0 {
		return nil, none
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), command.CompletionTimeout)
	defer cancel()
	names, err := listNames(ctx, karmada)
	if err != nil {
		return nil, none
	}
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(args, name) }), none
}

// noteUnusedScripts prints a note for each script that never runs, because another customization has a script for the same kind
// and operation. The control plane rejects such customizations.
func (o *options) noteUnusedScripts(sources []source, operations ...interpreter.ScriptOperation) {
	customizations := customizationsOf(sources)
	merged := interpreter.MergeCustomizations(customizations)
	for _, customized := range customizations {
		kind := interpreter.TargetOf(customized)
		for _, operation := range operations {
			used := merged[kind][operation.Name]
			if operation.Mergeable || operation.Script(&customized.Spec.Customizations) == "" || used[0].Customization == customized.Name {
				continue
			}
			o.Program.Messagef("note: the script %s of customization %s does not run: customization %s has one for %s too",
				operation.Name, customized.Name, used[0].Customization, describeKind(kind))
		}
	}
}
