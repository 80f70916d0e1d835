// Karmada-agent registers the cluster that it runs in with a control plane, and
// does there what the control plane wants.
package main

import (
	"os"

	"karmada.io/karmada/internal/programs/agent"
	"karmada.io/karmada/internal/programs/command"
)

func main() { os.Exit(command.Main(agent.Program())) }
