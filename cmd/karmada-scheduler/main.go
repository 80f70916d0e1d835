// Karmada-scheduler chooses the clusters of a workload, and the number of replicas in each.
package main

import (
	"os"

	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/scheduling"
)

func main() { os.Exit(command.Main(scheduling.Program())) }
