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

// NewExplain is the command that documents fields.
func NewExplain(program *command.Program) *cobra.Command {
	return verb{
		construct: explain.NewCmdExplain, side: eitherSide,
		use:   "explain TYPE [--recursive=FALSE|TRUE] [--api-version=api-version-group] [--output=plaintext|plaintext-openapiv2]",
		short: "Document the fields of a kind",
		examples: `
			# The fields of a placement
			{{program}} explain propagationpolicy.spec.placement

			# A kind that a member has
			{{program}} explain nodes --cluster east`,
	}.command(program)
}

// NewDescribe is the command that shows objects in detail.
func NewDescribe(program *command.Program) *cobra.Command {
	return verb{
		construct: describe.NewCmdDescribe, side: eitherSide,
		use:   "describe (-f FILENAME | TYPE [NAME_PREFIX | -l label] | TYPE/NAME) (--operation-scope=SCOPE --cluster=CLUSTER)",
		short: "Show objects in detail, with their events",
		examples: `
			# A template, with what became of it
			{{program}} describe deployment web

			# The same Deployment in a member
			{{program}} describe deployment web --cluster east

			# A member as the control plane sees it
			{{program}} describe cluster east`,
	}.command(program)
}

// NewAPIResources is the command that lists types.
func NewAPIResources(program *command.Program) *cobra.Command {
	return verb{
		construct: func(_ string, factory cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
			return apiresources.NewCmdAPIResources(factory, streams)
		},
		use: "api-resources [flags]", side: eitherSide, clusterWide: true,
		short: "List the types that the control plane or a member has",
		examples: `
			# What can be propagated from here
			{{program}} api-resources --verbs=create

			# What a member has
			{{program}} api-resources --cluster east`,
	}.command(program)
}

// NewAPIVersions is the command that lists versions of types.
func NewAPIVersions(program *command.Program) *cobra.Command {
	return verb{
		construct: func(_ string, factory cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
			return apiresources.NewCmdAPIVersions(factory, streams)
		},
		side: eitherSide, clusterWide: true,
		short: "List the API versions that the control plane or a member has",
		examples: `
			# The versions of a member
			{{program}} api-versions --cluster east`,
	}.command(program)
}
