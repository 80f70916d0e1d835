package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/testenv"
)

// replaceOverride returns a rule that replaces the value at a path in the named clusters, or in
// all clusters.
func replaceOverride(t testing.TB, key, value string, clusters ...string) policyv1alpha1.RuleWithCluster {
	t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	rule := policyv1alpha1.RuleWithCluster{Overriders: policyv1alpha1.Overriders{
		Plaintext: []policyv1alpha1.PlaintextOverrider{{
			Path: key, Operator: policyv1alpha1.OverriderOpReplace, Value: policyv1alpha1.JSON{Raw: raw},
		}},
	}}
	if len(clusters) > 0 {
		rule.TargetCluster = &policyv1alpha1.ClusterAffinity{ClusterNames: clusters}
	}
	return rule
}

func newOverrideSpec(selectors []policyv1alpha1.ResourceSelector, rules ...policyv1alpha1.RuleWithCluster) policyv1alpha1.OverrideSpec {
	return policyv1alpha1.OverrideSpec{ResourceSelectors: selectors, OverrideRules: rules}
}

func hasColor(want string) func(*corev1.ConfigMap) error {
	return func(c *corev1.ConfigMap) error { return checkEqual("color", want, c.Data["color"]) }
}

func TestOverrideOrderIsClusterWideThenNamespacedAndSpecificLast(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "painted")
	template.Data["shape"], template.Data["size"] = "round", "small"
	every := selectorOf(t, template)
	every.Name = ""
	byName := []policyv1alpha1.ResourceSelector{selectorOf(t, template)}
	broad := &policyv1alpha1.ClusterOverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "z-" + template.Namespace},
		Spec: newOverrideSpec([]policyv1alpha1.ResourceSelector{every}, replaceOverride(t, "/data/color", "by kind"),
			replaceOverride(t, "/data/shape", "by kind"), replaceOverride(t, "/data/size", "by kind")),
	}
	specific := &policyv1alpha1.ClusterOverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "a-" + template.Namespace},
		Spec:       newOverrideSpec(byName, replaceOverride(t, "/data/color", "by name"), replaceOverride(t, "/data/shape", "by name")),
	}
	local := &policyv1alpha1.OverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: template.Namespace, Name: "local"},
		Spec:       newOverrideSpec(nil, replaceOverride(t, "/data/color", "local")),
	}
	cleanUp(t, env, broad, specific)
	env.Create(t, broad, specific, local, policyFor(t, placementOn(member1), template), template)

	awaitInMember(t, env, member1, template, func(c *corev1.ConfigMap) error {
		return checkEqual("data", map[string]string{"size": "by kind", "shape": "by name", "color": "local"}, c.Data)
	})
	await(t, env.Karmada, workOf(t, member1, template), func(w *workv1alpha1.Work) error {
		cluster, namespaced := w.Annotations[policyv1alpha1.AppliedClusterOverrides], w.Annotations[policyv1alpha1.AppliedOverrides]
		if !strings.Contains(cluster, broad.Name) || !strings.Contains(cluster, specific.Name) || !strings.Contains(namespaced, local.Name) {
			return fmt.Errorf("the annotations of applied overrides are %s and %s", cluster, namespaced)
		}
		return nil
	})
}

func TestChangedOrDeletedOverrideIsRenderedAgain(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "painted")
	override := &policyv1alpha1.OverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: template.Namespace, Name: "paint"},
		Spec:       newOverrideSpec([]policyv1alpha1.ResourceSelector{selectorOf(t, template)}, replaceOverride(t, "/data/color", "red", member1)),
	}
	env.Create(t, policyFor(t, placementOn(member1, member2), template), template)
	awaitInMember(t, env, member1, template, hasColor("blue"))

	env.Create(t, override)
	awaitInMember(t, env, member1, template, hasColor("red"))
	awaitInMember(t, env, member2, template, hasColor("blue"))

	testenv.Update(t, env.Karmada, override, func(o *policyv1alpha1.OverridePolicy) {
		o.Spec.OverrideRules = []policyv1alpha1.RuleWithCluster{replaceOverride(t, "/data/color", "green", member2)}
	})
	awaitInMember(t, env, member1, template, hasColor("blue"))
	awaitInMember(t, env, member2, template, hasColor("green"))

	deleteObject(t, env.Karmada, override)
	awaitInMember(t, env, member2, template, hasColor("blue"))
	await(t, env.Karmada, workOf(t, member2, template), func(w *workv1alpha1.Work) error {
		return checkEqual("annotation of applied overrides", "", w.Annotations[policyv1alpha1.AppliedOverrides])
	})
}

// isNotDeliveredTo checks that a binding reports the template as not applied in this one
// cluster only, with a message that contains the parts.
func isNotDeliveredTo(cluster string, parts ...string) func(*workv1alpha2.ResourceBinding) error {
	return func(b *workv1alpha2.ResourceBinding) error {
		err := checkCondition(b.Status.Conditions, workv1alpha2.FullyApplied, metav1.ConditionFalse, "FullyAppliedFailed", "")
		fullyApplied := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.FullyApplied)
		if fullyApplied != nil && !strings.Contains(fullyApplied.Message, cluster+": ") {
			err = errors.Join(err, fmt.Errorf("the condition does not name the cluster: %s", fullyApplied.Message))
		}
		message := ""
		for _, item := range b.Status.AggregatedStatus {
			if item.ClusterName == cluster {
				message = item.AppliedMessage
			}
			err = errors.Join(err, checkEqual(item.ClusterName+" has the template", item.ClusterName != cluster, item.Applied))
		}
		for _, part := range parts {
			if !strings.Contains(message, part) {
				err = errors.Join(err, fmt.Errorf("the message for %s is %q, want %q in it", cluster, message, part))
			}
		}
		return err
	}
}

func isDelivered(b *workv1alpha2.ResourceBinding) error {
	return checkCondition(b.Status.Conditions, workv1alpha2.FullyApplied, metav1.ConditionTrue, "FullyAppliedSuccess", "")
}

func TestFailingOverrideIsReportedAndDelaysNoOtherCluster(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "painted")
	override := &policyv1alpha1.OverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: template.Namespace, Name: "paint"},
		Spec: newOverrideSpec([]policyv1alpha1.ResourceSelector{selectorOf(t, template)},
			replaceOverride(t, "/data/nothing/here", "red", member1), replaceOverride(t, "/data/color", "green", member2)),
	}
	env.Create(t, override, policyFor(t, placementOn(member1, member2), template), template)
	parts := []string{
		"ConfigMap " + template.Namespace + "/painted", `OverridePolicy "` + template.Namespace + `/paint"`,
		"spec.overrideRules[0].overriders.plaintext[0]", `"/data/nothing/here"`, `there is no field "/data/nothing"`, `use operator "add"`,
	}

	awaitInMember(t, env, member2, template, hasColor("green"))
	await(t, env.Karmada, bindingOf(t, template), isNotDeliveredTo(member1, parts...))
	if err := checkAbsent(t.Context(), memberClient(env, member1), template); err != nil {
		t.Errorf("the object in the cluster whose override fails: %v", err)
	}
	awaitEvent(t, env, template, corev1.EventTypeWarning, "ApplyOverridePolicyFailed")
	events := &corev1.EventList{}
	if err := env.Karmada.List(t.Context(), events, client.InNamespace(template.Namespace)); err != nil {
		t.Fatal(err)
	}
	for _, event := range events.Items {
		if event.InvolvedObject.Name == template.Name && event.Reason == "SyncWorkFailed" {
			t.Errorf("the error is reported twice: %s", event.Message)
		}
	}

	testenv.Update(t, env.Karmada, override, func(o *policyv1alpha1.OverridePolicy) {
		o.Spec.OverrideRules[0] = replaceOverride(t, "/data/color", "red", member1)
	})
	awaitInMember(t, env, member1, template, hasColor("red"))
	await(t, env.Karmada, bindingOf(t, template), isDelivered)

	// The member keeps its object when the override fails later.
	testenv.Update(t, env.Karmada, override, func(o *policyv1alpha1.OverridePolicy) {
		o.Spec.OverrideRules[0] = replaceOverride(t, "/data/nothing/here", "red", member1)
	})
	await(t, env.Karmada, bindingOf(t, template), isNotDeliveredTo(member1, parts...))
	awaitInMember(t, env, member1, template, hasColor("red"))
	deleteObject(t, env.Karmada, override)
	awaitInMember(t, env, member1, template, hasColor("blue"))
	await(t, env.Karmada, bindingOf(t, template), isDelivered)
}

func TestEveryKindOfOverriderIsApplied(t *testing.T) {
	env := shared(t)
	template := deployment(env.Namespace(t), "web", 1)
	template.Labels["tier"] = "front"
	template.Annotations = map[string]string{"settings": `{"level":"info"}`, "note": "old"}
	template.Spec.Template.Spec.Containers[0].Command = []string{"nginx", "-d"}
	value := func(text string) policyv1alpha1.JSON { return policyv1alpha1.JSON{Raw: []byte(text)} }
	everything := &policyv1alpha1.OverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: template.Namespace, Name: "everything"},
		Spec: newOverrideSpec([]policyv1alpha1.ResourceSelector{selectorOf(t, template)}, policyv1alpha1.RuleWithCluster{
			TargetCluster: &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"member": member1}}},
			Overriders: policyv1alpha1.Overriders{
				ImageOverrider: []policyv1alpha1.ImageOverrider{
					{Component: policyv1alpha1.Registry, Operator: policyv1alpha1.OverriderOpReplace, Value: "registry.example:5000"},
					{Component: policyv1alpha1.Tag, Operator: policyv1alpha1.OverriderOpAdd, Value: "-alpine"},
				},
				CommandOverrider: []policyv1alpha1.CommandArgsOverrider{
					{ContainerName: "web", Operator: policyv1alpha1.OverriderOpRemove, Value: []string{"-d"}},
				},
				ArgsOverrider: []policyv1alpha1.CommandArgsOverrider{
					{ContainerName: "web", Operator: policyv1alpha1.OverriderOpAdd, Value: []string{"-v"}},
				},
				LabelsOverrider: []policyv1alpha1.LabelAnnotationOverrider{
					{Operator: policyv1alpha1.OverriderOpRemove, Value: map[string]string{"tier": ""}},
					{Operator: policyv1alpha1.OverriderOpAdd, Value: map[string]string{"place": "east"}},
				},
				AnnotationsOverrider: []policyv1alpha1.LabelAnnotationOverrider{
					{Operator: policyv1alpha1.OverriderOpReplace, Value: map[string]string{"note": "new", "other": "unset"}},
				},
				FieldOverrider: []policyv1alpha1.FieldOverrider{{FieldPath: "/metadata/annotations/settings", JSON: []policyv1alpha1.JSONPatchOperation{
					{SubPath: "/level", Operator: policyv1alpha1.OverriderOpReplace, Value: value(`"debug"`)},
				}}},
				Plaintext: []policyv1alpha1.PlaintextOverrider{
					{Path: "/spec/replicas", Operator: policyv1alpha1.OverriderOpReplace, Value: value("3")},
				},
			},
		}),
	}
	env.Create(t, policyFor(t, placementOn(member1, member2), template), template)
	created := awaitInMember(t, env, member1, template, func(d *appsv1.Deployment) error { return checkEqual("tier", "front", d.Labels["tier"]) })
	testenv.Update(t, memberClient(env, member1), created, func(d *appsv1.Deployment) { d.Labels["own"] = "yes" })
	env.Create(t, everything)
	awaitInMember(t, env, member1, template, func(d *appsv1.Deployment) error {
		container := d.Spec.Template.Spec.Containers[0]
		_, tier := d.Labels["tier"]
		_, other := d.Annotations["other"]
		listed := strings.Split(d.Annotations[workv1alpha2.ManagedLabels], ",")
		return errors.Join(
			checkEqual("image", "registry.example:5000/library/nginx:1.27-alpine", container.Image),
			checkEqual("command", []string{"nginx"}, container.Command), checkEqual("args", []string{"-v"}, container.Args),
			checkEqual("removed label exists", false, tier), checkEqual("added label", "east", d.Labels["place"]),
			checkEqual("label of the member", "yes", d.Labels["own"]),
			checkEqual("removed label is listed", false, slices.Contains(listed, "tier")),
			checkEqual("added label is listed", true, slices.Contains(listed, "place")),
			checkEqual("annotation", "new", d.Annotations["note"]), checkEqual("replaced annotation that did not exist", false, other),
			checkEqual("document", `{"level":"debug"}`, d.Annotations["settings"]),
			checkEqual("replicas", int32(3), *d.Spec.Replicas))
	})
	awaitInMember(t, env, member2, template, func(d *appsv1.Deployment) error {
		return errors.Join(hasReplicas(1)(d), checkEqual("image", "docker.io/library/nginx:1.27", d.Spec.Template.Spec.Containers[0].Image))
	})
}

func TestOverrideOfTheNameIsRejected(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "painted")
	rename := &policyv1alpha1.OverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: template.Namespace, Name: "rename"},
		Spec:       newOverrideSpec([]policyv1alpha1.ResourceSelector{selectorOf(t, template)}, replaceOverride(t, "/metadata/name", "repainted", member1)),
	}
	err := env.Karmada.Create(t.Context(), rename)
	if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
		t.Errorf("creating the override: got %v, want Forbidden or Invalid", err)
	}
}

// awaitEvent waits for an event for an object of the control plane.
func awaitEvent(t testing.TB, env *testenv.Env, on client.Object, kind, reason string) {
	t.Helper()
	testenv.Eventually(t, fmt.Sprintf("event %s %s", kind, reason), func(ctx context.Context) error {
		events := &corev1.EventList{}
		if err := env.Karmada.List(ctx, events, client.InNamespace(on.GetNamespace())); err != nil {
			return err
		}
		var seen []string
		for _, event := range events.Items {
			if event.InvolvedObject.Name == on.GetName() && event.Type == kind && event.Reason == reason {
				return nil
			}
			seen = append(seen, fmt.Sprintf("%s %s %s: %s", event.InvolvedObject.Name, event.Type, event.Reason, event.Message))
		}
		return errors.New("the events are " + strings.Join(seen, "; "))
	})
}
