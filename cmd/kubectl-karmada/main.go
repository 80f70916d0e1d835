// Kubectl-karmada is karmadactl as a kubectl plugin, which users run as kubectl karmada.
package main

import (
	"os"

	"karmada.io/karmada/internal/cli"
)

func main() { os.Exit(cli.Run(cli.Plugin)) }
