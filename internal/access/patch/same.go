package patch

import (
	"bytes"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
)

var equalities = withRawTexts(equality.Semantic.Copy())

// Same tells that two objects of one type, or two parts of such, say the same.
// Nothing and empty are the same, and so are quantities written differently. Raw
// content is compared as text: byte by byte through reflection it would be most of
// what a comparison of two Works costs.
func Same(a, b any) bool { return equalities.DeepEqual(a, b) }

func withRawTexts(e conversion.Equalities) conversion.Equalities {
	err := e.AddFunc(func(a, b runtime.RawExtension) bool {
		return bytes.Equal(a.Raw, b.Raw) && reflect.DeepEqual(a.Object, b.Object)
	})
	if err != nil {
		// The function has the wrong form. Without it the answers are the same, and late.
		return equality.Semantic
	}
	return e
}
