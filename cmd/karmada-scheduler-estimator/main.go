// Command karmada-scheduler-estimator reports to the scheduler how many replicas fit into one
// member cluster.
package main

import (
	"os"

	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/scheduling"
)

func main() { os.Exit(command.Main(programs.Program(scheduling.NewEstimator))) }
