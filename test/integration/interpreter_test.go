package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/testenv"
)

// fleetCustomization returns a customization with all operations for the kind Fleet. replicas is the
// Lua expression for the number of replicas.
func fleetCustomization(name, replicas string) *configv1alpha1.ResourceInterpreterCustomization {
	return &configv1alpha1.ResourceInterpreterCustomization{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: configv1alpha1.ResourceInterpreterCustomizationSpec{
			Target: configv1alpha1.CustomizationTarget{APIVersion: "games.example.org/v1", Kind: "Fleet"},
			Customizations: configv1alpha1.CustomizationRules{
				ReplicaResource: &configv1alpha1.ReplicaResourceRequirement{LuaScript: fmt.Sprintf(`
					function GetReplicas(desiredObj)
						return %s, nil
					end`, replicas)},
				ReplicaRevision: &configv1alpha1.ReplicaRevision{LuaScript: `
					function ReviseReplica(desiredObj, desiredReplica)
						desiredObj.spec.servers = desiredReplica
						return desiredObj
					end`},
				Retention: &configv1alpha1.LocalValueRetention{LuaScript: `
					function Retain(desiredObj, observedObj)
						desiredObj.spec.paused = observedObj.spec.paused
						return desiredObj
					end`},
				StatusReflection: &configv1alpha1.StatusReflection{LuaScript: `
					function ReflectStatus(observedObj)
						if observedObj.status == nil then return {} end
						return {ready = observedObj.status.ready}
					end`},
				StatusAggregation: &configv1alpha1.StatusAggregation{LuaScript: `
					function AggregateStatus(desiredObj, items)
						local ready = 0
						for i = 1, #items do
							if items[i].status ~= nil and items[i].status.ready ~= nil then
								ready = ready + items[i].status.ready
							end
						end
						desiredObj.status = {ready = ready}
						return desiredObj
					end`},
				HealthInterpretation: &configv1alpha1.HealthInterpretation{LuaScript: `
					function InterpretHealth(observedObj)
						return observedObj.status ~= nil and observedObj.status.ready == observedObj.spec.servers
					end`},
				DependencyInterpretation: &configv1alpha1.DependencyInterpretation{LuaScript: `
					function GetDependencies(desiredObj)
						return {{apiVersion = "v1", kind = "ConfigMap", namespace = desiredObj.metadata.namespace, name = desiredObj.spec.map}}
					end`},
			},
		},
	}
}

// createFleetKind creates the kind Fleet in the control plane and in the members.
func createFleetKind(t *testing.T, env *testenv.Env) {
	t.Helper()
	kind := newCRD("games.example.org", "Fleet", "fleets")
	versions, _, _ := unstructured.NestedSlice(kind.Object, "spec", "versions")
	versions[0].(map[string]any)["subresources"] = map[string]any{"status": map[string]any{}}
	if err := unstructured.SetNestedSlice(kind.Object, versions, "spec", "versions"); err != nil {
		t.Fatal(err)
	}
	for _, cluster := range []client.Client{env.Karmada, memberClient(env, member1), memberClient(env, member2)} {
		if err := cluster.Create(t.Context(), kind.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := client.IgnoreNotFound(cluster.Delete(context.WithoutCancel(t.Context()), kind.DeepCopy())); err != nil {
				t.Error(err)
			}
		})
	}
}

// awaitFleetsServed waits until the status of the clusters contains the kind Fleet. Before that, no
// Fleet is scheduled to them.
func awaitFleetsServed(t *testing.T, env *testenv.Env) {
	t.Helper()
	for _, name := range []string{member1, member2} {
		await(t, env.Karmada, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}, func(c *clusterv1alpha1.Cluster) error {
			if !slices.ContainsFunc(c.Status.APIEnablements, func(e clusterv1alpha1.APIEnablement) bool { return e.GroupVersion == "games.example.org/v1" }) {
				return errors.New("the status does not contain games.example.org/v1")
			}
			return nil
		})
	}
}

func newFleet(namespace string, servers int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "games.example.org/v1", "kind": "Fleet", "metadata": map[string]any{"namespace": namespace, "name": "arena"},
		"spec": map[string]any{"servers": servers, "map": "desert", "seed": int64(9007199254740993)},
	}}
}

func TestCustomizationInterpretsANewKind(t *testing.T) {
	env := alone(t)
	createFleetKind(t, env)
	awaitFleetsServed(t, env)
	namespace := env.Namespace(t)
	customization := fleetCustomization("fleets", "desiredObj.spec.servers")
	env.Create(t, customization)
	settings, fleet := configMap(namespace, "desert"), newFleet(namespace, 5)
	env.Create(t, settings, policyWithDependencies(t, dividedPlacement(map[string]int64{member1: 3, member2: 2}), fleet))
	createCog(t, env, fleet)

	servers := map[string]int64{member1: 3, member2: 2}
	bound := await(t, env.Karmada, bindingOf(t, fleet), func(b *workv1alpha2.ResourceBinding) error {
		return errors.Join(checkEqual("replicas", int32(5), b.Spec.Replicas),
			checkEqual("clusters", []workv1alpha2.TargetCluster{{Name: member1, Replicas: 3}, {Name: member2, Replicas: 2}}, b.Spec.Clusters))
	})
	for cluster, want := range servers {
		awaitInMember(t, env, cluster, settings, exists)
		awaitInMember(t, env, cluster, fleet, func(f *unstructured.Unstructured) error {
			got, _, _ := unstructured.NestedInt64(f.Object, "spec", "servers")
			seed, _, _ := unstructured.NestedInt64(f.Object, "spec", "seed")
			return errors.Join(checkEqual("servers", want, got), checkEqual("seed", int64(9007199254740993), seed))
		})
		testenv.Update(t, memberClient(env, cluster), fleet.DeepCopy(), func(f *unstructured.Unstructured) {
			f.Object["spec"].(map[string]any)["paused"] = true
		})
		reportFleet(t, env, cluster, fleet, want)
	}
	await(t, env.Karmada, fleet, func(f *unstructured.Unstructured) error {
		ready, _, _ := unstructured.NestedInt64(f.Object, "status", "ready")
		return checkEqual("ready", int64(5), ready)
	})
	await(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) error {
		for _, item := range b.Status.AggregatedStatus {
			if item.Health != workv1alpha2.ResourceHealthy {
				return fmt.Errorf("%s is %s", item.ClusterName, item.Health)
			}
		}
		return checkEqual("number of clusters with a status", 2, len(b.Status.AggregatedStatus))
	})

	t.Log("a changed script is used for the existing objects")
	testenv.Update(t, env.Karmada, customization.DeepCopy(), func(c *configv1alpha1.ResourceInterpreterCustomization) {
		*c = *withSpecOf(c, fleetCustomization("fleets", "desiredObj.spec.servers * 2"))
	})
	for cluster, want := range map[string]int64{member1: 6, member2: 4} {
		awaitInMember(t, env, cluster, fleet, func(f *unstructured.Unstructured) error {
			got, _, _ := unstructured.NestedInt64(f.Object, "spec", "servers")
			paused, _, _ := unstructured.NestedBool(f.Object, "spec", "paused")
			return errors.Join(checkEqual("servers", want, got), checkEqual("retained field", true, paused))
		})
	}

	t.Log("a failing script is reported, and changes nothing")
	testenv.Update(t, env.Karmada, customization.DeepCopy(), func(c *configv1alpha1.ResourceInterpreterCustomization) {
		*c = *withSpecOf(c, fleetCustomization("fleets", "desiredObj.spec.missing.field"))
	})
	await(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) error {
		failed := conditions.Get(b.Status.Conditions, workv1alpha2.TemplateInterpreted)
		if failed == nil || failed.Status != metav1.ConditionFalse {
			return fmt.Errorf("condition %v", failed)
		}
		for _, part := range []string{"customization fleets", "InterpretReplica", "line 3", "nil value", "field"} {
			if !strings.Contains(failed.Message, part) {
				return fmt.Errorf("the message %q does not contain %q", failed.Message, part)
			}
		}
		return checkEqual("replicas", int32(10), b.Spec.Replicas)
	})

	t.Log("a restart with customizations uses no other rules in between")
	testenv.Update(t, env.Karmada, customization.DeepCopy(), func(c *configv1alpha1.ResourceInterpreterCustomization) {
		*c = *withSpecOf(c, fleetCustomization("fleets", "desiredObj.spec.servers"))
	})
	await(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) error {
		recovered := conditions.Get(b.Status.Conditions, workv1alpha2.TemplateInterpreted)
		return errors.Join(checkEqual("replicas", int32(5), b.Spec.Replicas), checkEqual("recovered", metav1.ConditionTrue, recovered.Status))
	})
	for cluster, want := range servers {
		awaitInMember(t, env, cluster, fleet, hasServers(want))
	}
	checkSilentStart(t, env)
	await(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) error { return checkEqual("replicas", int32(5), b.Spec.Replicas) })

	t.Log("a new customization does not stop objects that run already")
	if err := env.Karmada.Delete(t.Context(), customization.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	generations := map[string]int64{}
	for cluster := range servers {
		undivided := awaitInMember(t, env, cluster, fleet, hasServers(5))
		generations[cluster] = undivided.GetGeneration()
	}
	env.Create(t, fleetCustomization("fleets", "desiredObj.spec.servers"))
	for cluster, want := range servers {
		divided := awaitInMember(t, env, cluster, fleet, hasServers(want))
		if changes := divided.GetGeneration() - generations[cluster]; changes != 1 {
			t.Errorf("the Fleet in %s changed %d times on the way to %d servers, want once: it must not stop in between", cluster, changes, want)
		}
	}
}

func hasServers(want int64) func(*unstructured.Unstructured) error {
	return func(fleet *unstructured.Unstructured) error {
		got, _, _ := unstructured.NestedInt64(fleet.Object, "spec", "servers")
		return checkEqual("servers", want, got)
	}
}

// withSpecOf returns stored with the spec of wanted.
func withSpecOf(stored, wanted *configv1alpha1.ResourceInterpreterCustomization) *configv1alpha1.ResourceInterpreterCustomization {
	changed := stored.DeepCopy()
	changed.Spec = wanted.Spec
	return changed
}

// reportFleet sets the status of a Fleet in a member.
func reportFleet(t *testing.T, env *testenv.Env, cluster string, fleet *unstructured.Unstructured, ready int64) {
	t.Helper()
	status := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":{"ready":%d,"internal":"not reflected"}}`, ready))
	if err := memberClient(env, cluster).Status().Patch(t.Context(), fleet.DeepCopy(), status); err != nil {
		t.Fatal(err)
	}
}
