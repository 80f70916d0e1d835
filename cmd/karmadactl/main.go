// Karmadactl controls a Karmada control plane and its member clusters.
package main

import (
	"os"

	"karmada.io/karmada/internal/cli"
)

func main() { os.Exit(cli.Run(cli.Karmadactl)) }
