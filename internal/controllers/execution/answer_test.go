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
)

var (
	deploymentKind = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	namespaces     = schema.GroupResource{Resource: "namespaces"}
	deployments    = schema.GroupResource{Group: "apps", Resource: "deployments"}
	errImmutable   = apierrors.NewInvalid(deploymentKind, "web", field.ErrorList{field.Invalid(field.NewPath("spec", "selector"), "x", "field is immutable")})
	errTooFew      = apierrors.NewInvalid(deploymentKind, "web", field.ErrorList{field.Invalid(field.NewPath("spec", "replicas"), -1, "must be positive")})
	errLost        = &url.Error{Op: "Put", URL: "https://member", Err: errors.New("http2: client connection lost")}
)

func TestUnanswered(t *testing.T) {
	tests := map[string]struct {
		failures []error
		want     bool
	}{
		"no failure is an answer":                         {nil, false},
		"a lost connection is none":                       {[]error{fmt.Errorf("updating: %w", errLost)}, true},
		"a request that took too long has none":           {[]error{fmt.Errorf("updating: %w", context.DeadlineExceeded)}, true},
		"a server that waits for its storage gives none":  {[]error{apierrors.NewTimeoutError("request timed out", 0)}, true},
		"a server that is overloaded gives none":          {[]error{apierrors.NewTooManyRequestsError("later")}, true},
		"a refusal is an answer":                          {[]error{fmt.Errorf("updating: %w", errImmutable)}, false},
		"one refusal among lost connections is an answer": {[]error{errLost, errImmutable}, false},
		"an object of somebody else is an answer":         {[]error{errors.New("already exists in the cluster")}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := unanswered(test.failures); got != test.want {
				t.Errorf("unanswered is %t", got)
			}
		})
	}
}

func TestARefusedCreateLeavesOpenThatTheObjectExists(t *testing.T) {
	nodePort := apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "web", field.ErrorList{
		field.Invalid(field.NewPath("spec", "ports").Index(0).Child("nodePort"), 30080, "provided port is already allocated"),
	})
	tests := map[string]struct {
		err  error
		want bool
	}{
		"no refusal":                        {nil, false},
		"its name is taken":                 {apierrors.NewAlreadyExists(deployments, "web"), true},
		"its port is taken":                 {nodePort, true},
		"a value is not valid":              {errTooFew, true},
		"a quota is used up":                {apierrors.NewForbidden(deployments, "web", errors.New("exceeded quota")), true},
		"its namespace is absent":           {apierrors.NewNotFound(namespaces, "shop"), false},
		"the member did not answer":         {errLost, false},
		"the member has too much to do":     {apierrors.NewTooManyRequestsError("later"), false},
		"the credentials were not accepted": {apierrors.NewUnauthorized("no"), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := mayExist(test.err); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}

func TestASilentClusterIsToldInTheSameWordsEachTime(t *testing.T) {
	reset := &url.Error{Op: "Delete", URL: "https://member", Err: errors.New("use of closed network connection")}
	tests := map[string]struct {
		failures []error
		want     string
	}{
		"a lost connection":                  {[]error{fmt.Errorf("deleting: %w", errLost)}, "cluster east does not answer, changes wait for it"},
		"one that ended in another way":      {[]error{fmt.Errorf("deleting: %w", reset)}, "cluster east does not answer, changes wait for it"},
		"a refusal speaks for itself":        {[]error{errTooFew}, errTooFew.Error()},
		"a refusal is told beside the other": {[]error{errTooFew, errLost}, errTooFew.Error() + "\n" + errLost.Error()},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := told("east", test.failures).Error(); got != test.want {
				t.Errorf("it says %q, want %q", got, test.want)
			}
		})
	}
}

func TestRemedy(t *testing.T) {
	tests := map[string]struct {
		err      error
		creating bool
		says     string
	}{
		"a namespace that is kept back":                             {apierrors.NewNotFound(namespaces, "shop"), true, "skip-auto-propagation"},
		"a field that cannot be changed":                            {errImmutable, false, "delete the object in the cluster"},
		"a value that is wrong speaks for itself":                   {errTooFew, false, ""},
		"what is refused from the start is not there to be deleted": {errImmutable, true, ""},
		"an object that went meanwhile":                             {apierrors.NewNotFound(deployments, "web"), true, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := remedy(fmt.Errorf("asking: %w", test.err), test.creating)
			if (got == "") != (test.says == "") || !strings.Contains(got, test.says) {
				t.Errorf("it says %q, want something with %q", got, test.says)
			}
		})
	}
}

func TestARefusalIsToldFromBothEnds(t *testing.T) {
	value := strings.Repeat("ü", 4000)
	err := apierrors.NewInvalid(deploymentKind, "web", field.ErrorList{field.Invalid(field.NewPath("spec", "template"), value, "field is immutable")})
	told := fmt.Errorf("updating: %w", refused(err, false))
	for _, part := range []string{`Deployment.apps "web" is invalid: spec.template: Invalid value`, " ... ", "field is immutable; ", "delete the object in the cluster"} {
		if !strings.Contains(told.Error(), part) {
			t.Errorf("%q is missing in %s", part, told)
		}
	}
	if got := len(told.Error()); got > 800 || !utf8.ValidString(told.Error()) {
		t.Errorf("it has %d bytes, valid text: %t", got, utf8.ValidString(told.Error()))
	}
	if !apierrors.IsInvalid(told) || unanswered([]error{told}) {
		t.Error("what was shortened is no refusal any more")
	}
	if short := refused(errTooFew, false); short.Error() != errTooFew.Error() {
		t.Errorf("a short answer was changed: %v", short)
	}
}
