package execution

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"karmada.io/karmada/internal/domain/interpreter"
)

var (
	deploymentKind = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	namespaces     = schema.GroupResource{Resource: "namespaces"}
	deployments    = schema.GroupResource{Group: "apps", Resource: "deployments"}
	errImmutable   = apierrors.NewInvalid(deploymentKind, "web", field.ErrorList{field.Invalid(field.NewPath("spec", "selector"), "x", "field is immutable")})
	errTooFew      = apierrors.NewInvalid(deploymentKind, "web", field.ErrorList{field.Invalid(field.NewPath("spec", "replicas"), -1, "must be positive")})
	errLost        = &url.Error{Op: "Put", URL: "https://member", Err: errors.New("http2: client connection lost")}
)

func TestHasNoResponse(t *testing.T) {
	tests := map[string]struct {
		failures []error
		want     bool
	}{
		"no failure":                           {nil, false},
		"a lost connection":                    {[]error{fmt.Errorf("updating: %w", errLost)}, true},
		"a request timeout":                    {[]error{fmt.Errorf("updating: %w", context.DeadlineExceeded)}, true},
		"a storage timeout of the server":      {[]error{apierrors.NewTimeoutError("request timed out", 0)}, true},
		"an overloaded server":                 {[]error{apierrors.NewTooManyRequestsError("later")}, true},
		"rejected credentials":                 {[]error{fmt.Errorf("updating: %w", apierrors.NewUnauthorized("no"))}, true},
		"a rule at the end of the process":     {[]error{&retainError{context.Canceled}}, true},
		"a webhook that does not answer":       {[]error{fmt.Errorf("retaining: %w", &retainError{context.DeadlineExceeded})}, false},
		"a rejection":                          {[]error{fmt.Errorf("updating: %w", errImmutable)}, false},
		"one rejection among lost connections": {[]error{errLost, errImmutable}, false},
		"an object of another owner":           {[]error{errors.New("already exists in the cluster")}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := hasNoResponse(test.failures); got != test.want {
				t.Errorf("hasNoResponse = %t", got)
			}
		})
	}
}

func TestIsUndecided(t *testing.T) {
	busy := fmt.Errorf("retaining: %w", &retainError{&interpreter.BusyError{Text: "8 calls run"}})
	tests := map[string]struct {
		failures []error
		want     bool
	}{
		"no failure":           {nil, false},
		"a lost connection":    {[]error{errLost}, true},
		"a rule that failed":   {[]error{&retainError{errors.New("line 3")}}, false},
		"a rule that must run": {[]error{errImmutable, busy}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := isUndecided(test.failures); got != test.want {
				t.Errorf("isUndecided = %t", got)
			}
		})
	}
}

func TestMayObjectExistAfterARejectedCreate(t *testing.T) {
	nodePort := apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "web", field.ErrorList{
		field.Invalid(field.NewPath("spec", "ports").Index(0).Child("nodePort"), 30080, "provided port is already allocated"),
	})
	tests := map[string]struct {
		err  error
		want bool
	}{
		"no error":                  {nil, false},
		"the name is taken":         {apierrors.NewAlreadyExists(deployments, "web"), true},
		"the port is taken":         {nodePort, true},
		"an invalid value":          {errTooFew, true},
		"an exceeded quota":         {apierrors.NewForbidden(deployments, "web", errors.New("exceeded quota")), true},
		"a missing namespace":       {apierrors.NewNotFound(namespaces, "shop"), false},
		"no response of the member": {errLost, false},
		"an overloaded member":      {apierrors.NewTooManyRequestsError("later"), false},
		"rejected credentials":      {apierrors.NewUnauthorized("no"), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := mayObjectExist(test.err); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestEventErrorIsConstantForClustersThatDoNotRespond(t *testing.T) {
	reset := &url.Error{Op: "Delete", URL: "https://member", Err: errors.New("use of closed network connection")}
	tests := map[string]struct {
		failures []error
		want     string
	}{
		"a lost connection":                 {[]error{fmt.Errorf("deleting: %w", errLost)}, "cluster east does not respond; changes are applied when it responds again"},
		"a connection closed by the client": {[]error{fmt.Errorf("deleting: %w", reset)}, "cluster east does not respond; changes are applied when it responds again"},
		"rejected credentials":              {[]error{fmt.Errorf("updating: %w", apierrors.NewUnauthorized("no"))}, "cluster east rejects Karmada's credentials; changes are applied when it accepts them again"},
		"a rejection":                       {[]error{errTooFew}, errTooFew.Error()},
		"a rejection and a lost connection": {[]error{errTooFew, errLost}, errTooFew.Error() + "\n" + errLost.Error()},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := eventError("east", test.failures).Error(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestRejectionHint(t *testing.T) {
	tests := map[string]struct {
		err      error
		creating bool
		want     string
	}{
		"a namespace that is not propagated":                  {apierrors.NewNotFound(namespaces, "shop"), true, "skip-auto-propagation"},
		"a field that cannot be changed":                      {errImmutable, false, "delete the object in the cluster"},
		"an invalid value gets no hint":                       {errTooFew, false, ""},
		"a rejected create gets no hint to delete the object": {errImmutable, true, ""},
		"an object deleted in the meantime":                   {apierrors.NewNotFound(deployments, "web"), true, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := rejectionHint(fmt.Errorf("creating: %w", test.err), test.creating)
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("got %q, want a text with %q", got, test.want)
			}
		})
	}
}

func TestRejectionErrorKeepsBothEndsOfTheMessage(t *testing.T) {
	value := strings.Repeat("ü", 4000)
	err := apierrors.NewInvalid(deploymentKind, "web", field.ErrorList{field.Invalid(field.NewPath("spec", "template"), value, "field is immutable")})
	shortened := fmt.Errorf("updating: %w", newRejectionError(err, false))
	for _, part := range []string{`Deployment.apps "web" is invalid: spec.template: Invalid value`, " ... ", "field is immutable; ", "delete the object in the cluster"} {
		if !strings.Contains(shortened.Error(), part) {
			t.Errorf("%q is missing in %s", part, shortened)
		}
	}
	if got := len(shortened.Error()); got > 800 || !utf8.ValidString(shortened.Error()) {
		t.Errorf("the message has %d bytes, valid UTF-8: %t", got, utf8.ValidString(shortened.Error()))
	}
	if !apierrors.IsInvalid(shortened) || hasNoResponse([]error{shortened}) {
		t.Error("the shortened error is not recognized as a rejection")
	}
	if short := newRejectionError(errTooFew, false); short.Error() != errTooFew.Error() {
		t.Errorf("a short message was changed: %v", short)
	}
}
