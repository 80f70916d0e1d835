// Karmada-descheduler takes replicas away from clusters that cannot run them, so that the
// scheduler places them in other clusters.
package main

import (
	"os"

	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/scheduling"
)

func main() { os.Exit(command.Main(programs.Program(scheduling.NewDescheduler))) }
