package programs

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// failingMapper returns an error for each lookup, in order, and then a mapping.
type failingMapper struct {
	meta.RESTMapper
	failures []error
	lookups  int
}

func (f *failingMapper) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	f.lookups++
	if f.lookups <= len(f.failures) {
		return nil, f.failures[f.lookups-1]
	}
	return &meta.RESTMapping{}, nil
}

func TestIncompleteDiscoveryIsReadAgain(t *testing.T) {
	incomplete := &apiutil.ErrResourceDiscoveryFailed{{Group: "work.karmada.io", Version: "v1alpha2"}: errors.New("no matches")}
	tests := map[string]struct {
		failures []error
		fails    bool
		lookups  int
	}{
		"complete":              {nil, false, 1},
		"incomplete once":       {[]error{incomplete}, false, 2},
		"incomplete twice":      {[]error{incomplete, incomplete}, true, 2},
		"the kind is not known": {[]error{&meta.NoKindMatchError{}}, true, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			mapper := &failingMapper{failures: test.failures}
			if _, err := (retryingMapper{mapper}).RESTMapping(schema.GroupKind{Group: "work.karmada.io", Kind: "ResourceBinding"}, "v1alpha2"); (err != nil) != test.fails || mapper.lookups != test.lookups {
				t.Errorf("%d lookups, %v", mapper.lookups, err)
			}
		})
	}
}
