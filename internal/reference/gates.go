package reference

import (
	"fmt"

	"karmada.io/karmada/internal/programs/gates"
)

func gatesPage(s *source) *markdown {
	text := newMarkdown("Feature gates", "The flag `--feature-gates` of a program takes a comma-separated list of `name=true` or `name=false`. "+
		"Every program accepts all gates in this table, so you can set the same value for all programs. "+
		"If the effect of a gate is none, this version accepts the gate but does not implement the feature. "+
		"Each program also accepts the gates of its libraries, which `--help` lists.")
	var rows [][]string
	for _, gate := range gates.Table() {
		effect := ""
		if !s.gates[string(gate.Name)] {
			effect = "none"
		}
		stage := string(gate.Spec.PreRelease)
		rows = append(rows, []string{code(string(gate.Name)), stage, fmt.Sprint(gate.Spec.Default), cell(sentence(gate.Help)), effect})
	}
	text.addTable([]string{"gate", "stage", "default", "meaning", "effect"}, rows)
	return text
}
