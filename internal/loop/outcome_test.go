package loop

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var (
	pods        = schema.GroupResource{Resource: "pods"}
	errConflict = apierrors.NewConflict(pods, "web", errors.New("another version"))
	errExists   = apierrors.NewAlreadyExists(pods, "web")
	errNotFound = apierrors.NewNotFound(pods, "web")
	errRejected = errors.New("rejected")
)

func TestResult(t *testing.T) {
	soon := StaleResult()
	tests := map[string]struct {
		err     error
		want    reconcile.Result
		isError bool
	}{
		"success":                              {nil, reconcile.Result{}, false},
		"a stale cache":                        {ErrStale, soon, false},
		"a wrapped stale cache":                {fmt.Errorf("reading it: %w", ErrStale), soon, false},
		"a conflict":                           {fmt.Errorf("writing it: %w", errConflict), soon, false},
		"an object that exists already":        {errExists, soon, false},
		"a deleted object that the cache has":  {StaleIfNotFound(errNotFound), soon, false},
		"several stale objects":                {errors.Join(errConflict, ErrStale), soon, false},
		"one stale object and another failure": {errors.Join(errConflict, errRejected), reconcile.Result{}, true},
		"nested failures":                      {errors.Join(errConflict, errors.Join(ErrStale, errRejected)), reconcile.Result{}, true},
		"another failure":                      {errRejected, reconcile.Result{}, true},
		"another failure of an existing one":   {StaleIfNotFound(errRejected), reconcile.Result{}, true},
		"an object that was not found":         {errNotFound, reconcile.Result{}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Result(test.err)
			if got != test.want || (err != nil) != test.isError {
				t.Errorf("result %v, error %v, want %v and an error: %t", got, err, test.want, test.isError)
			}
		})
	}
}

func TestIsNamespaceTerminating(t *testing.T) {
	terminating := apierrors.NewForbidden(pods, "web", errRejected)
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for err, want := range map[error]bool{terminating: true, apierrors.NewForbidden(pods, "web", errRejected): false, errRejected: false} {
		if got := IsNamespaceTerminating(err); got != want {
			t.Errorf("%v: %t", err, got)
		}
	}
	if IsNamespaceTerminating(nil) {
		t.Error("no error counts as a terminating namespace")
	}
}
