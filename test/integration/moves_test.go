package integration

import (
	"context"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/testenv"
)

// labelledPlacement selects one cluster with the label key=on.
func labelledPlacement(key string) policyv1alpha1.Placement {
	return policyv1alpha1.Placement{
		ClusterAffinity:   &policyv1alpha1.ClusterAffinity{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: "on"}}},
		SpreadConstraints: []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1, MaxGroups: 1}},
	}
}

// The cluster of a workload loses the label that the placement selects, while another cluster has
// it. The copy in the first cluster stays until the copy in the second cluster is healthy.
func TestMovedWorkloadStaysUntilReplacementIsHealthy(t *testing.T) {
	env := shared(t)
	const key = "moves.example.org/tier"
	setClusterLabels(t, env, key, "on", member1)
	t.Cleanup(func() { setClusterLabels(t, env, key, "", member1, member2) })
	template := createHealthyDeployment(t, env, "moved", labelledPlacement(key), nil)
	setClusterLabels(t, env, key, "on", member2)
	setClusterLabels(t, env, key, "", member1)
	await(t, env.Karmada, bindingOf(t, template), allBindingChecks(hasClusters(member2), hasEvictionsFrom(member1)))
	awaitInMember(t, env, member2, template, exists)
	checkObjectKept(t, env, member1, template)
	startSimulatedRollout(t, env, member2, template, 2)
	awaitGone(t, memberClient(env, member1), template)
	await(t, env.Karmada, bindingOf(t, template), allBindingChecks(hasClusters(member2), hasEvictionsFrom()))
}

// A workload that moved to its second affinity group returns to the first one when the second group
// has no cluster any more.
func TestWorkloadReturnsToEarlierAffinityGroup(t *testing.T) {
	env := shared(t)
	const primary, backup = "groups.example.org/primary", "groups.example.org/backup"
	group := func(label string) policyv1alpha1.ClusterAffinityTerm {
		return policyv1alpha1.ClusterAffinityTerm{AffinityName: strings.TrimPrefix(label, "groups.example.org/"), ClusterAffinity: *labelledPlacement(label).ClusterAffinity}
	}
	uses := func(group string) func(*workv1alpha2.ResourceBinding) error {
		return func(b *workv1alpha2.ResourceBinding) error {
			return checkEqual("group", group, b.Status.SchedulerObservedAffinityName)
		}
	}
	setClusterLabels(t, env, primary, "on", member1)
	setClusterLabels(t, env, backup, "on", member2)
	t.Cleanup(func() {
		setClusterLabels(t, env, primary, "", member1)
		setClusterLabels(t, env, backup, "", member2)
	})
	template := createHealthyDeployment(t, env, "groups", policyv1alpha1.Placement{ClusterAffinities: []policyv1alpha1.ClusterAffinityTerm{group(primary), group(backup)}}, nil)
	startSimulatedRollout(t, env, member2, template, 2)
	setClusterLabels(t, env, primary, "", member1)
	await(t, env.Karmada, bindingOf(t, template), allBindingChecks(hasClusters(member2), uses("backup"), hasEvictionsFrom()))
	awaitGone(t, memberClient(env, member1), template)
	startSimulatedRollout(t, env, member1, template, 2)
	setClusterLabels(t, env, primary, "on", member1)
	setClusterLabels(t, env, backup, "", member2)
	await(t, env.Karmada, bindingOf(t, template), allBindingChecks(hasClusters(member1), uses("primary"), hasEvictionsFrom()))
	awaitGone(t, memberClient(env, member2), template)
}

// checkObjectUnchanged checks for a quiet period that nothing writes the member object.
func checkObjectUnchanged(t testing.TB, env *testenv.Env, cluster string, before *appsv1.Deployment) {
	t.Helper()
	testenv.Holds(t, "the object in "+cluster, quietPeriod, func(ctx context.Context) error {
		stored := &appsv1.Deployment{}
		err := memberClient(env, cluster).Get(ctx, client.ObjectKeyFromObject(before), stored)
		return errors.Join(err, checkEqual("UID", before.UID, stored.UID), checkEqual("resourceVersion", before.ResourceVersion, stored.ResourceVersion))
	})
}

// keepsCopies checks whether the binding reports that a suspension keeps copies.
func keepsCopies(want bool) func(*workv1alpha2.ResourceBinding) error {
	return func(b *workv1alpha2.ResourceBinding) error {
		return checkEqual("condition DeletionSuspended", want, conditions.Get(b.Status.Conditions, workv1alpha2.DeletionSuspended) != nil)
	}
}

// TestSuspensionKeepsCopies removes a suspended cluster from a binding in several ways. The copy in
// the cluster is not written until the dispatching is resumed.
func TestSuspensionKeepsCopies(t *testing.T) {
	env := shared(t)
	const key = "suspension.example.org/tier"
	setClusterLabels(t, env, key, "on", member1)
	t.Cleanup(func() { setClusterLabels(t, env, key, "", member1) })
	changePolicy := func(template client.Object, change func(*policyv1alpha1.PropagationPolicy)) {
		policy := policyFor(t, policyv1alpha1.Placement{}, template)
		testenv.Update(t, env.Karmada, policy, change)
	}
	remove := map[string]func(t *testing.T, template *appsv1.Deployment){
		"a changed placement": func(_ *testing.T, template *appsv1.Deployment) {
			changePolicy(template, func(p *policyv1alpha1.PropagationPolicy) { p.Spec.Placement = placementOn(member2) })
		},
		"a changed label": func(t *testing.T, template *appsv1.Deployment) {
			changePolicy(template, func(p *policyv1alpha1.PropagationPolicy) { p.Spec.Placement = labelledPlacement(key) })
			await(t, env.Karmada, bindingOf(t, template), hasClusters(member1))
			setClusterLabels(t, env, key, "", member1)
		},
		"an edited binding": func(t *testing.T, template *appsv1.Deployment) {
			testenv.Update(t, env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) {
				b.Spec.Suspension.Scheduling, b.Spec.Clusters = new(true), nil
			})
		},
		"a deleted template": func(t *testing.T, template *appsv1.Deployment) {
			if err := env.Karmada.Delete(t.Context(), template); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, removeCluster := range remove {
		t.Run(name, func(t *testing.T) {
			template := createHealthyDeployment(t, env, "suspended", placementOn(member1), nil)
			changePolicy(template, func(p *policyv1alpha1.PropagationPolicy) {
				p.Spec.Suspension = &policyv1alpha1.Suspension{DispatchingOnClusters: &policyv1alpha1.SuspendClusters{ClusterNames: []string{member1}}}
			})
			await(t, env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
				return checkEqual("suspended", true, b.Spec.Suspension != nil)
			})
			before := awaitInMember(t, env, member1, template, exists)
			removeCluster(t, template)
			await(t, env.Karmada, bindingOf(t, template), keepsCopies(true))
			checkObjectUnchanged(t, env, member1, before)
			changePolicy(template, func(p *policyv1alpha1.PropagationPolicy) { p.Spec.Suspension = nil })
			if name == "an edited binding" {
				// Nothing explains this deletion, so it is held even after the resume.
				checkObjectKept(t, env, member1, template)
				return
			}
			awaitGone(t, memberClient(env, member1), template)
		})
	}
}

// TestSuspensionKeepsDependencies suspends a workload and then changes its dependencies. The
// cluster keeps the dependencies of the suspended copy until the dispatching is resumed.
func TestSuspensionKeepsDependencies(t *testing.T) {
	env := shared(t)
	changes := map[string]struct {
		change func(t *testing.T, policy *policyv1alpha1.PropagationPolicy, template *appsv1.Deployment, added *corev1.ConfigMap)
		// hasAdded is true if the workload then depends on the added ConfigMap.
		hasAdded bool
	}{
		"another reference": {func(t *testing.T, _ *policyv1alpha1.PropagationPolicy, template *appsv1.Deployment, added *corev1.ConfigMap) {
			testenv.Update(t, env.Karmada, template, func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.Volumes = nil
				addVolumes(&d.Spec.Template.Spec, added)
			})
			await(t, env.Karmada, bindingOf(t, added), exists)
		}, true},
		"propagateDeps is removed": {func(t *testing.T, policy *policyv1alpha1.PropagationPolicy, _ *appsv1.Deployment, _ *corev1.ConfigMap) {
			testenv.Update(t, env.Karmada, policy, func(p *policyv1alpha1.PropagationPolicy) { p.Spec.PropagateDeps = false })
		}, false},
		"the workload is deleted": {func(t *testing.T, _ *policyv1alpha1.PropagationPolicy, template *appsv1.Deployment, _ *corev1.ConfigMap) {
			deleteObject(t, env.Karmada, template)
		}, false},
		"the namespace is deleted": {func(t *testing.T, _ *policyv1alpha1.PropagationPolicy, template *appsv1.Deployment, _ *corev1.ConfigMap) {
			deleteObject(t, env.Karmada, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: template.Namespace}})
			await(t, env.Karmada, bindingOf(t, template), keepsCopies(true))
		}, false},
	}
	for name, tc := range changes {
		t.Run(name, func(t *testing.T) {
			namespace := env.Namespace(t)
			settings, added := configMap(namespace, "settings"), configMap(namespace, "added")
			template := deploymentWithDependencies(namespace, "web", settings)
			policy := policyWithDependencies(t, placementOn(member1), template)
			env.Create(t, settings, added, policy, template)
			before := awaitInMember(t, env, member1, settings, exists)
			awaitInMember(t, env, member1, template, exists)
			testenv.Update(t, env.Karmada, policy, func(p *policyv1alpha1.PropagationPolicy) {
				p.Spec.Suspension = &policyv1alpha1.Suspension{DispatchingOnClusters: &policyv1alpha1.SuspendClusters{ClusterNames: []string{member1}}}
			})
			await(t, env.Karmada, bindingOf(t, settings), func(b *workv1alpha2.ResourceBinding) error {
				return checkEqual("suspended", true, binding.IsDispatchSuspended(b, member1))
			})
			testenv.Update(t, env.Karmada, settings, func(c *corev1.ConfigMap) { c.Data["color"] = "red" })
			tc.change(t, policy, template, added)
			testenv.Holds(t, "the dependencies in "+member1, quietPeriod, func(ctx context.Context) error {
				stored := &corev1.ConfigMap{}
				err := memberClient(env, member1).Get(ctx, client.ObjectKeyFromObject(settings), stored)
				arrived := memberClient(env, member1).Get(ctx, client.ObjectKeyFromObject(added), &corev1.ConfigMap{}) == nil
				return errors.Join(err, checkEqual("resourceVersion", before.ResourceVersion, stored.ResourceVersion), checkEqual("new dependency", false, arrived))
			})
			if name == "the namespace is deleted" {
				testenv.Eventually(t, "resume of the deletions", func(ctx context.Context) error { return resumeDeletions(ctx, env, namespace) })
			} else {
				testenv.Update(t, env.Karmada, policy, func(p *policyv1alpha1.PropagationPolicy) { p.Spec.Suspension = nil })
			}
			awaitGone(t, memberClient(env, member1), settings)
			awaitGone(t, env.Karmada, bindingOf(t, settings))
			if tc.hasAdded {
				awaitInMember(t, env, member1, added, exists)
			}
		})
	}
}
