package reference

import (
	"slices"
	"strings"

	"karmada.io/karmada/internal/domain/conditions"
)

// unservedKinds returns the kinds whose conditions no controller of this version writes.
func unservedKinds() []string { return []string{"MultiClusterService", "FederatedHPA", "Karmada"} }

func conditionsPage(s *source) *markdown {
	text := newMarkdown("Conditions", "The conditions that this version writes, with all their reasons. [Status](../status.md) explains how to use them.")
	var kinds []string
	byKind := map[string][]conditions.Row{}
	for _, row := range conditions.Table() {
		kind := strings.Join(row.Kinds, ", ")
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
		byKind[kind] = append(byKind[kind], row)
	}
	for _, kind := range kinds {
		if slices.Contains(unservedKinds(), kind) {
			continue
		}
		text.addSection(kind, "")
		addConditions(text, s, byKind[kind])
	}
	text.addSection("Kinds without a controller", "This version does not write the conditions of "+strings.Join(unservedKinds(), ", ")+", because it has no controller for these kinds.")
	return text
}

// addConditions adds the conditions of a kind: the meaning of each type, and its reasons.
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
	text.addTable([]string{"type", "status", "reason", "when"}, reasons)
}

// conditionMeaning returns the meaning of a condition type from the comment of its constant. It
// returns an empty string for the conditions of Kubernetes.
func (s *source) conditionMeaning(kinds []string, conditionType string) string {
	for _, kind := range kinds {
		folders := append(slices.Clone(s.kinds[kind]), "api/cluster/v1alpha1")
		for i := range s.constants {
			c := &s.constants[i]
			if c.value != conditionType || !slices.Contains(folders, c.folder) {
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
