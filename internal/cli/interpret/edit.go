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

// edit lets the user edit one customization, and writes it back.
func (o *options) edit(ctx context.Context, names []string) error {
	original, write, err := o.openEdited(ctx, names)
	if err != nil {
		return err
	}
	session, err := newEditSession(original, o.showsDoc)
	if err != nil {
		return err
	}
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
	return o.printEdited(edited)
}

// openEdited reads the only customization of the file, or that in the control plane. It also
// returns a function that writes the changed customization back.
func (o *options) openEdited(ctx context.Context, names []string) (original *configv1alpha1.ResourceInterpreterCustomization, write writeFunc, err error) {
	if len(names) > 0 {
		read, err := o.getCustomizations(ctx, names)
		if err != nil {
			return nil, nil, err
		}
		original = read[0].ResourceInterpreterCustomization
		return original, func(edited *configv1alpha1.ResourceInterpreterCustomization) error {
			return o.patchCustomization(ctx, original, edited)
		}, nil
	}
	path := o.filenames[0]
	files, err := o.expand(path)
	if err != nil {
		return nil, nil, err
	}
	if len(files) != 1 || files[0] != path {
		return nil, nil, command.NewUsageError("--edit takes exactly one file, but %s is a directory or a pattern", path)
	}
	file, read, err := o.openEditedFile(ctx, path)
	if err != nil {
		return nil, nil, fmt.Errorf("-f: %w", err)
	}
	original = read.ResourceInterpreterCustomization
	return original, func(edited *configv1alpha1.ResourceInterpreterCustomization) error {
		return file.write(original, edited)
	}, nil
}

// writeFunc writes the changed customization back.
type writeFunc func(edited *configv1alpha1.ResourceInterpreterCustomization) error

// editSession is the edit of one customization.
type editSession struct {
	original *configv1alpha1.ResourceInterpreterCustomization
	showsDoc bool
	// text is the last text that the user saved.
	text string
}

func newEditSession(original *configv1alpha1.ResourceInterpreterCustomization, showsDoc bool) (*editSession, error) {
	if err := newScriptFile(original).checkEditable(); err != nil {
		return nil, err
	}
	return &editSession{original: original, showsDoc: showsDoc}, nil
}

// maxOpenings is the maximum number of times that the editor is opened. It ends the loop for an editor
// without a user.
const maxOpenings = 50

// run opens the editor until the user saves a valid text. It returns the changed customization, or
// nil if the user changed nothing. If the user saves an invalid text unchanged, it returns an error.
func (s *editSession) run() (*configv1alpha1.ResourceInterpreterCustomization, error) {
	shown := newScriptFile(s.original).format(s.showsDoc)
	var problem error
	for range maxOpenings {
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
		problem, shown = err, withProblem(text, err)
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
	if !file.applyTo(edited) && file.name == s.original.Name {
		return nil, nil
	}
	if err := file.validate(s.original.Name, script.Check); err != nil {
		return nil, err
	}
	return edited, nil
}

// keepText stores the text of the user in a temporary file, and adds its path to the error.
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

// openEditor returns the text that the user saved.
func openEditor(text string) (string, error) {
	saved, path, err := editor.NewDefaultEditor([]string{"KUBE_EDITOR", "EDITOR"}).LaunchTempFile("karmadactl-interpret-", ".lua", strings.NewReader(text))
	if path != "" {
		defer func() { _ = os.Remove(path) }()
	}
	if err != nil {
		return "", fmt.Errorf("running the editor, which $KUBE_EDITOR or $EDITOR sets: %w", err)
	}
	return string(saved), nil
}

// patchCustomization writes the changed fields to the control plane. If the
// customization changed since it was read, it returns a conflict.
func (o *options) patchCustomization(ctx context.Context, original, edited *configv1alpha1.ResourceInterpreterCustomization) error {
	karmada, err := o.customizationClient()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err = karmada.Patch(ctx, edited, client.MergeFromWithOptions(original, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return fmt.Errorf("%s %s changed while you edited it: edit it again: %w", kindName, original.Name, err)
	}
	if err != nil {
		return fmt.Errorf("writing %s %s: %w", kindName, original.Name, err)
	}
	return nil
}

// printEdited prints the edited customization.
func (o *options) printEdited(edited *configv1alpha1.ResourceInterpreterCustomization) error {
	printer, err := o.printFlags.ToPrinter()
	if err != nil {
		return command.NewUsageError("--output: %w", err)
	}
	printed := edited.DeepCopy()
	printed.SetGroupVersionKind(customizationKind)
	return printer.PrintObj(printed, o.Program.Out)
}
