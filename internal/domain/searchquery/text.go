package searchquery

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// cachedFrom is the annotation that contains a cached object's cluster. Text does not match it, because
// all cached objects have it.
const cachedFrom = clusterv1alpha1.CachedFromClusterAnnotation

// Words calls yield for each of the object's words that text can match, in lower case, until yield
// returns false. Words can repeat.
func Words(object map[string]any, yield func(word string) bool) {
	visitTexts(visible(object), func(_ *textWalk, text string) bool {
		for word, rest := nextWord(text); word != ""; word, rest = nextWord(rest) {
			if !yield(strings.ToLower(word)) {
				return false
			}
		}
		return true
	})
}

// visitTexts calls visit for each key and scalar value that text can match: all of the object's fields
// except its kind and the fields that the API server or Karmada changes. It stops when visit returns
// false. The order is undefined.
func visitTexts(object map[string]any, visit func(w *textWalk, text string) bool) {
	w := &textWalk{visit: visit}
	w.visitFields(object)
}

// textWalk is a walk over an object.
type textWalk struct {
	visit func(*textWalk, string) bool
	path  []pathStep
}

// pathStep is a field name or, if name is empty, an index in an array.
type pathStep struct {
	name  string
	index int
}

// comparePaths compares paths step by step: first by name, then by index.
func comparePaths(a, b []pathStep) int {
	return slices.CompareFunc(a, b, func(a, b pathStep) int {
		return cmp.Or(strings.Compare(a.name, b.name), cmp.Compare(a.index, b.index))
	})
}

func pathString(path []pathStep) string {
	var b strings.Builder
	for i, step := range path {
		switch {
		case step.name == "":
			b.WriteString("[" + strconv.Itoa(step.index) + "]")
		case i > 0:
			b.WriteString("." + step.name)
		default:
			b.WriteString(step.name)
		}
	}
	return b.String()
}

func (w *textWalk) visitFields(fields map[string]any) bool {
	for key, value := range fields {
		if !w.visitField(key, value) {
			return false
		}
	}
	return true
}

func (w *textWalk) visitField(key string, value any) bool {
	if w.isExcluded(key) {
		return true
	}
	w.path = append(w.path, pathStep{name: key})
	// Do not visit the names of top-level fields, because they are the same in all objects of a kind.
	if len(w.path) > 1 && !w.visit(w, key) || !w.visitValue(value) {
		return false
	}
	w.path = w.path[:len(w.path)-1]
	return true
}

func (w *textWalk) visitValue(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return w.visitFields(value)
	case []any:
		for i, element := range value {
			w.path = append(w.path, pathStep{index: i})
			if !w.visitValue(element) {
				return false
			}
			w.path = w.path[:len(w.path)-1]
		}
		return true
	}
	text, isScalar := scalar(value)
	return !isScalar || w.visit(w, text)
}

// isExcluded reports whether text does not match the given field at the current path.
func (w *textWalk) isExcluded(key string) bool {
	switch len(w.path) {
	case 0:
		return key == "apiVersion" || key == "kind"
	case 1:
		return w.path[0].name == "metadata" && (key == "managedFields" || key == "resourceVersion")
	case 2:
		return w.path[0].name == "metadata" && w.path[1].name == "annotations" && (key == lastApplied || key == cachedFrom)
	}
	return false
}
