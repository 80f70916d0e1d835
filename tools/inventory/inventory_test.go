package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

const (
	mit = `Copyright (c) 2026 Somebody

Permission is hereby granted, free of charge, to any person obtaining a copy of this
software and associated documentation files (the "Software"), to deal in the Software.

The above copyright notice and this permission notice shall be included in all copies
or substantial portions of the Software.
`
	bsd2 = `Redistribution and use in source and binary forms, with or without
modification, are permitted provided that the following conditions are met:
`
	bsd3 = bsd2 + "   * Neither the name of Somebody may be used to endorse or promote products\n"
	isc  = `Permission to use, copy, modify, and/or distribute this software for any
purpose with or without fee is hereby granted, provided that the above
copyright notice and this permission notice appear in all copies.`
	apache = "                 Apache License\n           Version 2.0, January 2004\n\n TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION\n"
)

func TestRecogniseLicences(t *testing.T) {
	tests := map[string]struct {
		text string
		want []string
	}{
		"MIT":                         {mit, []string{"MIT"}},
		"MIT in a comment":            {"// " + strings.ReplaceAll(mit, "\n", "\n// "), []string{"MIT"}},
		"BSD with two clauses":        {bsd2, []string{"BSD-2-Clause"}},
		"BSD with three clauses":      {bsd3, []string{"BSD-3-Clause"}},
		"BSD with advertising":        {bsd3 + "All advertising materials mentioning features", []string{"BSD-4-Clause"}},
		"ISC":                         {isc, []string{"ISC"}},
		"Apache":                      {apache, []string{"Apache-2.0"}},
		"two licences":                {mit + apache, []string{"Apache-2.0", "MIT"}},
		"MIT with a Commons Clause":   {mit + `"Commons Clause" License Condition`, []string{"Commons-Clause", "MIT"}},
		"GPL":                         {"GNU GENERAL PUBLIC LICENSE\nVersion 3", []string{"GPL"}},
		"only the name of a licence":  {"This is under the MIT license.", nil},
		"MIT without its condition":   {mit[:200], nil},
		"an empty text":               {"", nil},
		"an unknown text":             {"You may do what you like on Sundays.", nil},
		"MIT with typographic quotes": {strings.ReplaceAll(mit, `"Software"`, "“Software”"), []string{"MIT"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := recogniseLicences(test.text); !slices.Equal(got, test.want) {
				t.Errorf("recognised %q, want %q", got, test.want)
			}
		})
	}
}

func TestModuleLicence(t *testing.T) {
	tests := map[string]struct {
		files map[string]string
		want  string
		err   error
	}{
		"one licence":                              {files: map[string]string{"LICENSE": mit}, want: "MIT"},
		"another licence in a directory":           {files: map[string]string{"LICENSE.txt": apache, "third_party/COPYING": bsd3}, want: "Apache-2.0 AND BSD-3-Clause"},
		"no licence file":                          {files: map[string]string{"README.md": mit}, err: errNoLicence},
		"a licence of documentation":               {files: map[string]string{"LICENSE": mit, "LICENSE.docs": "Attribution-ShareAlike 4.0"}, want: "MIT"},
		"code with the name of a licence":          {files: map[string]string{"license.go": mit}, err: errNoLicence},
		"an unknown licence":                       {files: map[string]string{"LICENSE": "mine"}, err: errUnknownLicence},
		"an unknown licence in a directory":        {files: map[string]string{"LICENSE": mit, "third_party/LICENSE-MINE": "mine"}, err: errUnknownLicence},
		"a licence that is not allowed":            {files: map[string]string{"COPYING": "GNU GENERAL PUBLIC LICENSE"}, err: errLicenceNotAllowed},
		"an allowed licence with a Commons Clause": {files: map[string]string{"LICENSE": apache + "Commons Clause"}, err: errLicenceNotAllowed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			m := module{path: "example.com/m", version: "v1.0.0", dirs: []string{top}}
			for name, text := range test.files {
				path := filepath.Join(top, name)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
					t.Fatal(err)
				}
				if dir := filepath.Dir(path); !slices.Contains(m.dirs, dir) {
					m.dirs = append(m.dirs, dir)
				}
			}
			got, err := moduleLicence(m)
			if got != test.want || !errors.Is(err, test.err) {
				t.Errorf("licence %q, %v, want %q, %v", got, err, test.want, test.err)
			}
		})
	}
}

func TestParseModules(t *testing.T) {
	const packages = `{"Dir":"/go/src/fmt","Standard":true}
{"Dir":"/src/internal/a","Module":{"Path":"karmada.io/karmada","Main":true,"Dir":"/src"}}
{"Dir":"/mod/b@v1/x/y","Module":{"Path":"b","Version":"v1","Dir":"/mod/b@v1"}}
{"Dir":"/mod/a@v2","Module":{"Path":"a","Version":"v2","Dir":"/mod/a@v2"}}`
	modules, err := parseModules(json.NewDecoder(strings.NewReader(packages)))
	if err != nil || len(modules) != 2 {
		t.Fatalf("modules %+v (%v)", modules, err)
	}
	if modules[0].path != "a" || modules[1].path != "b" || !slices.Equal(modules[1].dirs, []string{"/mod/b@v1", "/mod/b@v1/x", "/mod/b@v1/x/y"}) {
		t.Errorf("modules %+v", modules)
	}
}

func TestComposeDocument(t *testing.T) {
	info := &debug.BuildInfo{
		GoVersion: "go1.26.8", Path: "karmada.io/karmada/cmd/karmadactl", Main: debug.Module{Path: "karmada.io/karmada", Version: "(devel)"},
		Deps:     []*debug.Module{{Path: "example.com/m", Version: "v1.2.3", Sum: "h1:abc="}},
		Settings: []debug.BuildSetting{{Key: "GOOS", Value: "linux"}},
	}
	made, err := composeDocument(info, "v1.0.0", "0123", map[string]string{"example.com/m": "MIT"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(made)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		`"purl":"pkg:golang/karmada.io/karmada@v1.0.0#cmd/karmadactl"`, `"alg":"SHA-256","content":"0123"`, `"purl":"pkg:golang/std@1.26.8"`,
		`"purl":"pkg:golang/example.com/m@v1.2.3"`, `"expression":"MIT"`, `{"name":"go:GOOS","value":"linux"}`,
	} {
		if !bytes.Contains(text, []byte(part)) {
			t.Errorf("%s is missing in\n%s", part, text)
		}
	}
	if _, err := composeDocument(info, "v1.0.0", "0123", nil); err == nil {
		t.Error("a module that is not in the source is accepted")
	}
}
