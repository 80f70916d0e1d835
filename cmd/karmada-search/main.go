// Command karmada-search searches the objects of all member clusters, and serves them as one cluster
// through the global proxy.
package main

import (
	"os"

	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/apiservers"
	"karmada.io/karmada/internal/programs/command"
)

func main() { os.Exit(command.Main(programs.Program(apiservers.NewSearch))) }
