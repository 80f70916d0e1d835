// Command karmada-webhook validates, defaults and converts the objects of Karmada for its
// API server.
package main

import (
	"os"

	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/webhook"
)

func main() { os.Exit(command.Main(programs.Program(webhook.New))) }
