// Kubectl-karmada is karmadactl as a plugin of kubectl: kubectl karmada.
package main

import (
	"os"

	"karmada.io/karmada/internal/cli"
)

func main() { os.Exit(cli.Run(cli.Plugin)) }
