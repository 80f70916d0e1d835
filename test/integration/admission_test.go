package integration

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "karmada.io/karmada/api/apps/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	remedyv1alpha1 "karmada.io/karmada/api/remedy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/testenv"
)

// policyWithSpec returns a function that makes a valid policy and then applies change to its spec.
func policyWithSpec(change func(*policyv1alpha1.PropagationSpec)) func(namespace string) client.Object {
	return func(namespace string) client.Object {
		policy := &policyv1alpha1.PropagationPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "examined"},
			Spec: policyv1alpha1.PropagationSpec{
				ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "ConfigMap", Name: "none"}},
			},
		}
		change(&policy.Spec)
		return policy
	}
}

// overridePolicyWith returns a function that makes an override policy with the given overriders.
func overridePolicyWith(overriders policyv1alpha1.Overriders) func(namespace string) client.Object {
	return func(namespace string) client.Object {
		return &policyv1alpha1.OverridePolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "examined"},
			Spec:       newOverrideSpec(nil, policyv1alpha1.RuleWithCluster{Overriders: overriders}),
		}
	}
}

func TestInvalidObjectIsRejectedWithPathOfEachError(t *testing.T) {
	env := shared(t)
	namespace := env.Namespace(t)
	value := policyv1alpha1.JSON{Raw: []byte(`"x"`)}
	for name, c := range map[string]struct {
		object    func(namespace string) client.Object
		code      int32
		wantTexts []string
	}{
		"spread constraints without SpreadByField cluster, rejected by the schema": {
			policyWithSpec(func(s *policyv1alpha1.PropagationSpec) {
				s.Placement.SpreadConstraints = []policyv1alpha1.SpreadConstraint{
					{SpreadByField: policyv1alpha1.SpreadByFieldRegion, MinGroups: 3, MaxGroups: 2},
					{SpreadByField: policyv1alpha1.SpreadByFieldZone, SpreadByLabel: "zone"},
				}
			}), 422, []string{
				"spec.placement.spreadConstraints: Invalid value",
				"maxGroups must not be less than minGroups",
				"spreadByField and spreadByLabel exclude each other",
				"spreading by a field needs a constraint with spreadByField cluster as well",
			},
		},
		"clusterAffinity and clusterAffinities together, rejected by the schema": {
			policyWithSpec(func(s *policyv1alpha1.PropagationSpec) {
				s.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{}
				s.Placement.ClusterAffinities = []policyv1alpha1.ClusterAffinityTerm{{AffinityName: "one"}, {AffinityName: "one"}}
			}), 422, []string{
				"spec.placement.clusterAffinities: Invalid value",
				"spec.placement.clusterAffinities: Duplicate value",
			},
		},
		"affinity names that are no valid label values": {
			policyWithSpec(func(s *policyv1alpha1.PropagationSpec) {
				s.Placement.ClusterAffinities = []policyv1alpha1.ClusterAffinityTerm{{AffinityName: "a b"}, {AffinityName: "c d"}}
			}), 403, []string{
				"spec.placement.clusterAffinities[0].affinityName: Invalid value",
				"spec.placement.clusterAffinities[1].affinityName: Invalid value",
			},
		},
		"a selector for another namespace": {
			policyWithSpec(func(s *policyv1alpha1.PropagationSpec) { s.ResourceSelectors[0].Namespace = "elsewhere" }),
			403, []string{"spec.resourceSelectors[0].namespace: Invalid value"},
		},
		"an unknown enumeration value, rejected by the schema": {
			policyWithSpec(func(s *policyv1alpha1.PropagationSpec) { s.ConflictResolution = "Perhaps" }),
			422, []string{"spec.conflictResolution: Unsupported value"},
		},
		"no selector, rejected by the schema": {
			policyWithSpec(func(s *policyv1alpha1.PropagationSpec) { s.ResourceSelectors = []policyv1alpha1.ResourceSelector{} }),
			422, []string{"spec.resourceSelectors"},
		},
		"a field patched as JSON and as YAML": {
			overridePolicyWith(policyv1alpha1.Overriders{FieldOverrider: []policyv1alpha1.FieldOverrider{{
				FieldPath: "/data/config",
				JSON:      []policyv1alpha1.JSONPatchOperation{{SubPath: "/a", Operator: policyv1alpha1.OverriderOpAdd, Value: value}},
				YAML:      []policyv1alpha1.YAMLPatchOperation{{SubPath: "/a", Operator: policyv1alpha1.OverriderOpAdd, Value: value}},
			}}}), 403, []string{"spec.overrideRules[0].overriders.fieldOverrider[0]: Invalid value"},
		},
		"a path that is no JSON pointer, and a remove operation with a value": {
			overridePolicyWith(policyv1alpha1.Overriders{FieldOverrider: []policyv1alpha1.FieldOverrider{{
				FieldPath: "data",
				JSON:      []policyv1alpha1.JSONPatchOperation{{SubPath: "/a", Operator: policyv1alpha1.OverriderOpRemove, Value: value}},
			}}}), 403, []string{
				"spec.overrideRules[0].overriders.fieldOverrider[0].fieldPath: Invalid value",
				"spec.overrideRules[0].overriders.fieldOverrider[0].json[0].value: Forbidden",
			},
		},
		"an invalid label value": {
			overridePolicyWith(policyv1alpha1.Overriders{LabelsOverrider: []policyv1alpha1.LabelAnnotationOverrider{{
				Operator: policyv1alpha1.OverriderOpAdd, Value: map[string]string{"a": "not a label!"},
			}}}), 403, []string{"spec.overrideRules[0].overriders.labelsOverrider[0].value: Invalid value"},
		},
		"dependencies annotation that is no list": {
			func(namespace string) client.Object {
				return &workv1alpha2.ResourceBinding{
					ObjectMeta: metav1.ObjectMeta{
						Namespace: namespace, Name: "examined",
						Annotations: map[string]string{workv1alpha2.DependenciesAnnotation: "{}"},
					},
					Spec: workv1alpha2.ResourceBindingSpec{Resource: workv1alpha2.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: "none"}},
				}
			}, 403, []string{"metadata.annotations[" + workv1alpha2.DependenciesAnnotation + "]: Invalid value"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := env.Karmada.Create(t.Context(), c.object(namespace))
			if err == nil {
				t.Fatal("the API server accepts the object")
			}
			var status apierrors.APIStatus
			if !errors.As(err, &status) || status.Status().Code != c.code {
				t.Errorf("got error %v, want code %d", err, c.code)
			}
			for _, text := range c.wantTexts {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q is missing in error: %v", text, err)
				}
			}
		})
	}
}

func TestNewObjectsAreDefaulted(t *testing.T) {
	env := shared(t)
	namespace := env.Namespace(t)
	policy := policyWithSpec(func(s *policyv1alpha1.PropagationSpec) {
		s.Placement.SpreadConstraints = []policyv1alpha1.SpreadConstraint{{}}
		s.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided,
		}
	})(namespace).(*policyv1alpha1.PropagationPolicy)
	const userChosenID = "11111111-1111-4111-8111-111111111111"
	policy.Labels = map[string]string{policyv1alpha1.PropagationPolicyPermanentIDLabel: userChosenID}
	env.Create(t, policy)

	spec := policy.Spec
	for _, err := range []error{
		checkEqual("selector's namespace", namespace, spec.ResourceSelectors[0].Namespace),
		checkEqual("spreadByField", policyv1alpha1.SpreadByFieldCluster, spec.Placement.SpreadConstraints[0].SpreadByField),
		checkEqual("minGroups", 1, spec.Placement.SpreadConstraints[0].MinGroups),
		checkEqual("replica division preference", policyv1alpha1.ReplicaDivisionPreferenceWeighted, spec.Placement.ReplicaScheduling.ReplicaDivisionPreference),
		checkEqual("priority", int32(0), *spec.Priority),
		checkEqual("preemption", policyv1alpha1.PreemptNever, spec.Preemption),
		checkEqual("scheduler", policyv1alpha1.DefaultSchedulerName, spec.SchedulerName),
		checkEqual("finalizers", []string{policyv1alpha1.PropagationPolicyControllerFinalizer}, policy.Finalizers),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if policy.Labels[policyv1alpha1.PropagationPolicyPermanentIDLabel] == userChosenID {
		t.Error("the permanent ID that the user chose was kept")
	}

	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-" + member3, Name: namespace}}
	suspended := true
	work.Spec.SuspendDispatching = &suspended
	work.Spec.Workload.Manifests = []workv1alpha1.Manifest{{}}
	work.Spec.Workload.Manifests[0].Raw = []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","uid":"1","resourceVersion":"2"}}`)
	cleanUp(t, env, work)
	env.Create(t, work)
	manifest, err := manifestOf(work)
	if err != nil {
		t.Fatal(err)
	}
	id := work.Labels[workv1alpha1.WorkPermanentIDLabel]
	if id == "" || manifest.GetLabels()[workv1alpha1.WorkPermanentIDLabel] != id {
		t.Errorf("the permanent ID of the Work is %q, its manifest has labels %v", id, manifest.GetLabels())
	}
	if manifest.GetUID() != "" || manifest.GetResourceVersion() != "" {
		t.Errorf("uid and resourceVersion were not removed from the manifest: %v", manifest.Object)
	}
}

func TestPolicyPermanentIDAndSchedulerNameAreImmutable(t *testing.T) {
	env := shared(t)
	policy := policyWithSpec(func(*policyv1alpha1.PropagationSpec) {})(env.Namespace(t)).(*policyv1alpha1.PropagationPolicy)
	env.Create(t, policy)
	for name, c := range map[string]struct {
		change   func(*policyv1alpha1.PropagationPolicy)
		code     int32
		wantText string
	}{
		"another permanent ID": {
			func(p *policyv1alpha1.PropagationPolicy) {
				p.Labels[policyv1alpha1.PropagationPolicyPermanentIDLabel] = "other"
			}, 403, "metadata.labels[" + policyv1alpha1.PropagationPolicyPermanentIDLabel + "]: Invalid value",
		},
		"no permanent ID": {
			func(p *policyv1alpha1.PropagationPolicy) { p.Labels = nil },
			403, "metadata.labels[" + policyv1alpha1.PropagationPolicyPermanentIDLabel + "]: Required value",
		},
		"another scheduler, rejected by the schema": {
			func(p *policyv1alpha1.PropagationPolicy) { p.Spec.SchedulerName = "other" },
			422, "spec.schedulerName: Invalid value",
		},
	} {
		t.Run(name, func(t *testing.T) {
			changed := policy.DeepCopy()
			c.change(changed)
			err := env.Karmada.Update(t.Context(), changed)
			var status apierrors.APIStatus
			if !errors.As(err, &status) || status.Status().Code != c.code || !strings.Contains(err.Error(), c.wantText) {
				t.Errorf("got error %v, want code %d with %q", err, c.code, c.wantText)
			}
		})
	}
}

func TestDeletionProtectionLabelBlocksDeletion(t *testing.T) {
	env := shared(t)
	protected := configMap(env.Namespace(t), "protected")
	protected.Labels = map[string]string{workv1alpha2.DeletionProtectionLabel: workv1alpha2.DeletionProtectionAlways}
	env.Create(t, protected)
	if err := env.Karmada.Delete(t.Context(), protected); !apierrors.IsForbidden(err) {
		t.Errorf("got %v, want Forbidden", err)
	}
	testenv.Update(t, env.Karmada, protected, func(c *corev1.ConfigMap) { c.Labels = nil })
	deleteObject(t, env.Karmada, protected)
}

// warningCollector collects the warnings that an API server sends.
type warningCollector struct {
	mu       sync.Mutex
	warnings []string
}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w *warningCollector) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.warnings = append(w.warnings, text)
}

func TestWarningsForFieldsWithoutEffect(t *testing.T) {
	env := shared(t)
	collector, config := &warningCollector{}, rest.CopyConfig(env.Config)
	config.WarningHandlerWithContext = collector
	karmada, err := client.New(config, client.Options{Scheme: env.Karmada.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	policy := policyWithSpec(func(s *policyv1alpha1.PropagationSpec) { s.Association = true })(env.Namespace(t))
	if err := karmada.Create(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	if err := checkEqual("warnings", []string{"spec.association: has no effect; use propagateDeps"}, collector.warnings); err != nil {
		t.Error(err)
	}

	collector.warnings = nil
	misnamed := policyWithSpec(selectUnknownNames)(env.Namespace(t))
	if err := karmada.Create(t.Context(), misnamed); err != nil {
		t.Fatal(err)
	}
	want := append(slices.Clone(unknownKindWarnings), `spec.placement.clusterAffinity.clusterNames[0]: there is no cluster "membr1"; did you mean "member1"?`)
	if err := checkEqual("warnings", want, collector.warnings); err != nil {
		t.Error(err)
	}

	collector.warnings = nil
	web := appsv1alpha1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	if err := karmada.Create(t.Context(), &appsv1alpha1.WorkloadRebalancer{ObjectMeta: metav1.ObjectMeta{Name: misnamed.GetNamespace()}, Spec: appsv1alpha1.WorkloadRebalancerSpec{
		Workloads: []appsv1alpha1.ObjectReference{web, web},
	}}, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if err := checkEqual("warnings", []string{"spec.workloads[1]: has no effect: is equal to spec.workloads[0]"}, collector.warnings); err != nil {
		t.Error(err)
	}

	collector.warnings = nil
	if err := karmada.Create(t.Context(), &remedyv1alpha1.Remedy{ObjectMeta: metav1.ObjectMeta{Name: misnamed.GetNamespace()}}, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if err := checkEqual("warnings", []string{"spec.actions: is empty, so the Remedy has no effect: add an action, such as TrafficControl"}, collector.warnings); err != nil {
		t.Error(err)
	}
}

// selectUnknownNames changes a policy so that it selects kinds and clusters that do not exist.
func selectUnknownNames(s *policyv1alpha1.PropagationSpec) {
	s.ResourceSelectors[0].Kind = "Deploymint"
	s.ResourceSelectors[0].APIVersion = "apps/v1"
	s.ResourceSelectors = append(s.ResourceSelectors, s.ResourceSelectors[0])
	s.ResourceSelectors[1].APIVersion, s.ResourceSelectors[1].Kind = "rbac.authorization.k8s.io/v1", "ClusterRole"
	s.Placement.ClusterAffinity = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"membr1"}}
}

// unknownKindWarnings are the warnings about the kinds that selectUnknownNames sets.
var unknownKindWarnings = []string{
	"spec.resourceSelectors[0].kind: selects nothing: no API serves Deploymint of apps/v1; did you mean Deployment?",
	"spec.resourceSelectors[1]: never matches: ClusterRole of rbac.authorization.k8s.io/v1 has no namespace; use a ClusterPropagationPolicy",
}
