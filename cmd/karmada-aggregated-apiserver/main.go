// Command karmada-aggregated-apiserver serves the Cluster API of a Karmada control plane
// and proxies requests to member clusters.
package main

import (
	"os"

	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/apiservers"
	"karmada.io/karmada/internal/programs/command"
)

func main() { os.Exit(command.Main(programs.Program(apiservers.NewAggregated))) }
