package reference

import (
	"slices"
	"strings"

	"karmada.io/karmada/internal/domain/conditions"
)

// isWritten reports whether code of this version uses the reason of at least one of the given
// conditions of a kind. If it uses none, this version has no controller for the kind.
func (s *source) isWritten(rows []conditions.Row) bool {
	for _, row := range rows {
		for i := range s.constants {
			c := &s.constants[i]
			isOfKind := slices.Contains(s.foldersOf(row.Kinds), c.folder) || len(s.kinds[row.Kinds[0]]) == 0 // a kind of Kubernetes
			if c.value == row.Reason && isOfKind && len(s.users(c)) > 0 {
				return true
			}
		}
	}
	return false
}

// foldersOf returns the folders of api whose constants the conditions of the given kinds use.
func (s *source) foldersOf(kinds []string) []string {
	folders := []string{"api/cluster/v1alpha1"} // also contains condition types of Kubernetes kinds
	for _, kind := range kinds {
		folders = append(folders, s.kinds[kind]...)
	}
	return folders
}

func conditionsPage(s *source) *markdown {
	text := newMarkdown("Conditions", "This page lists the conditions that this version writes, with all their reasons. [Status](../status.md) explains how to use conditions.")
	var kinds []string
	byKind := map[string][]conditions.Row{}
	for _, row := range conditions.Table() {
		kind := strings.Join(row.Kinds, ", ")
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
		byKind[kind] = append(byKind[kind], row)
	}
	var unserved []string
	for _, kind := range kinds {
		if !s.isWritten(byKind[kind]) {
			unserved = append(unserved, kind)
			continue
		}
		text.addSection(kind, "")
		addConditions(text, s, byKind[kind])
	}
	if len(unserved) > 0 {
		text.addSection("Kinds without a controller",
			"This version does not write the conditions of "+strings.Join(unserved, ", ")+", because it has no controller for these kinds.")
	}
	return text
}

// addConditions adds a kind's conditions: one table with the meaning of each type, and one table with
// the reasons.
func addConditions(text *markdown, s *source, rows []conditions.Row) {
	var meanings, reasons [][]string
	for _, row := range rows {
		if !slices.ContainsFunc(meanings, func(known []string) bool { return known[0] == code(row.Type) }) {
			meanings = append(meanings, []string{code(row.Type), cell(s.conditionMeaning(row.Kinds, row.Type))})
		}
		reasons = append(reasons, []string{code(row.Type), string(row.Status), code(row.Reason), cell(sentence(row.When))})
	}
	slices.SortStableFunc(reasons, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	if slices.ContainsFunc(meanings, func(meaning []string) bool { return meaning[1] != "" }) {
		text.addTable([]string{"type", "meaning"}, meanings)
	}
	text.addTable([]string{"type", "status", "reason", "meaning"}, reasons)
}

// conditionMeaning returns the meaning of a condition type from the comment of its constant. It
// returns an empty string for the conditions of Kubernetes.
func (s *source) conditionMeaning(kinds []string, conditionType string) string {
	for _, kind := range kinds {
		for i := range s.constants {
			c := &s.constants[i]
			if c.value != conditionType || !slices.Contains(s.foldersOf([]string{kind}), c.folder) {
				continue
			}
			if _, meaning, ok := strings.Cut(c.comment, c.name+" "); ok && isConditionComment(meaning) {
				return sentence(meaning)
			}
		}
	}
	return ""
}

// isConditionComment reports whether a comment belongs to a condition type. The comment is given
// without the name of its constant. The comments of reasons and events have another form.
func isConditionComment(meaning string) bool {
	for _, verb := range []string{"reports ", "on a ", "of a "} {
		if strings.HasPrefix(meaning, verb) {
			return true
		}
	}
	return false
}
