package patch

import (
	"bytes"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
)

var semanticEqualities = withRawComparison(equality.Semantic.Copy())

// Equal reports whether two objects of one type, or two parts of them, are equal. It treats nil and
// empty values as equal, and equal quantities in different notations. It compares raw content as
// text, because a comparison byte by byte through reflection would be most of the cost for two
// Works.
func Equal(a, b any) bool { return semanticEqualities.DeepEqual(a, b) }

func withRawComparison(e conversion.Equalities) conversion.Equalities {
	err := e.AddFunc(func(a, b runtime.RawExtension) bool {
		return bytes.Equal(a.Raw, b.Raw) && reflect.DeepEqual(a.Object, b.Object)
	})
	if err != nil {
		// AddFunc returns an error only if the function has a wrong signature. equality.Semantic
		// gives the same results, but is slower.
		return equality.Semantic
	}
	return e
}
