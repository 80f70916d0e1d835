package detector

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestStaleErrors(t *testing.T) {
	resource := schema.GroupResource{Resource: "things"}
	conflict := apierrors.NewConflict(resource, "a", errors.New("changed"))
	tests := map[string]struct {
		err  error
		want bool
	}{
		"nothing":                            {nil, false},
		"a conflict":                         {fmt.Errorf("patching: %w", conflict), true},
		"a create of an existing object":     {apierrors.NewAlreadyExists(resource, "a"), true},
		"a patch of a deleted object":        {notFoundAsStale(apierrors.NewNotFound(resource, "a")), true},
		"NotFound of another object":         {apierrors.NewNotFound(resource, "a"), false},
		"another failure":                    {errors.New("forbidden"), false},
		"several conflicts":                  {errors.Join(conflict, nil, conflict), true},
		"a conflict beside another failure":  {errors.Join(conflict, errors.New("forbidden")), false},
		"joined conflicts in a joined error": {errors.Join(errors.Join(conflict), conflict), true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := isCacheStale(tc.err); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
