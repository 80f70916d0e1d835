package looptest

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

// NewScheme returns a scheme with the given groups. Tests should add only the groups that they use,
// because a fake client reads all kinds of its scheme for each write.
func NewScheme(t testing.TB, add ...func(*runtime.Scheme) error) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, addGroup := range add {
		if err := addGroup(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}
