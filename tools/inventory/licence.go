package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// allowedLicences lists the SPDX identifiers of the licenses that a dependency may have. All
// of them allow everybody to use, change and redistribute our programs under our license.
var allowedLicences = []string{"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MPL-2.0", "Unlicense",
	"Zlib"}

// licenceRule recognizes a license by its text, which must contain all phrases of has and none of lacks.
type licenceRule struct {
	licence    string
	has, lacks []string
}

const bsdRedistribution = "redistribution and use in source and binary forms, with or without modification, are permitted provided that the following conditions are met"

// licenceRules apply to texts in lower case, with single spaces and plain quotes.
var licenceRules = []licenceRule{
	{licence: "Apache-2.0", has: []string{"apache license version 2.0, january 2004",
		"terms and conditions for use, reproduction, and distribution"}},
	{licence: "Apache-2.0", has: []string{"licensed under the apache license, version 2.0"}},
	{licence: "MIT", has: []string{
		"permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files",
		"the above copyright notice and this permission notice shall be included in all copies or substantial portions of the software",
	}},
	{licence: "BSD-4-Clause", has: []string{bsdRedistribution, "all advertising materials mentioning features"}},
	{licence: "BSD-3-Clause", has: []string{bsdRedistribution, "endorse or promote products"}, lacks: []string{"all advertising materials"}},
	{licence: "BSD-2-Clause", has: []string{bsdRedistribution}, lacks: []string{"endorse or promote products", "all advertising materials"}},
	{licence: "ISC", has: []string{"distribute this software for any purpose with or without fee is hereby granted, provided that the above copyright notice and this permission notice appear in all copies"}},
	{licence: "0BSD", has: []string{"distribute this software for any purpose with or without fee is hereby granted."}},
	{licence: "MPL-2.0", has: []string{"mozilla public license", "version 2.0", "covered software"}},
	{licence: "CC0-1.0", has: []string{"creative commons", "cc0 1.0 universal"}},
	{licence: "Unlicense", has: []string{"this is free and unencumbered software released into the public domain"}},
	{licence: "Zlib", has: []string{"this software is provided 'as-is', without any express or implied warranty",
		"altered source versions must be plainly marked"}},
	// Known licenses that are not allowed.
	{licence: "GPL", has: []string{"gnu general public license"}, lacks: []string{"mozilla public license"}},
	{licence: "LGPL", has: []string{"gnu lesser general public license"}, lacks: []string{"mozilla public license"}},
	{licence: "AGPL", has: []string{"gnu affero general public license"}, lacks: []string{"mozilla public license"}},
	{licence: "SSPL-1.0", has: []string{"server side public license"}},
	{licence: "BUSL-1.1", has: []string{"business source license"}},
	{licence: "Commons-Clause", has: []string{"commons clause"}},
	{licence: "Elastic-2.0", has: []string{"elastic license"}},
}

var (
	spaces  = regexp.MustCompile(`[\s*#>]+`)
	quotes  = strings.NewReplacer("“", `"`, "”", `"`, "‘", "'", "’", "'", "``", `"`, "''", `"`)
	bullets = regexp.MustCompile(`(?m)^\s*(//|\*|#|--)\s?`)
)

// recogniseLicences returns the licenses whose text the given text contains.
func recogniseLicences(text string) []string {
	plain := spaces.ReplaceAllString(quotes.Replace(strings.ToLower(bullets.ReplaceAllString(text, ""))), " ")
	missing := func(part string) bool { return !strings.Contains(plain, part) }
	found := map[string]bool{}
	for _, m := range licenceRules {
		if !slices.ContainsFunc(m.has, missing) && !slices.ContainsFunc(m.lacks, func(part string) bool { return !missing(part) }) {
			found[m.licence] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// licenceFileName matches the names of license files. notLinkedFileName matches those that
// are code, or the license of documentation.
var (
	licenceFileName   = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense)([.-].*)?$`)
	notLinkedFileName = regexp.MustCompile(`(?i)\.(go|docs)$`)
)

var (
	errNoLicence         = errors.New("the module has no licence file: ask the authors, or remove the dependency")
	errUnknownLicence    = errors.New("the licence is not recognised: read it, and add a rule to tools/inventory if it may be allowed")
	errLicenceNotAllowed = errors.New("the licence is not allowed: remove the dependency")
)

// moduleLicence returns the SPDX expression of all licenses of the linked parts of a module.
func moduleLicence(m module) (string, error) {
	found := map[string]bool{}
	for _, dir := range m.dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return "", fmt.Errorf("listing licence files: %w", err)
		}
		for _, entry := range entries {
			if entry.IsDir() || !licenceFileName.MatchString(entry.Name()) || notLinkedFileName.MatchString(entry.Name()) {
				continue
			}
			licences, err := fileLicences(filepath.Join(dir, entry.Name()))
			if err != nil {
				return "", err
			}
			for _, licence := range licences {
				found[licence] = true
			}
		}
	}
	if len(found) == 0 {
		return "", errNoLicence
	}
	return strings.Join(slices.Sorted(maps.Keys(found)), " AND "), nil
}

// fileLicences returns the licenses in a license file. It returns an error if a license is unknown
// or not allowed.
func fileLicences(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading a licence: %w", err)
	}
	licences := recogniseLicences(string(text))
	if len(licences) == 0 {
		return nil, fmt.Errorf("%s: %w", path, errUnknownLicence)
	}
	for _, licence := range licences {
		if !slices.Contains(allowedLicences, licence) {
			return nil, fmt.Errorf("%s: %s: %w", path, licence, errLicenceNotAllowed)
		}
	}
	return licences, nil
}

// moduleLicences returns the licenses of modules by path, or an error with all problems.
func moduleLicences(modules []module) (map[string]string, error) {
	licences := map[string]string{}
	var errs []error
	for _, m := range modules {
		licence, err := moduleLicence(m)
		if err != nil {
			errs = append(errs, fmt.Errorf("module %s %s: %w", m.path, m.version, err))
			continue
		}
		licences[m.path] = licence
	}
	return licences, errors.Join(errs...)
}

// renderPage returns the content of docs/licenses.md.
func renderPage(modules []module) ([]byte, error) {
	licences, err := moduleLicences(modules)
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for _, licence := range licences {
		counts[licence]++
	}
	var text strings.Builder
	fmt.Fprintf(&text, "<!-- Written by `make licenses`. -->\n# Licences of what is linked in\n\n"+
		"Our own code is under the [Apache License 2.0](../LICENSE). The programs hold packages of %d other modules, and the standard library of Go (BSD-3-Clause). "+
		"`make verify` fails when this list is out of date, and when a module has a licence that is not recognised or is none of: %s.\n\n",
		len(modules), strings.Join(allowedLicences, ", "))
	fmt.Fprint(&text, "| licence | modules |\n|---|---|\n")
	for _, licence := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&text, "| %s | %d |\n", licence, counts[licence])
	}
	fmt.Fprint(&text, "\n| module | version | licence |\n|---|---|---|\n")
	for _, m := range modules {
		fmt.Fprintf(&text, "| %s | %s | %s |\n", m.path, m.version, licences[m.path])
	}
	return []byte(text.String()), nil
}
