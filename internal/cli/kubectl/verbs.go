package kubectl

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/annotate"
	"k8s.io/kubectl/pkg/cmd/apiresources"
	"k8s.io/kubectl/pkg/cmd/attach"
	"k8s.io/kubectl/pkg/cmd/create"
	kubectldelete "k8s.io/kubectl/pkg/cmd/delete"
	"k8s.io/kubectl/pkg/cmd/describe"
	"k8s.io/kubectl/pkg/cmd/edit"
	"k8s.io/kubectl/pkg/cmd/exec"
	"k8s.io/kubectl/pkg/cmd/explain"
	"k8s.io/kubectl/pkg/cmd/label"
	"k8s.io/kubectl/pkg/cmd/logs"
	"k8s.io/kubectl/pkg/cmd/patch"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/cli/command"
)

const memberAdvice = "Pods run in members: set the member with --cluster."

// NewLogs returns the command that prints the logs of containers in a member.
func NewLogs(program *command.Program) *cobra.Command {
	return kubectlCommand{
		newCommand: ignoringParent(logs.NewCmdLogs), targets: membersOnly,
		use:              "logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER] (-C CLUSTER)",
		short:            "Print the logs of a container in a member",
		replacesExamples: true, examples: `
			# The log of a Pod in a member
			{{program}} logs web-5d8c-abcde --cluster east

			# The last lines of one container from before its restart
			{{program}} logs web-5d8c-abcde -c proxy --previous --tail 20 --cluster east

			# Follow the logs of all Pods of a Deployment
			{{program}} logs deployment/web --all-pods --follow --cluster east`,
	}.build(program)
}

// NewExec returns the command that runs a command in a container.
func NewExec(program *command.Program) *cobra.Command {
	return kubectlCommand{
		newCommand: ignoringParent(exec.NewCmdExec), targets: karmadaOrMember, advice: memberAdvice,
		use:              "exec (POD | TYPE/NAME) [-c CONTAINER] (-C CLUSTER) -- COMMAND [args...]",
		short:            "Run a command in a container",
		replacesExamples: true, examples: `
			# Run date in a Pod of a member
			{{program}} exec web-5d8c-abcde --cluster east -- date

			# Open a shell in the first Pod of a Deployment
			{{program}} exec deployment/web -C east -i -t -- sh`,
	}.build(program)
}

// NewAttach returns the command that attaches to a running container.
func NewAttach(program *command.Program) *cobra.Command {
	return kubectlCommand{
		newCommand: ignoringParent(attach.NewCmdAttach), targets: karmadaOrMember, advice: memberAdvice,
		short:            "Attach to a running container",
		replacesExamples: true, examples: `
			# The output of a running Pod in a member
			{{program}} attach web-5d8c-abcde --cluster east

			# Attach to the input of a container
			{{program}} attach deployment/web -c shell -i -t -C east`,
	}.build(program)
}

// NewExplain returns the command that documents fields.
func NewExplain(program *command.Program) *cobra.Command {
	return kubectlCommand{
		newCommand: explain.NewCmdExplain, targets: karmadaOrMember,
		use:   "explain TYPE [--recursive=FALSE|TRUE] [--api-version=api-version-group] [--output=plaintext|plaintext-openapiv2]",
		short: "Document the fields of a kind",
		examples: `
			# The fields of a placement
			{{program}} explain propagationpolicy.spec.placement

			# A kind of a member
			{{program}} explain nodes --cluster east`,
	}.build(program)
}

// NewDescribe returns the command that shows objects in detail.
func NewDescribe(program *command.Program) *cobra.Command {
	return kubectlCommand{
		newCommand: describe.NewCmdDescribe, targets: karmadaOrMember,
		use:   "describe (-f FILENAME | TYPE [NAME_PREFIX | -l label] | TYPE/NAME) (--operation-scope=SCOPE --cluster=CLUSTER)",
		short: "Show objects in detail, with their events",
		examples: `
			# A template with its events
			{{program}} describe deployment web

			# The same Deployment in a member
			{{program}} describe deployment web --cluster east

			# A member as the control plane sees it
			{{program}} describe cluster east`,
	}.build(program)
}

// NewAPIResources returns the command that lists types.
func NewAPIResources(program *command.Program) *cobra.Command {
	return kubectlCommand{
		newCommand: func(_ string, factory cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
			return apiresources.NewCmdAPIResources(factory, streams)
		},
		use: "api-resources [flags]", targets: karmadaOrMember, hasNoNamespace: true,
		short: "List the resource types of the control plane or of a member",
		examples: `
			# The types that can be created in the control plane
			{{program}} api-resources --verbs=create

			# The types of a member
			{{program}} api-resources --cluster east`,
	}.build(program)
}

// NewAPIVersions returns the command that lists API versions.
func NewAPIVersions(program *command.Program) *cobra.Command {
	return kubectlCommand{
		newCommand: func(_ string, factory cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
			return apiresources.NewCmdAPIVersions(factory, streams)
		},
		targets: karmadaOrMember, hasNoNamespace: true,
		short: "List the API versions of the control plane or of a member",
		examples: `
			# The versions of a member
			{{program}} api-versions --cluster east`,
	}.build(program)
}

// NewCreate returns the command that creates objects, with a subcommand for each of many
// kinds.
func NewCreate(program *command.Program) *cobra.Command {
	return kubectlCommand{newCommand: ignoringParent(create.NewCmdCreate), short: "Create objects in the control plane"}.build(program)
}

// NewDelete returns the command that deletes objects.
func NewDelete(program *command.Program) *cobra.Command {
	return kubectlCommand{newCommand: ignoringParent(kubectldelete.NewCmdDelete), short: "Delete objects of the control plane"}.build(program)
}

// NewEdit returns the command that opens objects in an editor.
func NewEdit(program *command.Program) *cobra.Command {
	return kubectlCommand{newCommand: ignoringParent(edit.NewCmdEdit),
		short: "Change objects of the control plane in an editor"}.build(program)
}

// NewPatch returns the command that changes fields.
func NewPatch(program *command.Program) *cobra.Command {
	return kubectlCommand{
		newCommand: ignoringParent(patch.NewCmdPatch), short: "Change fields of an object of the control plane",
		examples: `
			# Suspend the dispatching of a policy
			{{program}} patch propagationpolicy web -n shop --type merge -p '{"spec":{"suspension":{"dispatching":true}}}'`,
	}.build(program)
}

// NewLabel returns the command that sets labels.
func NewLabel(program *command.Program) *cobra.Command {
	return kubectlCommand{
		newCommand: ignoringParent(label.NewCmdLabel), short: "Set or remove labels of objects of the control plane",
		examples: `
			# Label a member for the label selectors of policies
			{{program}} label cluster east tier=gold`,
	}.build(program)
}

// NewAnnotate returns the command that sets annotations.
func NewAnnotate(program *command.Program) *cobra.Command {
	return kubectlCommand{
		newCommand: annotate.NewCmdAnnotate, short: "Set or remove annotations of objects of the control plane",
		examples: `
			# Take over an object that exists in members
			{{program}} annotate deployment web ` +
			workv1alpha2.ResourceConflictResolutionAnnotation + "=" + workv1alpha2.ResourceConflictResolutionOverwrite,
	}.build(program)
}
