// Command generate writes the pages of docs/reference. It must run in the root directory of the
// repository.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/reference"
)

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	// Linked libraries register flags in the global flag set. Cobra would show these flags as flags
	// of each program.
	pflag.CommandLine = pflag.NewFlagSet(os.Args[0], pflag.ContinueOnError)
	pages, err := reference.Pages(root)
	if err != nil {
		return err
	}
	for _, page := range pages {
		file := filepath.Join(root, filepath.FromSlash(page.Path))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { // pages of the documentation
			return fmt.Errorf("creating the folder of a page: %w", err)
		}
		if err := os.WriteFile(file, []byte(page.Content), 0o644); err != nil { // pages of the documentation
			return fmt.Errorf("writing a page: %w", err)
		}
	}
	return nil
}
