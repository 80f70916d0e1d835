// Karmada-controller-manager propagates templates to member clusters, and collects their
// status.
package main

import (
	"os"

	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/controllermanager"
)

func main() { os.Exit(command.Main(controllermanager.Program())) }
