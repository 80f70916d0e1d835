package failover

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// remembering is a binding of the template 7 that says where it failed.
func remembering(text string) *workv1alpha2.ResourceBinding {
	bound := &workv1alpha2.ResourceBinding{}
	bound.Spec.Resource.ResourceVersion = "7"
	bound.Spec.Failover = &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{}}
	bound.Annotations = map[string]string{workv1alpha2.FailedInAnnotation: text}
	return bound
}

func TestFailuresOf(t *testing.T) {
	without := remembering(`{"template":"7","clusters":{"m1":"2026-05-01T11:59:00Z"}}`)
	without.Spec.Failover = nil
	tests := map[string]struct {
		bound *workv1alpha2.ResourceBinding
		want  []string
		next  time.Time
	}{
		"one of a minute ago counts": {
			remembering(`{"template":"7","clusters":{"m1":"2026-05-01T11:59:00Z"}}`), []string{"m1"}, noon.Add(29 * time.Minute),
		},
		"the older of two ends first": {
			remembering(`{"template":"7","clusters":{"m1":"2026-05-01T11:59:00Z","m2":"2026-05-01T11:31:00Z"}}`), []string{"m1", "m2"}, noon.Add(time.Minute),
		},
		"one of half an hour ago does not":      {remembering(`{"template":"7","clusters":{"m1":"2026-05-01T11:30:00Z"}}`), nil, time.Time{}},
		"nor one that is to come":               {remembering(`{"template":"7","clusters":{"m1":"2026-05-01T12:00:01Z"}}`), nil, time.Time{}},
		"nor one of another template":           {remembering(`{"template":"6","clusters":{"m1":"2026-05-01T11:59:00Z"}}`), nil, time.Time{}},
		"nor one of a policy without failover":  {without, nil, time.Time{}},
		"nor what cannot be read":               {remembering(`{`), nil, time.Time{}},
		"nor what is none":                      {remembering(`null`), nil, time.Time{}},
		"without any there is nothing to avoid": {remembering(""), nil, time.Time{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := FailuresOf(test.bound, noon)
			if diff := cmp.Diff(sets.New(test.want...), got.Avoided()); diff != "" || !got.Next().Equal(test.next) {
				t.Errorf("until %s (-want +got):\n%s", got.Next(), diff)
			}
		})
	}
}

func TestFailuresAreReadAsTheyWereWritten(t *testing.T) {
	first := FailuresOf(remembering(""), noon)
	if text, err := first.Text(); text != "" || err != nil {
		t.Errorf("without any %q and error %v", text, err)
	}
	text, err := first.With([]string{"m1"}, noon.Add(300*time.Millisecond)).With([]string{"m2"}, noon).Text()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`{"template":"7","clusters":{"m1":"2026-05-01T12:00:00Z","m2":"2026-05-01T12:00:00Z"}}`, text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(sets.New("m1", "m2"), FailuresOf(remembering(text), noon.Add(time.Minute)).Avoided()); diff != "" {
		t.Errorf("a minute later (-want +got):\n%s", diff)
	}
}
