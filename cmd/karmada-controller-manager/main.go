// Karmada-controller-manager turns templates into objects of member clusters, and
// their status back.
package main

import (
	"os"

	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/controllermanager"
)

func main() { os.Exit(command.Main(controllermanager.Program())) }
