// Command inventory lists the modules in our programs, with their licenses.
//
//	inventory licenses                    writes docs/licenses.md
//	inventory licenses --check            fails if the page is out of date
//	inventory sbom VERSION OUT PROGRAM... writes a CycloneDX document for each program
//
// Both commands fail for a license that is unknown or not allowed. The output depends only on
// the source: it contains no time, no host name and no random number.
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

// pagePath is the path of the license page, relative to the repository.
const pagePath = "docs/licenses.md"

var errUsage = errors.New("unknown arguments: use inventory licenses [--check], or inventory sbom VERSION OUT PROGRAM")

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

var errOutOfDate = errors.New("out of date: run `make licenses`, review the changes, and commit the result")

// writePage writes the license page. With check, it only compares the page.
func writePage(check bool) error {
	modules, err := linkedModules()
	if err != nil {
		return err
	}
	want, err := renderPage(modules)
	if err != nil {
		return err
	}
	if !check {
		return os.WriteFile(pagePath, want, 0o644) // a page of the documentation
	}
	have, err := os.ReadFile(pagePath)
	if err != nil {
		return fmt.Errorf("reading the page of licences: %w", err)
	}
	if !bytes.Equal(have, want) {
		return fmt.Errorf("%s: %w", pagePath, errOutOfDate)
	}
	return nil
}

// writeDocuments writes the CycloneDX document of each program to a directory.
func writeDocuments(version, out string, programs []string) error {
	modules, err := linkedModules()
	if err != nil {
		return err
	}
	licences, err := moduleLicences(modules)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil { // to be published
		return fmt.Errorf("creating the directory of the documents: %w", err)
	}
	for _, program := range programs {
		document, err := newDocument(program, version, licences)
		if err != nil {
			return fmt.Errorf("program %s: %w", program, err)
		}
		path := filepath.Join(out, filepath.Base(program)+".cdx.json")
		if err := os.WriteFile(path, document, 0o644); err != nil { // to be published
			return fmt.Errorf("writing the document of %s: %w", program, err)
		}
		fmt.Println(path)
	}
	return nil
}
