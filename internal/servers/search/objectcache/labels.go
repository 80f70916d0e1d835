package objectcache

import (
	"encoding/binary"
	"maps"
	"slices"
	"unique"

	"k8s.io/apimachinery/pkg/labels"
)

// compactLabels are the labels of an object. Equal labels share their memory. Labels implement
// labels.Labels without an allocation. The zero value is invalid: use newLabels.
type compactLabels struct {
	// text holds the keys and values in the order of the keys. Each key and each value follows
	// its length.
	text unique.Handle[string]
}

var _ labels.Labels = compactLabels{}

// newLabels returns the labels of a map.
func newLabels(set map[string]string) compactLabels {
	if len(set) == 0 {
		return compactLabels{text: unique.Make("")}
	}
	var text []byte
	for _, key := range slices.Sorted(maps.Keys(set)) {
		text = appendText(appendText(text, key), set[key])
	}
	return compactLabels{text: unique.Make(string(text))}
}

func appendText(dst []byte, text string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

// cutText returns the first text and the rest.
func cutText(text string) (first, rest string) {
	length, shift := uint64(0), 0
	for i := range len(text) {
		length |= uint64(text[i]&0x7f) << shift
		if text[i] < 0x80 {
			end := i + 1 + int(length)
			return text[i+1 : end], text[end:]
		}
		shift += 7
	}
	return "", ""
}

// Lookup implements labels.Labels.
func (l compactLabels) Lookup(label string) (value string, exists bool) {
	for rest := l.text.Value(); rest != ""; {
		var key string
		key, rest = cutText(rest)
		value, rest = cutText(rest)
		if key == label {
			return value, true
		}
	}
	return "", false
}

// Has implements labels.Labels.
func (l compactLabels) Has(label string) bool {
	_, exists := l.Lookup(label)
	return exists
}

// Get implements labels.Labels. It returns "" for a label that does not exist.
func (l compactLabels) Get(label string) string {
	value, _ := l.Lookup(label)
	return value
}

// Len returns the memory of the labels in bytes, if no other object shares them.
func (l compactLabels) Len() int { return len(l.text.Value()) }

// All calls yield for each key and value, in the order of the keys, until yield returns false.
func (l compactLabels) All(yield func(key, value string) bool) {
	for rest := l.text.Value(); rest != ""; {
		var key, value string
		key, rest = cutText(rest)
		value, rest = cutText(rest)
		if !yield(key, value) {
			return
		}
	}
}
