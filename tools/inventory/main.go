// Command inventory answers "which modules are in our programs, and under which
// licences?".
//
//	inventory licenses                    writes docs/licenses.md
//	inventory licenses --check            fails if the page is out of date
//	inventory sbom VERSION OUT PROGRAM... writes a CycloneDX document for each program
//
// Both fail for a licence that is unknown or not allowed. What it writes depends on the
// source alone: no time, no machine, no random number.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// page is the list of licences, seen from the top of the repository.
const page = "docs/licenses.md"

var errUsage = errors.New("unknown arguments: call it as inventory licenses [--check], or as inventory sbom VERSION OUT PROGRAM")

func run(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "licenses":
		return writePage(false)
	case len(args) == 2 && args[0] == "licenses" && args[1] == "--check":
		return writePage(true)
	case len(args) > 3 && args[0] == "sbom":
		return writeDocuments(args[1], args[2], args[3:])
	default:
		return errUsage
	}
}

var errStale = errors.New("out of date: run `make licenses`, read what changed, and commit the result")

// writePage writes the page of licences, or only compares it.
func writePage(check bool) error {
	modules, err := linked()
	if err != nil {
		return err
	}
	want, err := pageOf(modules)
	if err != nil {
		return err
	}
	if !check {
		return os.WriteFile(page, want, 0o644) //nolint:gosec // a page of the documentation
	}
	have, err := os.ReadFile(page)
	if err != nil {
		return fmt.Errorf("reading the page of licences: %w", err)
	}
	if !bytes.Equal(have, want) {
		return fmt.Errorf("%s: %w", page, errStale)
	}
	return nil
}

// writeDocuments writes a document for each program of a version into a directory.
func writeDocuments(version, out string, programs []string) error {
	modules, err := linked()
	if err != nil {
		return err
	}
	licences, err := licencesOf(modules)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil { //nolint:gosec // to be published
		return fmt.Errorf("creating the directory of the documents: %w", err)
	}
	for _, program := range programs {
		document, err := documentOf(program, version, licences)
		if err != nil {
			return fmt.Errorf("program %s: %w", program, err)
		}
		path := filepath.Join(out, filepath.Base(program)+".cdx.json")
		if err := os.WriteFile(path, document, 0o644); err != nil { //nolint:gosec // to be published
			return fmt.Errorf("writing the document of %s: %w", program, err)
		}
		fmt.Println(path)
	}
	return nil
}
