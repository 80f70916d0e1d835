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

// setting overrides data of ConfigMaps in the named clusters; none means all.
func setting(t testing.TB, key, value string, clusters ...string) policyv1alpha1.RuleWithCluster {
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

func overrideSpec(selectors []policyv1alpha1.ResourceSelector, rules ...policyv1alpha1.RuleWithCluster) policyv1alpha1.OverrideSpec {
	return policyv1alpha1.OverrideSpec{ResourceSelectors: selectors, OverrideRules: rules}
}

func hasColor(want string) func(*corev1.ConfigMap) error {
	return func(c *corev1.ConfigMap) error { return same("color", want, c.Data["color"]) }
}

func TestOverridesOfTheNamespaceComeAfterClusterWideOnesAndSpecificOnesLast(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "painted")
	template.Data["shape"], template.Data["size"] = "round", "small"
	every := selectorOf(t, template)
	every.Name = ""
	byName := []policyv1alpha1.ResourceSelector{selectorOf(t, template)}
	broad := &policyv1alpha1.ClusterOverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "z-" + template.Namespace},
		Spec: overrideSpec([]policyv1alpha1.ResourceSelector{every}, setting(t, "/data/color", "by kind"),
			setting(t, "/data/shape", "by kind"), setting(t, "/data/size", "by kind")),
	}
	specific := &policyv1alpha1.ClusterOverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "a-" + template.Namespace},
		Spec:       overrideSpec(byName, setting(t, "/data/color", "by name"), setting(t, "/data/shape", "by name")),
	}
	local := &policyv1alpha1.OverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: template.Namespace, Name: "local"},
		Spec:       overrideSpec(nil, setting(t, "/data/color", "local")),
	}
	cleanUp(t, env, broad, specific)
	env.Create(t, broad, specific, local, policyFor(t, on(member1), template), template)

	inMember(t, env, member1, template, func(c *corev1.ConfigMap) error {
		return same("data", map[string]string{"size": "by kind", "shape": "by name", "color": "local"}, c.Data)
	})
	await(t, env.Karmada, workOf(t, member1, template), func(w *workv1alpha1.Work) error {
		cluster, inside := w.Annotations[policyv1alpha1.AppliedClusterOverrides], w.Annotations[policyv1alpha1.AppliedOverrides]
		if !strings.Contains(cluster, broad.Name) || !strings.Contains(cluster, specific.Name) || !strings.Contains(inside, local.Name) {
			return fmt.Errorf("applied overrides are recorded as %s and %s", cluster, inside)
		}
		return nil
	})
}

func TestOverrideThatChangesOrGoesIsRenderedAnew(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "painted")
	override := &policyv1alpha1.OverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: template.Namespace, Name: "paint"},
		Spec:       overrideSpec([]policyv1alpha1.ResourceSelector{selectorOf(t, template)}, setting(t, "/data/color", "red", member1)),
	}
	env.Create(t, policyFor(t, on(member1, member2), template), template)
	inMember(t, env, member1, template, hasColor("blue"))

	env.Create(t, override)
	inMember(t, env, member1, template, hasColor("red"))
	inMember(t, env, member2, template, hasColor("blue"))

	testenv.Update(t, env.Karmada, override, func(o *policyv1alpha1.OverridePolicy) {
		o.Spec.OverrideRules = []policyv1alpha1.RuleWithCluster{setting(t, "/data/color", "green", member2)}
	})
	inMember(t, env, member1, template, hasColor("blue"))
	inMember(t, env, member2, template, hasColor("green"))

	deleteObject(t, env.Karmada, override)
	inMember(t, env, member2, template, hasColor("blue"))
	await(t, env.Karmada, workOf(t, member2, template), func(w *workv1alpha1.Work) error {
		return same("record", "", w.Annotations[policyv1alpha1.AppliedOverrides])
	})
}

// notDelivered tells how a binding does not say of one cluster, and only of it,
// why the template is not there.
func notDelivered(cluster string, parts ...string) func(*workv1alpha2.ResourceBinding) error {
	return func(b *workv1alpha2.ResourceBinding) error {
		told := condition(b.Status.Conditions, workv1alpha2.FullyApplied, metav1.ConditionFalse, "FullyAppliedFailed", "")
		full := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.FullyApplied)
		if full != nil && !strings.Contains(full.Message, cluster+": ") {
			told = errors.Join(told, fmt.Errorf("the condition does not name the cluster: %s", full.Message))
		}
		said := ""
		for _, item := range b.Status.AggregatedStatus {
			if item.ClusterName == cluster {
				said = item.AppliedMessage
			}
			told = errors.Join(told, same(item.ClusterName+" has the template", item.ClusterName != cluster, item.Applied))
		}
		for _, part := range parts {
			if !strings.Contains(said, part) {
				told = errors.Join(told, fmt.Errorf("of %s it says %q, without %q", cluster, said, part))
			}
		}
		return told
	}
}

func delivered(b *workv1alpha2.ResourceBinding) error {
	return condition(b.Status.Conditions, workv1alpha2.FullyApplied, metav1.ConditionTrue, "FullyAppliedSuccess", "")
}

func TestOverrideThatFailsIsToldAndHoldsUpNoOtherCluster(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "painted")
	override := &policyv1alpha1.OverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: template.Namespace, Name: "paint"},
		Spec: overrideSpec([]policyv1alpha1.ResourceSelector{selectorOf(t, template)},
			setting(t, "/data/nothing/here", "red", member1), setting(t, "/data/color", "green", member2)),
	}
	env.Create(t, override, policyFor(t, on(member1, member2), template), template)
	blamed := []string{
		"ConfigMap " + template.Namespace + "/painted", `OverridePolicy "` + template.Namespace + `/paint"`,
		"spec.overrideRules[0].overriders.plaintext[0]", `"/data/nothing/here"`, `there is no field "/data/nothing"`, `use operator "add"`,
	}

	inMember(t, env, member2, template, hasColor("green"))
	await(t, env.Karmada, bindingOf(t, template), notDelivered(member1, blamed...))
	if err := absent(t.Context(), member(env, member1), template); err != nil {
		t.Errorf("the object in the cluster whose override fails: %v", err)
	}
	awaitEvent(t, env, template, corev1.EventTypeWarning, "ApplyOverridePolicyFailed")
	events := &corev1.EventList{}
	if err := env.Karmada.List(t.Context(), events, client.InNamespace(template.Namespace)); err != nil {
		t.Fatal(err)
	}
	for _, event := range events.Items {
		if event.InvolvedObject.Name == template.Name && event.Reason == "SyncWorkFailed" {
			t.Errorf("the mistake is told twice: %s", event.Message)
		}
	}

	testenv.Update(t, env.Karmada, override, func(o *policyv1alpha1.OverridePolicy) {
		o.Spec.OverrideRules[0] = setting(t, "/data/color", "red", member1)
	})
	inMember(t, env, member1, template, hasColor("red"))
	await(t, env.Karmada, bindingOf(t, template), delivered)

	// What a cluster has stays when the override breaks later.
	testenv.Update(t, env.Karmada, override, func(o *policyv1alpha1.OverridePolicy) {
		o.Spec.OverrideRules[0] = setting(t, "/data/nothing/here", "red", member1)
	})
	await(t, env.Karmada, bindingOf(t, template), notDelivered(member1, blamed...))
	inMember(t, env, member1, template, hasColor("red"))
	deleteObject(t, env.Karmada, override)
	inMember(t, env, member1, template, hasColor("blue"))
	await(t, env.Karmada, bindingOf(t, template), delivered)
}

func TestEveryKindOfOverriderReachesTheMember(t *testing.T) {
	env := shared(t)
	template := deployment(env.Namespace(t), "web", 1)
	template.Labels["tier"] = "front"
	template.Annotations = map[string]string{"settings": `{"level":"info"}`, "note": "old"}
	template.Spec.Template.Spec.Containers[0].Command = []string{"nginx", "-d"}
	value := func(text string) policyv1alpha1.JSON { return policyv1alpha1.JSON{Raw: []byte(text)} }
	everything := &policyv1alpha1.OverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: template.Namespace, Name: "everything"},
		Spec: overrideSpec([]policyv1alpha1.ResourceSelector{selectorOf(t, template)}, policyv1alpha1.RuleWithCluster{
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
	env.Create(t, policyFor(t, on(member1, member2), template), template)
	made := inMember(t, env, member1, template, func(d *appsv1.Deployment) error { return same("tier", "front", d.Labels["tier"]) })
	testenv.Update(t, member(env, member1), made, func(d *appsv1.Deployment) { d.Labels["own"] = "yes" })
	env.Create(t, everything)
	inMember(t, env, member1, template, func(d *appsv1.Deployment) error {
		container := d.Spec.Template.Spec.Containers[0]
		_, tier := d.Labels["tier"]
		_, other := d.Annotations["other"]
		listed := strings.Split(d.Annotations[workv1alpha2.ManagedLabels], ",")
		return errors.Join(
			same("image", "registry.example:5000/library/nginx:1.27-alpine", container.Image),
			same("command", []string{"nginx"}, container.Command), same("args", []string{"-v"}, container.Args),
			same("label that is removed", false, tier), same("label that is added", "east", d.Labels["place"]),
			same("label of the member", "yes", d.Labels["own"]),
			same("removed label is listed", false, slices.Contains(listed, "tier")),
			same("added label is listed", true, slices.Contains(listed, "place")),
			same("annotation", "new", d.Annotations["note"]), same("annotation that was not there", false, other),
			same("document", `{"level":"debug"}`, d.Annotations["settings"]),
			same("replicas", int32(3), *d.Spec.Replicas))
	})
	inMember(t, env, member2, template, func(d *appsv1.Deployment) error {
		return errors.Join(replicas(1)(d), same("image", "docker.io/library/nginx:1.27", d.Spec.Template.Spec.Containers[0].Image))
	})
}

func TestOverrideThatRenamesAnObjectIsRefused(t *testing.T) {
	env := shared(t)
	template := configMap(env.Namespace(t), "painted")
	rename := &policyv1alpha1.OverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: template.Namespace, Name: "rename"},
		Spec:       overrideSpec([]policyv1alpha1.ResourceSelector{selectorOf(t, template)}, setting(t, "/metadata/name", "repainted", member1)),
	}
	err := env.Karmada.Create(t.Context(), rename)
	if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
		t.Errorf("the answer is %v", err)
	}
}

// awaitEvent waits for an event on an object of the control plane.
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
		return errors.New("events are " + strings.Join(seen, "; "))
	})
}
