package searchquery

import (
	"slices"
	"strings"

	"karmada.io/karmada/internal/domain/spelling"
)

const (
	labelPrefix      = "label."
	annotationPrefix = "annotation."
)

// field is a term's left side.
type field struct {
	// name is the canonical name including the key or path, for example "namespace", "label.app" or
	// "spec.replicas".
	name string
	kind fieldKind
	// key is the key of the label or annotation.
	key string
	// path contains the field names if kind is pathField.
	path []string
}

type fieldKind string

// Kinds of fields. Except for the last three, the kind is also the name of the field.
const (
	kindField       fieldKind = "kind"
	apiVersionField fieldKind = "apiVersion"
	groupField      fieldKind = "group"
	clusterField    fieldKind = "cluster"
	namespaceField  fieldKind = "namespace"
	nameField       fieldKind = "name"
	imageField      fieldKind = "image"
	phaseField      fieldKind = "phase"
	nodeField       fieldKind = "node"
	readyField      fieldKind = "ready"
	statusField     fieldKind = "status"
	ownerField      fieldKind = "owner"
	ageField        fieldKind = "age"
	restartsField   fieldKind = "restarts"

	labelField      fieldKind = "label"
	annotationField fieldKind = "annotation"
	pathField       fieldKind = "path"
)

// namedFields lists the fields that have their own name instead of a path.
func namedFields() []fieldKind {
	return []fieldKind{
		kindField, apiVersionField, groupField, clusterField, namespaceField, nameField, imageField, phaseField,
		nodeField, readyField, statusField, ownerField, ageField, restartsField,
	}
}

// pathRoots lists the object fields with which a path may begin. A path that begins with another field
// needs a leading ".", so that a misspelled field is an error.
func pathRoots() []string {
	return []string{"metadata", "spec", "status", "data", "binaryData", "rules", "subjects", "roleRef", "webhooks", "secrets", "subsets",
		"endpoints", "ports"}
}

// FieldNames returns the names of all fields, for messages and completion. A name that ends with "."
// must be followed by a key or a path.
func FieldNames() []string {
	names := []string{"ns", labelPrefix, annotationPrefix}
	for _, kind := range namedFields() {
		names = append(names, string(kind))
	}
	for _, root := range pathRoots() {
		names = append(names, root+".")
	}
	slices.Sort(names)
	return names
}

func (f field) isAge() bool { return f.kind == ageField }

// parseField returns the field that a term names. Field names are case-insensitive.
func parseField(text string, from token) (field, error) {
	name := from.field
	switch {
	case name == "":
		return field{}, syntaxError(text, from.offset, "for example: kind=Pod; put text with this character in quotes",
			"expected a field before %q", from.operator)
	case strings.EqualFold(name, "ns"):
		return field{name: string(namespaceField), kind: namespaceField}, nil
	case strings.HasPrefix(name, labelPrefix):
		return keyField(text, from, labelPrefix, labelField)
	case strings.HasPrefix(name, annotationPrefix):
		return keyField(text, from, annotationPrefix, annotationField)
	}
	for _, kind := range namedFields() {
		if strings.EqualFold(name, string(kind)) {
			return field{name: string(kind), kind: kind}, nil
		}
	}
	root, _, isPath := strings.Cut(strings.TrimPrefix(name, "."), ".")
	if strings.HasPrefix(name, ".") || isPath && slices.Contains(pathRoots(), root) {
		return newPathField(text, from)
	}
	return field{}, syntaxError(text, from.offset, fieldHint(name, root), "unknown field %q", shorten(name, maxQuoted))
}

func keyField(text string, from token, prefix string, kind fieldKind) (field, error) {
	key := strings.TrimPrefix(from.field, prefix)
	if key == "" {
		return field{}, syntaxError(text, from.offset, "for example: "+prefix+"app", "expected a key after %q", prefix)
	}
	return field{name: from.field, kind: kind, key: key}, nil
}

func newPathField(text string, from token) (field, error) {
	path := strings.Split(strings.TrimPrefix(from.field, "."), ".")
	if slices.Contains(path, "") {
		return field{}, syntaxError(text, from.offset, "for example: spec.replicas",
			"%q has an empty part, expected names of fields between dots", shorten(from.field, maxQuoted))
	}
	return field{name: from.field, kind: pathField, path: path}, nil
}

// fieldHint suggests the field that the user probably meant.
func fieldHint(name, root string) string {
	candidates := []string{"ns"}
	for _, kind := range namedFields() {
		candidates = append(candidates, string(kind))
	}
	if nearest := spelling.Nearest(name, candidates); nearest != "" {
		return "did you mean " + nearest + "? To search for text, put it in quotes"
	}
	if rest, found := strings.CutPrefix(name, root+"."); found {
		if nearest := spelling.Nearest(root, append(pathRoots(), "label", "annotation")); nearest != "" {
			return "did you mean " + shorten(nearest+"."+rest, maxQuoted) + "? A path that begins with another field needs a leading dot"
		}
	}
	return "to search for text, put it in quotes; fields are " + strings.Join(candidates, ", ") +
		", label.KEY, annotation.KEY and paths such as spec.replicas"
}
