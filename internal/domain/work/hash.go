package work

import (
	"maps"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// prunedDepth is how deep Prune changes maps: spec.template.metadata.labels is the
// deepest that it takes keys out of.
const prunedDepth = 5

// PrunedHash stands for everything of an object that counts as drift when it
// changes in the member. Objects that differ in status and bookkeeping only have
// the same hash. It depends on nothing but the content, and so holds across
// processes, as long as what Prune removes stays the same.
//
// It runs for every object in every pass, so it neither copies what it only reads
// nor encodes it as text.
func PrunedHash(object *unstructured.Unstructured) uint64 {
	sum := digest(fnvOffset)
	sum.value(pruned(object).Object)
	return uint64(sum)
}

// pruned is the object without what Prune removes. It shares with the object what
// Prune leaves alone, and must not be changed.
func pruned(object *unstructured.Unstructured) *unstructured.Unstructured {
	bare := &unstructured.Unstructured{Object: copyMaps(object.Object, prunedDepth)}
	Prune(bare)
	return bare
}

// copyMaps copies nested maps down to a depth and shares everything else.
func copyMaps(from map[string]any, depth int) map[string]any {
	copied := maps.Clone(from)
	if depth == 1 {
		return copied
	}
	for key, value := range copied {
		if nested, ok := value.(map[string]any); ok {
			copied[key] = copyMaps(nested, depth-1)
		}
	}
	return copied
}

// The FNV-1a hash of 64 bits.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// digest hashes what can be decoded from JSON. What comes first tells the kind and
// the length of what follows, so that no two values look the same.
type digest uint64

func (d *digest) value(value any) {
	switch typed := value.(type) {
	case nil:
		d.head('n', 0)
	case bool:
		d.head('b', flag(typed))
	case string:
		d.text('s', typed)
	case int64:
		d.head('i', uint64(typed)) //nolint:gosec // the bits count, not the number
	case float64:
		d.number(typed)
	case []any:
		d.head('l', uint64(len(typed)))
		for _, element := range typed {
			d.value(element)
		}
	case map[string]any:
		d.head('m', uint64(len(typed)))
		keys := make([]string, 0, len(typed))
		for key := range typed {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for _, key := range keys {
			d.text('k', key)
			d.value(typed[key])
		}
	}
}

// number makes 1.0 and 1 the same: which of the two a decoder gives depends on how
// the number was written.
func (d *digest) number(value float64) {
	if whole := int64(value); float64(whole) == value {
		d.value(whole)
		return
	}
	d.head('f', math.Float64bits(value))
}

func (d *digest) text(kind byte, text string) {
	d.head(kind, uint64(len(text)))
	for i := range len(text) {
		d.add(text[i])
	}
}

func (d *digest) head(kind byte, value uint64) {
	d.add(kind)
	for shift := 0; shift < 64; shift += 8 {
		d.add(byte(value >> shift)) //nolint:gosec // one byte after the other
	}
}

func (d *digest) add(b byte) { *d = (*d ^ digest(b)) * fnvPrime }

func flag(value bool) uint64 {
	if value {
		return 1
	}
	return 0
}
