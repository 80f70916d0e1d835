// Karmada-scheduler selects the clusters of a workload, and the number of replicas in each
// cluster.
package main

import (
	"os"

	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/scheduling"
)

func main() { os.Exit(command.Main(programs.Program(scheduling.New))) }
