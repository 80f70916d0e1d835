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
		"a create of what exists":            {apierrors.NewAlreadyExists(resource, "a"), true},
		"a patch of what is gone":            {gone(apierrors.NewNotFound(resource, "a")), true},
		"something that is not found":        {apierrors.NewNotFound(resource, "a"), false},
		"another failure":                    {errors.New("refused"), false},
		"several conflicts":                  {errors.Join(conflict, nil, conflict), true},
		"a conflict beside another failure":  {errors.Join(conflict, errors.New("refused")), false},
		"joined conflicts in a joined error": {errors.Join(errors.Join(conflict), conflict), true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := stale(tc.err); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
