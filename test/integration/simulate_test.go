package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/simulation"
	"karmada.io/karmada/internal/testenv"
)

// simulate runs karmadactl simulate, and returns the clusters and replicas of each object in the
// namespace after the change.
func simulate(t *testing.T, env *testenv.Env, namespace string, args ...string) map[string]map[string]int32 {
	t.Helper()
	awaitNoWrites(t, env)
	before := countWrites(t, env)
	stdout, stderr, err := runKarmadactl(t, env, append([]string{"simulate", "-o", "json", "-n", namespace}, args...)...)
	if err != nil {
		t.Fatalf("simulate %v: %v\n%s", args, err, stderr)
	}
	if err := diffWrites(before, countWrites(t, env)); err != nil {
		t.Errorf("simulate %v wrote: %v", args, err)
	}
	var result simulation.Result
	if err := json.Unmarshal([]byte(stdout), &result); err != nil {
		t.Fatalf("%v in\n%s", err, stdout)
	}
	after := map[string]map[string]int32{}
	for _, object := range result.Objects {
		if object.Namespace != namespace {
			continue
		}
		after[object.Name] = map[string]int32{}
		for _, target := range object.After {
			after[object.Name][target.Cluster] = 0
			if target.Replicas != nil {
				after[object.Name][target.Cluster] = *target.Replicas
			}
		}
	}
	return after
}

// awaitPlacement waits until the objects of the namespace have these clusters and replicas.
func awaitPlacement(t *testing.T, env *testenv.Env, namespace string, want map[string]map[string]int32) {
	t.Helper()
	testenv.Eventually(t, "the placement of the simulation", func(ctx context.Context) error {
		bindings := &workv1alpha2.ResourceBindingList{}
		if err := env.Karmada.List(ctx, bindings, client.InNamespace(namespace)); err != nil {
			return err
		}
		got := map[string]map[string]int32{}
		for _, bound := range bindings.Items {
			if _, isWanted := want[bound.Spec.Resource.Name]; !isWanted {
				continue
			}
			targets := map[string]int32{}
			for _, target := range bound.Spec.Clusters {
				targets[target.Name] = target.Replicas
			}
			got[bound.Spec.Resource.Name] = targets
		}
		return checkEqual("clusters and replicas", want, got)
	})
}

func relabel(t *testing.T, env *testenv.Env, cluster, key, value string) {
	t.Helper()
	testenv.Update(t, env.Karmada, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}, func(c *clusterv1alpha1.Cluster) {
		if value == "" {
			delete(c.Labels, key)
			return
		}
		metav1.SetMetaDataLabel(&c.ObjectMeta, key, value)
	})
}

// writeFile writes the objects to a file and returns its path.
func writeFile(t *testing.T, objects ...client.Object) string {
	t.Helper()
	path, text := filepath.Join(t.TempDir(), "objects.yaml"), ""
	for _, object := range objects {
		encoded, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintf("---\n%s", encoded)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSimulationIsWhatHappensThen(t *testing.T) {
	env := alone(t)
	namespace := env.Namespace(t)
	const key = "simulate-tier"
	relabel(t, env, member3, key, "gold")
	t.Cleanup(func() {
		relabel(t, env, member1, key, "")
		relabel(t, env, member3, key, "")
	})
	web, settings := deployment(namespace, "web", 6), configMap(namespace, "settings")
	webPolicy := policyFor(t, dividedPlacement(map[string]int64{member1: 2, member2: 1}), web)
	golden := policyv1alpha1.Placement{ClusterAffinity: &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: "gold"}}}}

	// A simulation of files says where new objects go.
	given := []client.Object{web.DeepCopy(), webPolicy.DeepCopy(), settings.DeepCopy(), policyFor(t, golden, settings)}
	given[0].GetObjectKind().SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	given[1].GetObjectKind().SetGroupVersionKind(policyv1alpha1.GroupVersion.WithKind("PropagationPolicy"))
	given[2].GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	given[3].GetObjectKind().SetGroupVersionKind(policyv1alpha1.GroupVersion.WithKind("PropagationPolicy"))
	then := simulate(t, env, namespace, "-f", writeFile(t, given...))
	checkPlacement(t, then, map[string]map[string]int32{"web": {member1: 4, member2: 2}, "settings": {member3: 0}})
	env.Create(t, webPolicy, policyFor(t, golden, settings), web, settings)
	awaitPlacement(t, env, namespace, then)

	// Labels of clusters move the objects that they select.
	then = simulate(t, env, namespace, "--all", "--label", member3+"="+key+"-", "--label", member1+"="+key+"=gold")
	checkPlacement(t, then, map[string]map[string]int32{"settings": {member1: 0}})
	relabel(t, env, member1, key, "gold")
	relabel(t, env, member3, key, "")
	awaitPlacement(t, env, namespace, then)

	// A changed policy moves its objects.
	changed := webPolicy.DeepCopy()
	changed.SetManagedFields(nil)
	changed.SetResourceVersion("")
	changed.SetGroupVersionKind(policyv1alpha1.GroupVersion.WithKind("PropagationPolicy"))
	changed.Spec.Placement = dividedPlacement(map[string]int64{member2: 1, member3: 2})
	then = simulate(t, env, namespace, "-f", writeFile(t, changed))
	checkPlacement(t, then, map[string]map[string]int32{"web": {member2: 2, member3: 4}})
	testenv.Update(t, env.Karmada, webPolicy, func(p *policyv1alpha1.PropagationPolicy) { p.Spec.Placement = changed.Spec.Placement })
	awaitPlacement(t, env, namespace, then)
}

func checkPlacement(t *testing.T, got, want map[string]map[string]int32) {
	t.Helper()
	if err := checkEqual("the placement of the simulation", want, got); err != nil {
		t.Error(err)
	}
}
