// Karmada-controller-manager propagates resource templates to member clusters, and collects the
// status of the propagated objects.
package main

import (
	"os"

	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/controllermanager"
)

func main() { os.Exit(command.Main(programs.Program(controllermanager.New))) }
