package kubectl

import (
	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/cmd/annotate"
	"k8s.io/kubectl/pkg/cmd/create"
	kubectldelete "k8s.io/kubectl/pkg/cmd/delete"
	"k8s.io/kubectl/pkg/cmd/edit"
	"k8s.io/kubectl/pkg/cmd/label"
	"k8s.io/kubectl/pkg/cmd/patch"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/cli/command"
)

// NewCreate returns the command that creates objects, with a subcommand for each of many
// kinds.
func NewCreate(program *command.Program) *cobra.Command {
	return verb{newCommand: ignoringParent(create.NewCmdCreate), short: "Create objects in the control plane"}.build(program)
}

// NewDelete returns the command that deletes objects.
func NewDelete(program *command.Program) *cobra.Command {
	return verb{newCommand: ignoringParent(kubectldelete.NewCmdDelete), short: "Delete objects of the control plane"}.build(program)
}

// NewEdit returns the command that opens objects in an editor.
func NewEdit(program *command.Program) *cobra.Command {
	return verb{newCommand: ignoringParent(edit.NewCmdEdit), short: "Change objects of the control plane in an editor"}.build(program)
}

// NewPatch returns the command that changes fields.
func NewPatch(program *command.Program) *cobra.Command {
	return verb{
		newCommand: ignoringParent(patch.NewCmdPatch), short: "Change fields of an object of the control plane",
		examples: `
			# Suspend the dispatching of a policy
			{{program}} patch propagationpolicy web -n shop --type merge -p '{"spec":{"suspension":{"dispatching":true}}}'`,
	}.build(program)
}

// NewLabel returns the command that sets labels.
func NewLabel(program *command.Program) *cobra.Command {
	return verb{
		newCommand: ignoringParent(label.NewCmdLabel), short: "Set or remove labels of objects of the control plane",
		examples: `
			# Label a member for the label selectors of policies
			{{program}} label cluster east tier=gold`,
	}.build(program)
}

// NewAnnotate returns the command that sets annotations.
func NewAnnotate(program *command.Program) *cobra.Command {
	return verb{
		newCommand: annotate.NewCmdAnnotate, short: "Set or remove annotations of objects of the control plane",
		examples: `
			# Take over an object that exists in members
			{{program}} annotate deployment web ` +
			workv1alpha2.ResourceConflictResolutionAnnotation + "=" + workv1alpha2.ResourceConflictResolutionOverwrite,
	}.build(program)
}
