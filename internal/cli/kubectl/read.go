package kubectl

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/apiresources"
	"k8s.io/kubectl/pkg/cmd/describe"
	"k8s.io/kubectl/pkg/cmd/explain"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"karmada.io/karmada/internal/cli/command"
)

// NewExplain returns the command that documents fields.
func NewExplain(program *command.Program) *cobra.Command {
	return verb{
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
	return verb{
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
	return verb{
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
	return verb{
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
