package kubectl

import (
	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/cmd/annotate"
	"k8s.io/kubectl/pkg/cmd/create"
	kubectldelete "k8s.io/kubectl/pkg/cmd/delete"
	"k8s.io/kubectl/pkg/cmd/edit"
	"k8s.io/kubectl/pkg/cmd/label"
	"k8s.io/kubectl/pkg/cmd/patch"

	"karmada.io/karmada/internal/cli/command"
)

// NewCreate is the command that makes objects, with one command below it for each
// of many kinds.
func NewCreate(program *command.Program) *cobra.Command {
	return verb{construct: withoutParent(create.NewCmdCreate), short: "Create objects in the control plane"}.command(program)
}

// NewDelete is the command that deletes objects.
func NewDelete(program *command.Program) *cobra.Command {
	return verb{construct: withoutParent(kubectldelete.NewCmdDelete), short: "Delete objects of the control plane"}.command(program)
}

// NewEdit is the command that opens objects in an editor.
func NewEdit(program *command.Program) *cobra.Command {
	return verb{construct: withoutParent(edit.NewCmdEdit), short: "Change objects of the control plane in an editor"}.command(program)
}

// NewPatch is the command that changes fields.
func NewPatch(program *command.Program) *cobra.Command {
	return verb{
		construct: withoutParent(patch.NewCmdPatch), short: "Change fields of an object of the control plane",
		examples: `
			# Suspend what a policy delivers
			{{program}} patch propagationpolicy web -n shop --type merge -p '{"spec":{"suspension":{"dispatching":true}}}'`,
	}.command(program)
}

// NewLabel is the command that sets labels.
func NewLabel(program *command.Program) *cobra.Command {
	return verb{
		construct: withoutParent(label.NewCmdLabel), short: "Set or remove labels of objects of the control plane",
		examples: `
			# Label a member, for policies to choose by
			{{program}} label cluster east tier=gold`,
	}.command(program)
}

// NewAnnotate is the command that sets annotations.
func NewAnnotate(program *command.Program) *cobra.Command {
	return verb{
		construct: annotate.NewCmdAnnotate, short: "Set or remove annotations of objects of the control plane",
		examples: `
			# Take over an object that members have already
			{{program}} annotate deployment web work.karmada.io/conflict-resolution=overwrite`,
	}.command(program)
}
