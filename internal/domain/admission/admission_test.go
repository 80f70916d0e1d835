package admission

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	appsv1alpha1 "karmada.io/karmada/api/apps/v1alpha1"
	autoscalingv1alpha1 "karmada.io/karmada/api/autoscaling/v1alpha1"
	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	networkingv1alpha1 "karmada.io/karmada/api/networking/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

func newTestID() string { return "new-id" }

// newObjectByKind returns each validated type's constructor, by kind.
func newObjectByKind() map[string]func() runtime.Object {
	return map[string]func() runtime.Object{
		"PropagationPolicy":                       func() runtime.Object { return &policyv1alpha1.PropagationPolicy{} },
		"ClusterPropagationPolicy":                func() runtime.Object { return &policyv1alpha1.ClusterPropagationPolicy{} },
		"OverridePolicy":                          func() runtime.Object { return &policyv1alpha1.OverridePolicy{} },
		"ClusterOverridePolicy":                   func() runtime.Object { return &policyv1alpha1.ClusterOverridePolicy{} },
		"ClusterTaintPolicy":                      func() runtime.Object { return &policyv1alpha1.ClusterTaintPolicy{} },
		"FederatedResourceQuota":                  func() runtime.Object { return &policyv1alpha1.FederatedResourceQuota{} },
		"ResourceBinding":                         func() runtime.Object { return &workv1alpha2.ResourceBinding{} },
		"ClusterResourceBinding":                  func() runtime.Object { return &workv1alpha2.ClusterResourceBinding{} },
		"Work":                                    func() runtime.Object { return &workv1alpha1.Work{} },
		"ResourceInterpreterWebhookConfiguration": func() runtime.Object { return &configv1alpha1.ResourceInterpreterWebhookConfiguration{} },
		"ResourceInterpreterCustomization":        func() runtime.Object { return &configv1alpha1.ResourceInterpreterCustomization{} },
		"FederatedHPA":                            func() runtime.Object { return &autoscalingv1alpha1.FederatedHPA{} },
		"CronFederatedHPA":                        func() runtime.Object { return &autoscalingv1alpha1.CronFederatedHPA{} },
		"MultiClusterIngress":                     func() runtime.Object { return &networkingv1alpha1.MultiClusterIngress{} },
		"MultiClusterService":                     func() runtime.Object { return &networkingv1alpha1.MultiClusterService{} },
		"WorkloadRebalancer":                      func() runtime.Object { return &appsv1alpha1.WorkloadRebalancer{} },
	}
}

// decode decodes one object of a validated kind.
func decode(t testing.TB, text string) runtime.Object {
	t.Helper()
	var meta metav1.TypeMeta
	if err := yaml.Unmarshal([]byte(text), &meta); err != nil {
		t.Fatalf("reading the kind of\n%s: %v", text, err)
	}
	object := newObjectByKind()[meta.Kind]()
	if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
		t.Fatalf("reading\n%s: %v", text, err)
	}
	return object
}

// validationCase is an object with the errors and warnings that validation must return.
type validationCase struct {
	rules    Options
	old, new string
	// errors are the expected errors in order, each in the form "<type> <path>". warnings are the
	// expected paths.
	errors, warnings []string
}

func runValidationCases(t *testing.T, tests map[string]validationCase) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var old runtime.Object
			if test.old != "" {
				old = decode(t, test.old)
			}
			object := decode(t, test.new)
			pristine := object.DeepCopyObject()
			errs, warnings := test.rules.Validate(object, old)
			var got, gotWarnings []string
			for _, err := range errs {
				got = append(got, string(err.Type)+" "+err.Field)
			}
			for _, warning := range warnings {
				path, _, _ := strings.Cut(warning, ": ")
				gotWarnings = append(gotWarnings, path)
			}
			if diff := cmp.Diff(test.errors, got); diff != "" {
				t.Errorf("errors differ (-want +got):\n%s\n%v", diff, errs.ToAggregate())
			}
			if diff := cmp.Diff(test.warnings, gotWarnings); diff != "" {
				t.Errorf("warnings differ (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(pristine, object); diff != "" {
				t.Errorf("validation has changed the object:\n%s", diff)
			}
		})
	}
}

type defaultingCase struct{ old, new, want string }

func runDefaultingCases(t *testing.T, tests map[string]defaultingCase) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var old runtime.Object
			if test.old != "" {
				old = decode(t, test.old)
			}
			object := decode(t, test.new)
			for range 2 { // Default is idempotent
				if err := Default(object, old, newTestID); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(decode(t, test.want), object); diff != "" {
					t.Errorf("object differs (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestDeletionProtection(t *testing.T) {
	for value, protected := range map[string]bool{"Always": true, "always": false, "": false, "Never": false} {
		object := &metav1.ObjectMeta{Labels: map[string]string{"resourcetemplate.karmada.io/deletion-protected": value}}
		if err := CheckDeletionProtection(object); (err != nil) != protected {
			t.Errorf("with value %q: %v, want protected %v", value, err, protected)
		} else if err != nil && !strings.Contains(err.Error(), "This resource is protected") {
			t.Errorf("clients do not recognize the error %q", err)
		}
	}
	if err := CheckDeletionProtection(&metav1.ObjectMeta{}); err != nil {
		t.Errorf("an object without the label is protected: %v", err)
	}
}

func TestOtherTypesAreAccepted(t *testing.T) {
	pod := &corev1.Pod{}
	if err := Default(pod, nil, newTestID); err != nil {
		t.Error(err)
	}
	if errs, warnings := (Options{}).Validate(pod, nil); len(errs)+len(warnings) != 0 || cmp.Diff(&corev1.Pod{}, pod) != "" {
		t.Errorf("errors %v, warnings %v, object %v", errs, warnings, pod)
	}
}

func TestDeletedObjectsAreNotValidated(t *testing.T) {
	for kind, empty := range newObjectByKind() {
		t.Run(kind, func(t *testing.T) {
			object := empty()
			metadata := object.(metav1.Object)
			metadata.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
			metadata.SetName("Not A Name")
			metadata.SetLabels(map[string]string{
				policyv1alpha1.PropagationPolicyPermanentIDLabel:        "id",
				policyv1alpha1.ClusterPropagationPolicyPermanentIDLabel: "id",
			})
			if errs, warnings := (Options{}).Validate(object, object.DeepCopyObject()); len(errs)+len(warnings) != 0 {
				t.Errorf("errors %v, warnings %v", errs, warnings)
			}
		})
	}
}

// FuzzAdmission sets the defaults of, and validates, any JSON that can be decoded into a validated
// type.
func FuzzAdmission(f *testing.F) {
	names := make([]string, 0)
	for kind := range newObjectByKind() {
		names = append(names, kind)
	}
	slices.Sort(names)
	for i := range names {
		for _, seed := range fuzzSeeds() {
			data, err := yaml.YAMLToJSON([]byte(seed))
			if err != nil {
				f.Fatal(err)
			}
			f.Add(i, data)
		}
	}
	rules := Options{
		MultiplePodTemplates: true,
		ParseSchedule:        func(string) error { return errors.New("never due") },
		LoadTimeZone:         func(string) error { return errors.New("nowhere") },
	}
	f.Fuzz(func(t *testing.T, i int, data []byte) {
		kind := names[uint(i)%uint(len(names))]
		object, old := newObjectByKind()[kind](), newObjectByKind()[kind]()
		if json.Unmarshal(data, object) != nil || json.Unmarshal(data, old) != nil {
			return
		}
		rules.Validate(object, nil)
		rules.Validate(object, old)
		if Default(object, nil, newTestID) != nil {
			return
		}
		again := object.DeepCopyObject()
		if err := Default(again, nil, newTestID); err != nil {
			t.Fatalf("setting defaults a second time: %v", err)
		}
		if diff := cmp.Diff(object, again); diff != "" {
			t.Errorf("setting defaults a second time changes the %s:\n%s", kind, diff)
		}
	})
}

func fuzzSeeds() []string {
	return []string{validPropagationPolicy, validOverridePolicy, validQuota, validFederatedHPA, validCron, validIngress, validMultiClusterService, validWebhooks, validCustomization, validWork, validTaints, validBinding}
}

func TestPolicyDefaultsAreIdempotentAndValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := &policyv1alpha1.PropagationPolicy{}
		policy.Namespace = "shop"
		policy.Spec.ResourceSelectors = make([]policyv1alpha1.ResourceSelector, rapid.IntRange(1, 3).Draw(t, "selectors"))
		for i := range policy.Spec.ResourceSelectors {
			policy.Spec.ResourceSelectors[i].APIVersion = rapid.SampledFrom([]string{"v1", serviceImportAPIVersion}).Draw(t, "apiVersion")
			policy.Spec.ResourceSelectors[i].Kind = rapid.SampledFrom([]string{"Pod", serviceImportKind}).Draw(t, "kind")
		}
		if rapid.Bool().Draw(t, "spread") {
			policy.Spec.Placement.SpreadConstraints = make([]policyv1alpha1.SpreadConstraint, 1)
		}
		if rapid.Bool().Draw(t, "divided") {
			policy.Spec.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided}
		}
		if rapid.Bool().Draw(t, "failover") {
			policy.Spec.PropagateDeps = true
			policy.Spec.Failover = &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{PurgeMode: policyv1alpha1.PurgeModeGracefully}}
		}
		if err := Default(policy, nil, newTestID); err != nil {
			t.Fatal(err)
		}
		once := policy.DeepCopy()
		if err := Default(policy, once, newTestID); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(once, policy); diff != "" {
			t.Fatalf("setting defaults a second time changes the policy:\n%s", diff)
		}
		if errs, _ := (Options{}).Validate(policy, nil); len(errs) > 0 {
			t.Fatalf("the policy with defaults is not valid: %v", errs.ToAggregate())
		}
	})
}
