package failover

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// bindingWithFailures returns the binding of a template at version 7. text contains the recorded
// failures.
func bindingWithFailures(text string) *workv1alpha2.ResourceBinding {
	bound := &workv1alpha2.ResourceBinding{}
	bound.Spec.Resource.ResourceVersion = "7"
	bound.Spec.Failover = &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{}}
	bound.Annotations = map[string]string{workv1alpha2.FailedInAnnotation: text}
	return bound
}

func TestReadFailures(t *testing.T) {
	without := bindingWithFailures(`{"template":"7","clusters":{"m1":"2026-05-01T11:59:00Z"}}`)
	without.Spec.Failover = nil
	tests := map[string]struct {
		bound *workv1alpha2.ResourceBinding
		want  []string
		next  time.Time
	}{
		"a failure one minute ago counts": {
			bindingWithFailures(`{"template":"7","clusters":{"m1":"2026-05-01T11:59:00Z"}}`), []string{"m1"}, noon.Add(29 * time.Minute),
		},
		"the older of two expires first": {
			bindingWithFailures(`{"template":"7","clusters":{"m1":"2026-05-01T11:59:00Z","m2":"2026-05-01T11:31:00Z"}}`), []string{"m1", "m2"}, noon.Add(time.Minute),
		},
		"a failure 30 minutes ago is expired":           {bindingWithFailures(`{"template":"7","clusters":{"m1":"2026-05-01T11:30:00Z"}}`), nil, time.Time{}},
		"a time in the future is ignored":               {bindingWithFailures(`{"template":"7","clusters":{"m1":"2026-05-01T12:00:01Z"}}`), nil, time.Time{}},
		"another template version is ignored":           {bindingWithFailures(`{"template":"6","clusters":{"m1":"2026-05-01T11:59:00Z"}}`), nil, time.Time{}},
		"without application failover they are ignored": {without, nil, time.Time{}},
		"invalid text is ignored":                       {bindingWithFailures(`{`), nil, time.Time{}},
		"null is ignored":                               {bindingWithFailures(`null`), nil, time.Time{}},
		"no annotation":                                 {bindingWithFailures(""), nil, time.Time{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := ReadFailures(test.bound, noon)
			if diff := cmp.Diff(sets.New(test.want...), got.AvoidedClusters()); diff != "" || !got.NextExpiry().Equal(test.next) {
				t.Errorf("until %s (-want +got):\n%s", got.NextExpiry(), diff)
			}
		})
	}
}

func TestFailuresRoundTrip(t *testing.T) {
	first := ReadFailures(bindingWithFailures(""), noon)
	if text, err := first.Encode(); text != "" || err != nil {
		t.Errorf("without any %q and error %v", text, err)
	}
	text, err := first.Add([]string{"m1"}, noon.Add(300*time.Millisecond)).Add([]string{"m2"}, noon).Encode()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`{"template":"7","clusters":{"m1":"2026-05-01T12:00:00Z","m2":"2026-05-01T12:00:00Z"}}`, text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(sets.New("m1", "m2"), ReadFailures(bindingWithFailures(text), noon.Add(time.Minute)).AvoidedClusters()); diff != "" {
		t.Errorf("a minute later (-want +got):\n%s", diff)
	}
}
