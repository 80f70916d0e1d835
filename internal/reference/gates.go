package reference

import (
	"fmt"

	"karmada.io/karmada/internal/programs/gates"
)

func gatesPage() *markdown {
	text := newMarkdown("Feature gates", "`--feature-gates` of every program takes a list of `name=true` or `name=false`. "+
		"All programs know all gates, so that they can have the same value. "+
		"A gate without effect is accepted, and this version does not have the feature. "+
		"The programs also know the gates of their libraries, which `--help` lists.")
	var rows [][]string
	for _, gate := range gates.Table() {
		effect := ""
		if gate.NotImplemented {
			effect = "none"
		}
		stage := string(gate.Spec.PreRelease)
		rows = append(rows, []string{code(string(gate.Name)), stage, fmt.Sprint(gate.Spec.Default), cell(sentence(gate.Help)), effect})
	}
	text.addTable([]string{"gate", "stage", "default", "meaning", "effect"}, rows)
	return text
}
