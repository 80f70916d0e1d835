package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
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
	t.Parallel()
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
	cleanUp(t, broad, specific)
	env.Create(t, broad, specific, local, policyFor(t, on(member1), template), template)

	inMember(t, member1, template, func(c *corev1.ConfigMap) error {
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
	t.Parallel()
	template := configMap(env.Namespace(t), "painted")
	override := &policyv1alpha1.OverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: template.Namespace, Name: "paint"},
		Spec:       overrideSpec([]policyv1alpha1.ResourceSelector{selectorOf(t, template)}, setting(t, "/data/color", "red", member1)),
	}
	env.Create(t, policyFor(t, on(member1, member2), template), template)
	inMember(t, member1, template, hasColor("blue"))

	env.Create(t, override)
	inMember(t, member1, template, hasColor("red"))
	inMember(t, member2, template, hasColor("blue"))

	testenv.Update(t, env.Karmada, override, func(o *policyv1alpha1.OverridePolicy) {
		o.Spec.OverrideRules = []policyv1alpha1.RuleWithCluster{setting(t, "/data/color", "green", member2)}
	})
	inMember(t, member1, template, hasColor("blue"))
	inMember(t, member2, template, hasColor("green"))

	deleteObject(t, env.Karmada, override)
	inMember(t, member2, template, hasColor("blue"))
	await(t, env.Karmada, workOf(t, member2, template), func(w *workv1alpha1.Work) error {
		return same("record", "", w.Annotations[policyv1alpha1.AppliedOverrides])
	})
}

func TestOverrideThatFailsIsToldAndHoldsUpNoOtherCluster(t *testing.T) {
	t.Parallel()
	template := configMap(env.Namespace(t), "painted")
	override := &policyv1alpha1.OverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: template.Namespace, Name: "paint"},
		Spec: overrideSpec([]policyv1alpha1.ResourceSelector{selectorOf(t, template)},
			setting(t, "/data/nothing/here", "red", member1), setting(t, "/data/color", "green", member2)),
	}
	env.Create(t, override, policyFor(t, on(member1, member2), template), template)

	inMember(t, member2, template, hasColor("green"))
	awaitEvent(t, template, corev1.EventTypeWarning, "ApplyOverridePolicyFailed")
	if err := absent(t.Context(), member(member1), template); err != nil {
		t.Errorf("the object in the cluster whose override fails: %v", err)
	}

	testenv.Update(t, env.Karmada, override, func(o *policyv1alpha1.OverridePolicy) {
		o.Spec.OverrideRules[0] = setting(t, "/data/color", "red", member1)
	})
	inMember(t, member1, template, hasColor("red"))
}

// awaitEvent waits for an event on an object of the control plane.
func awaitEvent(t testing.TB, on client.Object, kind, reason string) {
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
