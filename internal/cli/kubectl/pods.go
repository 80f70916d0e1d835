package kubectl

import (
	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/cmd/attach"
	"k8s.io/kubectl/pkg/cmd/exec"
	"k8s.io/kubectl/pkg/cmd/logs"

	"karmada.io/karmada/internal/cli/command"
)

const memberAdvice = "Pods run in members: set the member with --cluster."

// NewLogs returns the command that prints the logs of containers in a member.
func NewLogs(program *command.Program) *cobra.Command {
	return verb{
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
	return verb{
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
	return verb{
		newCommand: ignoringParent(attach.NewCmdAttach), targets: karmadaOrMember, advice: memberAdvice,
		short:            "Attach to a running container",
		replacesExamples: true, examples: `
			# The output of a running Pod in a member
			{{program}} attach web-5d8c-abcde --cluster east

			# Attach to the input of a container
			{{program}} attach deployment/web -c shell -i -t -C east`,
	}.build(program)
}
