package interpret

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/kubectl/pkg/cmd/util/editor"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/domain/interpreter/script"
)

// writeFunc writes the changed customization back.
type writeFunc func(edited *configv1alpha1.ResourceInterpreterCustomization) error

// edit lets the user edit one customization, and writes it back.
func (o *options) edit(ctx context.Context, names []string) error {
	open := o.openFile
	if len(names) > 0 {
		open = func(ctx context.Context) (*configv1alpha1.ResourceInterpreterCustomization, writeFunc, error) {
			return o.openStored(ctx, names)
		}
	}
	original, write, err := open(ctx)
	if err != nil {
		return err
	}
	if err := newScriptFile(original).validateEditable(); err != nil {
		return err
	}
	session := editSession{original: original, showsDoc: o.showsDoc}
	edited, err := session.run()
	if err != nil {
		return err
	}
	if edited == nil {
		o.Program.Messagef("Edit cancelled, no changes made.")
		return nil
	}
	if err := write(edited); err != nil {
		return session.keepText(err)
	}
	printer, err := o.printFlags.ToPrinter()
	if err != nil {
		return err
	}
	return printer.PrintObj(edited, o.Program.Out)
}

// openFile reads the only customization in the file. The returned function writes the changed customization to the file.
func (o *options) openFile(ctx context.Context) (*configv1alpha1.ResourceInterpreterCustomization, writeFunc, error) {
	path := o.filenames[0]
	if files, err := o.expand(path); err == nil && (len(files) != 1 || files[0] != path) {
		return nil, nil, command.NewUsageError("--edit takes exactly one file, but %s is a directory or a pattern", path)
	}
	text, err := o.Program.ReadSource(ctx, path, maxFileSize)
	if err != nil {
		return nil, nil, fmt.Errorf("-f: %w", err)
	}
	original, err := parseEditedFile(path, text)
	if err != nil {
		return nil, nil, fmt.Errorf("-f: %w", err)
	}
	return original, func(edited *configv1alpha1.ResourceInterpreterCustomization) error {
		return writeEditedFile(path, text, original, edited)
	}, nil
}

// openStored reads the named customization in the control plane. The returned function writes the changed fields to the control
// plane.
func (o *options) openStored(ctx context.Context, names []string) (*configv1alpha1.ResourceInterpreterCustomization, writeFunc, error) {
	read, err := o.getCustomizations(ctx, names)
	if err != nil {
		return nil, nil, err
	}
	original := read[0].ResourceInterpreterCustomization
	return original, func(edited *configv1alpha1.ResourceInterpreterCustomization) error {
		return o.patchCustomization(ctx, original, edited)
	}, nil
}

// patchCustomization writes the changed fields to the control plane. It returns an error if the stored
// customization has changed since it was read.
func (o *options) patchCustomization(ctx context.Context, original, edited *configv1alpha1.ResourceInterpreterCustomization) error {
	karmada, err := o.customizationClient()
	if err != nil {
		return err
	}
	err = karmada.Patch(ctx, edited, client.MergeFromWithOptions(original, client.MergeFromWithOptimisticLock{}))
	edited.SetGroupVersionKind(customizationKind) // the client removes it
	if apierrors.IsConflict(err) {
		return fmt.Errorf("%s %s changed while you edited it: edit it again: %w", kindName, original.Name, err)
	}
	if err != nil {
		return fmt.Errorf("writing %s %s: %w", kindName, original.Name, err)
	}
	return nil
}

// editSession is the edit of one customization.
type editSession struct {
	original *configv1alpha1.ResourceInterpreterCustomization
	showsDoc bool
	// text is the last text that the user saved.
	text string
}

// maxAttempts limits how often the editor is opened, for editors that no user operates.
const maxAttempts = 50

// run opens the editor until the user saves a valid text. It returns the changed customization, or nil if the user changed
// nothing. If the user saves an invalid text a second time without a change, it returns an error.
func (s *editSession) run() (*configv1alpha1.ResourceInterpreterCustomization, error) {
	shown := newScriptFile(s.original).format(s.showsDoc)
	var problem error
	for range maxAttempts {
		text, err := openEditor(shown)
		if err != nil {
			return nil, err
		}
		if problem == nil && text == shown {
			return nil, nil
		}
		if problem != nil && (text == shown || text == s.text) {
			break
		}
		s.text = text
		edited, err := s.parse(text)
		if err == nil {
			return edited, nil
		}
		problem, shown = err, insertProblem(text, err)
	}
	return nil, s.keepText(fmt.Errorf("edit cancelled, no valid changes were saved: %w", problem))
}

// parse returns the changed customization, or nil if nothing differs.
func (s *editSession) parse(text string) (*configv1alpha1.ResourceInterpreterCustomization, error) {
	file, err := parseScriptFile(text, s.showsDoc)
	if err != nil {
		return nil, err
	}
	edited := s.original.DeepCopy()
	if !file.applyTo(edited) && file.header[nameMarker] == s.original.Name {
		return nil, nil
	}
	if err := file.validate(s.original.Name, script.Check); err != nil {
		return nil, err
	}
	return edited, nil
}

// keepText stores the user's text in a temporary file, and adds its path to cause.
func (s *editSession) keepText(cause error) error {
	file, err := os.CreateTemp("", "karmadactl-interpret-*.lua")
	if err != nil {
		return cause
	}
	_, err = file.WriteString(s.text)
	if err := errors.Join(err, file.Close()); err != nil {
		return cause
	}
	return fmt.Errorf("%w\nyour changes are in %s", cause, file.Name())
}

// openEditor opens text in the user's editor, and returns the saved text.
func openEditor(text string) (string, error) {
	saved, path, err := editor.NewDefaultEditor([]string{"KUBE_EDITOR", "EDITOR"}).LaunchTempFile("karmadactl-interpret-", ".lua",
		strings.NewReader(text))
	if path != "" {
		defer func() { _ = os.Remove(path) }()
	}
	if err != nil {
		return "", fmt.Errorf("running the editor, which $KUBE_EDITOR or $EDITOR sets: %w", err)
	}
	return string(saved), nil
}
