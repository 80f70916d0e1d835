package kubectl

import (
	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/cmd/attach"
	"k8s.io/kubectl/pkg/cmd/exec"
	"k8s.io/kubectl/pkg/cmd/logs"

	"karmada.io/karmada/internal/cli/command"
)

const inMembers = "Pods run in members: --cluster names the one to look in."

// NewLogs is the command that shows what containers of a member write.
func NewLogs(program *command.Program) *cobra.Command {
	return verb{
		construct: withoutParent(logs.NewCmdLogs), side: memberOnly,
		use:   "logs [-f] [-p] (POD | TYPE/NAME) [-c CONTAINER] (-C CLUSTER)",
		short: "Show what a container in a member writes",
		alone: true, examples: `
			# The log of a Pod in a member
			{{program}} logs web-5d8c-abcde --cluster east

			# The last lines of one container, from before it began anew
			{{program}} logs web-5d8c-abcde -c proxy --previous --tail 20 --cluster east

			# All Pods of a Deployment, as they write
			{{program}} logs deployment/web --all-pods --follow --cluster east`,
	}.command(program)
}

// NewExec is the command that runs a command in a container.
func NewExec(program *command.Program) *cobra.Command {
	return verb{
		construct: withoutParent(exec.NewCmdExec), side: eitherSide, advice: inMembers,
		use:   "exec (POD | TYPE/NAME) [-c CONTAINER] (-C CLUSTER) -- COMMAND [args...]",
		short: "Run a command in a container",
		alone: true, examples: `
			# Run date in a Pod of a member
			{{program}} exec web-5d8c-abcde --cluster east -- date

			# Open a shell in the first Pod of a Deployment
			{{program}} exec deployment/web -C east -i -t -- sh`,
	}.command(program)
}

// NewAttach is the command that joins the streams of a running container.
func NewAttach(program *command.Program) *cobra.Command {
	return verb{
		construct: withoutParent(attach.NewCmdAttach), side: eitherSide, advice: inMembers,
		short: "Attach to a running container",
		alone: true, examples: `
			# The output of a running Pod in a member
			{{program}} attach web-5d8c-abcde --cluster east

			# Talk to a container that reads
			{{program}} attach deployment/web -c shell -i -t -C east`,
	}.command(program)
}
