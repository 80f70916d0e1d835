// Karmada-agent registers its cluster with a control plane, and applies the Works of the control
// plane in this cluster.
package main

import (
	"os"

	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/agent"
	"karmada.io/karmada/internal/programs/command"
)

func main() { os.Exit(command.Main(programs.Program(agent.New))) }
