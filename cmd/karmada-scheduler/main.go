// Karmada-scheduler decides which clusters get a workload, and how many replicas
// in each.
package main

import (
	"os"

	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/scheduling"
)

func main() { os.Exit(command.Main(scheduling.Program())) }
