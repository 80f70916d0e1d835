package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/programs/controllermanager"
	"karmada.io/karmada/internal/testenv"
)

const brokenTaintKey = "test.karmada.io/broken"

// enableEvictions restarts the components with evictions enabled at a high rate, and with
// further changes of the options, until the test ends.
func enableEvictions(t testing.TB, env *testenv.Env, changes ...func(*controllermanager.Evictions)) {
	t.Helper()
	restartWithEvictionOptions(t, env, "Failover=true,StatefulFailoverInjection=true", append([]func(*controllermanager.Evictions){func(options *controllermanager.Evictions) {
		options.NoExecute, options.Rate = true, 1000
	}}, changes...)...)
}

// restartWithEvictionOptions restarts the components with feature gates and options for
// evictions. It restarts them with the defaults when the test ends.
func restartWithEvictionOptions(t testing.TB, env *testenv.Env, gates string, changes ...func(*controllermanager.Evictions)) {
	t.Helper()
	before := env.FeatureGates
	env.FeatureGates, env.Options = gates, func(settings *controllermanager.Options) {
		for _, change := range changes {
			change(&settings.Evictions)
		}
	}
	t.Cleanup(func() {
		env.FeatureGates, env.Options = before, nil
		if err := env.RestartComponents(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	restartComponents(t, env)
}

// taintCluster adds a NoExecute taint to a cluster. The returned function, or the end of the
// test, removes it.
func taintCluster(t testing.TB, env *testenv.Env, cluster string) (removeTaint func()) {
	t.Helper()
	isBroken := func(taint corev1.Taint) bool { return taint.Key == brokenTaintKey }
	removeTaint = func() {
		testenv.Update(t, env.Karmada, clusterNamed(cluster), func(c *clusterv1alpha1.Cluster) { c.Spec.Taints = slices.DeleteFunc(c.Spec.Taints, isBroken) })
	}
	t.Cleanup(removeTaint)
	testenv.Update(t, env.Karmada, clusterNamed(cluster), func(c *clusterv1alpha1.Cluster) {
		c.Spec.Taints = append(slices.DeleteFunc(c.Spec.Taints, isBroken), corev1.Taint{Key: brokenTaintKey, Effect: corev1.TaintEffectNoExecute})
	})
	return removeTaint
}

// placementOnOneOf returns a placement on one of the named clusters, preferably the first one.
func placementOnOneOf(clusters ...string) policyv1alpha1.Placement {
	placement := placementOn(clusters...)
	placement.SpreadConstraints = []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1, MaxGroups: 1}}
	return placement
}

// createHealthyDeployment places a Deployment by a policy and makes it ready in the first
// cluster.
func createHealthyDeployment(t testing.TB, env *testenv.Env, name string, placement policyv1alpha1.Placement, change func(*policyv1alpha1.PropagationPolicy)) *appsv1.Deployment {
	t.Helper()
	template := deployment(env.Namespace(t), name, 2)
	policy := policyFor(t, placement, template)
	if change != nil {
		change(policy)
	}
	startSimulatedRollout(t, env, member1, template, 2)
	env.Create(t, policy, template)
	awaitInMember(t, env, member1, template, hasReplicas(2))
	await(t, env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
		return errors.Join(hasClusters(member1)(b), hasHealth(workv1alpha2.ResourceHealthy)(b))
	})
	return template
}

// hasEvictionsFrom checks the clusters of the graceful eviction tasks of a binding.
func hasEvictionsFrom(want ...string) func(*workv1alpha2.ResourceBinding) error {
	return func(b *workv1alpha2.ResourceBinding) error {
		var got []string
		for _, task := range b.Spec.GracefulEvictionTasks {
			got = append(got, task.FromCluster)
		}
		return checkEqual("clusters of eviction tasks", want, got)
	}
}

// allBindingChecks calls the checks in their order and returns the first error.
func allBindingChecks(checks ...func(*workv1alpha2.ResourceBinding) error) func(*workv1alpha2.ResourceBinding) error {
	return func(b *workv1alpha2.ResourceBinding) error {
		for _, check := range checks {
			if err := check(b); err != nil {
				return err
			}
		}
		return nil
	}
}

// checkObjectKept checks for a quiet period that the UID of the member object does not change.
func checkObjectKept(t testing.TB, env *testenv.Env, cluster string, object client.Object) {
	t.Helper()
	before, err := uidOf(t.Context(), env, cluster, object)
	if err != nil {
		t.Fatal(err)
	}
	testenv.Holds(t, "the UID in "+cluster, quietPeriod, func(ctx context.Context) error {
		after, err := uidOf(ctx, env, cluster, object)
		return errors.Join(err, checkEqual("UID", before, after))
	})
}

func confirmEviction(t testing.TB, env *testenv.Env, rb *workv1alpha2.ResourceBinding) {
	t.Helper()
	testenv.Update(t, env.Karmada, rb, func(b *workv1alpha2.ResourceBinding) {
		for i := range b.Spec.GracefulEvictionTasks {
			b.Spec.GracefulEvictionTasks[i].SuppressDeletion = new(false)
		}
	})
}

func TestTaintEvictionNeedsGateTaintManagerNoExecuteAndRate(t *testing.T) {
	env := alone(t)
	const gate = "Failover=true"
	on := func(options *controllermanager.Evictions) { options.NoExecute, options.Rate = true, 1000 }
	template := createHealthyDeployment(t, env, "web", placementOnOneOf(member1, member2), nil)
	taintCluster(t, env, member1)
	rb := bindingOf(t, template)
	for name, off := range map[string]struct {
		gates  string
		change func(*controllermanager.Evictions)
		flag   string
	}{
		"the feature gate":  {"Failover=false", func(*controllermanager.Evictions) {}, "--feature-gates=Failover=true"},
		"the taint manager": {gate, func(options *controllermanager.Evictions) { options.TaintManager = false }, "--enable-taint-manager=true"},
		"NoExecute":         {gate, func(options *controllermanager.Evictions) { options.NoExecute = false }, "--enable-no-execute-taint-eviction=true"},
		"the rate":          {gate, func(options *controllermanager.Evictions) { options.Rate = 0 }, "--resource-eviction-rate=0.5"},
	} {
		t.Run("without "+name, func(t *testing.T) {
			restartWithEvictionOptions(t, env, off.gates, on, off.change)
			await(t, env.Karmada, clusterNamed(member1), func(c *clusterv1alpha1.Cluster) error {
				return checkCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionTaintsEvict, metav1.ConditionFalse, "EvictionDisabled",
					"NoExecute taints evict no workloads: start karmada-controller-manager with "+off.flag)
			})
			testenv.Holds(t, "the workload stays in its cluster", quietPeriod, func(ctx context.Context) error {
				if err := env.Karmada.Get(ctx, client.ObjectKeyFromObject(rb), rb); err != nil {
					return err
				}
				return allBindingChecks(hasClusters(member1), hasEvictionsFrom())(rb)
			})
		})
	}
	restartWithEvictionOptions(t, env, gate, on)
	await(t, env.Karmada, clusterNamed(member1), func(c *clusterv1alpha1.Cluster) error {
		return checkCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionTaintsEvict, metav1.ConditionTrue, "EvictionEnabled", "")
	})
	await(t, env.Karmada, rb, allBindingChecks(hasClusters(member2), hasEvictionsFrom(member1)))
}

func TestTaintEvictionCompletesWhenTheReplacementIsHealthy(t *testing.T) {
	env := alone(t)
	enableEvictions(t, env)
	namespace := env.Namespace(t)
	settings := configMap(namespace, "settings")
	template := deploymentWithDependencies(namespace, "web", settings)
	*template.Spec.Replicas = 2
	env.Create(t, settings, policyWithDependencies(t, placementOnOneOf(member1, member2), template), template)
	awaitInMember(t, env, member1, template, hasReplicas(2))
	awaitInMember(t, env, member1, settings, exists)
	simulateRollout(t, env, member1, template, 2)
	rb := await(t, env.Karmada, bindingOf(t, template), hasHealth(workv1alpha2.ResourceHealthy))

	taintCluster(t, env, member1)
	rb = await(t, env.Karmada, rb, allBindingChecks(hasClusters(member2), hasEvictionsFrom(member1), func(b *workv1alpha2.ResourceBinding) error {
		if b.Spec.GracefulEvictionTasks[0].CreationTimestamp.IsZero() {
			return errors.New("the task has no creation timestamp")
		}
		return nil
	}))
	want := []workv1alpha2.GracefulEvictionTask{{
		FromCluster: member1, PurgeMode: policyv1alpha1.PurgeModeGracefully, Replicas: new(int32(2)), Reason: "TaintUntolerated", Producer: "TaintManager",
		Message: "the taint " + brokenTaintKey + ":NoExecute is not tolerated",
	}}
	if diff := cmp.Diff(want, rb.Spec.GracefulEvictionTasks, cmpopts.IgnoreFields(workv1alpha2.GracefulEvictionTask{}, "CreationTimestamp")); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
	awaitInMember(t, env, member2, template, hasReplicas(2))
	awaitInMember(t, env, member2, settings, exists)
	// Only the new cluster gets the change. The new copy is not healthy, because only one of its
	// two replicas is ready.
	testenv.Update(t, env.Karmada, template, func(d *appsv1.Deployment) { d.Spec.MinReadySeconds = 1 })
	awaitInMember(t, env, member2, template, func(d *appsv1.Deployment) error {
		return checkEqual("minReadySeconds", int32(1), d.Spec.MinReadySeconds)
	})
	simulateRollout(t, env, member2, template, 1)
	checkObjectKept(t, env, member1, template)
	checkObjectKept(t, env, member1, settings)
	awaitInMember(t, env, member1, template, func(d *appsv1.Deployment) error {
		return checkEqual("minReadySeconds", int32(0), d.Spec.MinReadySeconds)
	})

	simulateRollout(t, env, member2, template, 2)
	awaitGone(t, memberClient(env, member1), template)
	awaitGone(t, memberClient(env, member1), settings)
	awaitGone(t, env.Karmada, workOf(t, member1, template))
	await(t, env.Karmada, rb, allBindingChecks(hasClusters(member2), hasEvictionsFrom()))
	awaitInMember(t, env, member2, template, hasReplicas(2))
	for _, object := range []client.Object{rb, template} {
		awaitEvent(t, env, object, corev1.EventTypeNormal, workv1alpha2.EventReasonEvictWorkloadFromClusterSucceed)
	}
}

func TestEvictionTimeoutKeepsTheOldCopyUntilReplacedOrConfirmed(t *testing.T) {
	env := alone(t)
	enableEvictions(t, env, func(options *controllermanager.Evictions) { options.Timeout = time.Second })
	replaced, confirmed := createHealthyDeployment(t, env, "healed", placementOnOneOf(member1, member2), nil), createHealthyDeployment(t, env, "given", placementOnOneOf(member1, member2), nil)
	taintCluster(t, env, member1)
	for _, template := range []*appsv1.Deployment{replaced, confirmed} {
		rb := await(t, env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
			return checkCondition(b.Status.Conditions, workv1alpha2.EvictionHeld, metav1.ConditionTrue, "NotReplaced",
				"the grace period for the eviction from cluster member1 is over, and the copy there is kept: the workload is not known to be healthy in member2.")
		})
		awaitEvent(t, env, rb, corev1.EventTypeWarning, workv1alpha2.EventReasonEvictionHeld)
		awaitEvent(t, env, template, corev1.EventTypeWarning, workv1alpha2.EventReasonEvictionHeld)
		checkObjectKept(t, env, member1, template)
	}
	simulateRollout(t, env, member2, replaced, 2)
	confirmEviction(t, env, bindingOf(t, confirmed))
	for _, template := range []*appsv1.Deployment{replaced, confirmed} {
		awaitGone(t, memberClient(env, member1), template)
		await(t, env.Karmada, bindingOf(t, template), allBindingChecks(hasClusters(member2), hasEvictionsFrom(), func(b *workv1alpha2.ResourceBinding) error {
			if meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.EvictionHeld) != nil {
				return errors.New("the condition EvictionHeld remains")
			}
			return nil
		}))
	}
}

func TestEvictedWorkloadWithoutAnotherClusterStaysAndReturns(t *testing.T) {
	env := alone(t)
	enableEvictions(t, env, func(options *controllermanager.Evictions) { options.Timeout = time.Second })
	template := createHealthyDeployment(t, env, "lonely", placementOn(member1), nil)
	before, err := uidOf(t.Context(), env, member1, template)
	if err != nil {
		t.Fatal(err)
	}
	removeTaint := taintCluster(t, env, member1)
	rb := await(t, env.Karmada, bindingOf(t, template), allBindingChecks(hasClusters(), hasEvictionsFrom(member1), func(b *workv1alpha2.ResourceBinding) error {
		return checkCondition(b.Status.Conditions, workv1alpha2.EvictionHeld, metav1.ConditionTrue, "NotReplaced",
			"the grace period for the eviction from cluster member1 is over, and the copy there is kept: no other cluster takes the workload.")
	}))
	checkObjectKept(t, env, member1, template)
	restartComponents(t, env)
	checkObjectKept(t, env, member1, template)

	removeTaint()
	await(t, env.Karmada, rb, allBindingChecks(hasClusters(member1), hasEvictionsFrom()))
	awaitEvent(t, env, rb, corev1.EventTypeNormal, workv1alpha2.EventReasonEvictionReturned)
	testenv.Update(t, env.Karmada, template, func(d *appsv1.Deployment) { d.Spec.MinReadySeconds = 1 })
	awaitInMember(t, env, member1, template, func(d *appsv1.Deployment) error {
		return errors.Join(checkEqual("minReadySeconds", int32(1), d.Spec.MinReadySeconds), checkEqual("UID", before, d.UID))
	})
}

func TestDirectPurgeStartsTheReplacementAfterRemovalOrDeclaredDead(t *testing.T) {
	env := alone(t)
	enableEvictions(t, env)
	const finalizer = "test.karmada.io/hold"
	template := createHealthyDeployment(t, env, "stateful", placementOnOneOf(member1, member2), func(p *policyv1alpha1.PropagationPolicy) {
		p.Spec.Failover = &policyv1alpha1.FailoverBehavior{Cluster: &policyv1alpha1.ClusterFailoverBehavior{
			PurgeMode: policyv1alpha1.PurgeModeDirectly,
			StatePreservation: &policyv1alpha1.StatePreservation{Rules: []policyv1alpha1.StatePreservationRule{
				{AliasLabelName: "test.karmada.io/replicas", JSONPath: "{.readyReplicas}"},
			}},
		}}
	})
	// The finalizer blocks the deletion of the Work, as when the cluster is unreachable.
	memberWork := workOf(t, member1, template)
	testenv.Update(t, env.Karmada, memberWork, func(w *workv1alpha1.Work) { w.Finalizers = append(w.Finalizers, finalizer) })
	release := func() {
		err := env.Karmada.Get(context.WithoutCancel(t.Context()), client.ObjectKeyFromObject(memberWork), memberWork)
		if err == nil {
			testenv.Update(t, env.Karmada, memberWork, func(w *workv1alpha1.Work) {
				w.Finalizers = slices.DeleteFunc(w.Finalizers, func(one string) bool { return one == finalizer })
			})
		}
	}
	t.Cleanup(release)
	taintCluster(t, env, member1)
	rb := await(t, env.Karmada, bindingOf(t, template), allBindingChecks(hasClusters(member2), hasEvictionsFrom(member1)))
	testenv.Holds(t, "no object in the next cluster", quietPeriod, func(ctx context.Context) error {
		return errors.Join(checkAbsent(ctx, memberClient(env, member2), template), checkAbsent(ctx, env.Karmada, workOf(t, member2, template)))
	})

	declare := func(value string) {
		testenv.Update(t, env.Karmada, clusterNamed(member1), func(c *clusterv1alpha1.Cluster) {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, clusterv1alpha1.DeclaredDeadAnnotation, value)
		})
	}
	t.Cleanup(func() { declare("false") })
	declare("true")
	state := func(want string) func(*appsv1.Deployment) error {
		return func(d *appsv1.Deployment) error {
			return checkEqual("state", want, d.Labels["test.karmada.io/replicas"])
		}
	}
	awaitInMember(t, env, member2, template, state("2"))
	simulateRollout(t, env, member2, template, 2)
	await(t, env.Karmada, rb, allBindingChecks(hasClusters(member2), hasEvictionsFrom()))
	awaitInMember(t, env, member2, template, state(""))
	release()
	awaitGone(t, env.Karmada, memberWork)
}

func TestClusterScopedObjectIsEvicted(t *testing.T) {
	env := alone(t)
	enableEvictions(t, env)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "evicted-" + env.Namespace(t)}}
	cleanUp(t, env, role)
	env.Create(t, role)
	env.Create(t, clusterPolicyFor(t, env, placementOnOneOf(member1, member2), role))
	awaitInMember(t, env, member1, role, exists)
	taintCluster(t, env, member1)
	awaitInMember(t, env, member2, role, exists)
	awaitGone(t, memberClient(env, member1), role)
	rb := &workv1alpha2.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: binding.Name(role.Name, "ClusterRole")}}
	await(t, env.Karmada, rb, func(b *workv1alpha2.ClusterResourceBinding) error {
		return errors.Join(checkEqual("tasks", 0, len(b.Spec.GracefulEvictionTasks)), checkEqual("clusters", 1, len(b.Spec.Clusters)))
	})
}

func TestTaintIsToleratedForTheTolerationSeconds(t *testing.T) {
	env := alone(t)
	enableEvictions(t, env)
	const seconds = 3
	tolerating := func(seconds *int64) policyv1alpha1.Placement {
		placement := placementOnOneOf(member1, member2)
		placement.ClusterTolerations = []corev1.Toleration{{Key: brokenTaintKey, Operator: corev1.TolerationOpExists, TolerationSeconds: seconds}}
		return placement
	}
	tolerantForSeconds, tolerantForever := createHealthyDeployment(t, env, "patient", tolerating(new(int64(seconds))), nil), createHealthyDeployment(t, env, "stoic", tolerating(nil), nil)
	taintCluster(t, env, member1)
	var added time.Time
	await(t, env.Karmada, clusterNamed(member1), func(c *clusterv1alpha1.Cluster) error {
		for _, taint := range c.Spec.Taints {
			if taint.Key == brokenTaintKey && taint.TimeAdded != nil {
				added = taint.TimeAdded.Time
				return nil
			}
		}
		return errors.New("the taint has no timeAdded")
	})
	rb := await(t, env.Karmada, bindingOf(t, tolerantForSeconds), hasEvictionsFrom(member1))
	if now := time.Now(); now.Before(added.Add(seconds * time.Second)) {
		t.Errorf("evicted %s before the toleration ended", added.Add(seconds*time.Second).Sub(now))
	}
	await(t, env.Karmada, bindingOf(t, tolerantForever), allBindingChecks(hasClusters(member1), hasEvictionsFrom()))
	// The workload must not return while the taint exists, although the workload tolerates the
	// taint for some seconds.
	simulateRollout(t, env, member2, tolerantForSeconds, 2)
	await(t, env.Karmada, rb, allBindingChecks(hasClusters(member2), hasEvictionsFrom()))
	awaitGone(t, memberClient(env, member1), tolerantForSeconds)
}

func TestEvictionsStayBelowTheRate(t *testing.T) {
	env := alone(t)
	const rate, number = 4, 9
	enableEvictions(t, env, func(options *controllermanager.Evictions) { options.Rate = rate })
	namespace := env.Namespace(t)
	var templates []*corev1.ConfigMap
	for i := range number {
		template := configMap(namespace, fmt.Sprintf("paced-%d", i))
		env.Create(t, policyFor(t, placementOnOneOf(member1, member2), template), template)
		templates = append(templates, template)
	}
	for _, template := range templates {
		awaitInMember(t, env, member1, template, exists)
	}
	began := time.Now()
	taintCluster(t, env, member1)
	testenv.Eventually(t, "all workloads are evicted", func(ctx context.Context) error {
		list := &workv1alpha2.ResourceBindingList{}
		if err := env.Karmada.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return err
		}
		duration, evicted := time.Since(began), 0
		for i := range list.Items {
			if hasClusters(member1)(&list.Items[i]) != nil {
				evicted++
			}
		}
		if maxEvicted := 1 + int(duration.Seconds()*rate); evicted > maxEvicted {
			t.Fatalf("%d evictions within %s, want at most %d", evicted, duration, maxEvicted)
		}
		return checkEqual("evicted", number, evicted)
	})
	for _, template := range templates {
		awaitInMember(t, env, member2, template, exists)
		awaitGone(t, memberClient(env, member1), template)
	}
}

// setApplicationFailover makes the workload leave clusters in which it stays unhealthy.
func setApplicationFailover(mode policyv1alpha1.PurgeMode, tolerated int32) func(*policyv1alpha1.PropagationPolicy) {
	return func(p *policyv1alpha1.PropagationPolicy) {
		p.Spec.PropagateDeps = true
		p.Spec.Failover = &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{
			DecisionConditions: policyv1alpha1.DecisionConditions{TolerationSeconds: &tolerated}, PurgeMode: mode,
		}}
	}
}

func TestApplicationFailoverEvictsOnlyWhatStaysUnhealthy(t *testing.T) {
	env := shared(t)
	// longToleration is long enough for a slow machine to make a workload ready again.
	// shortToleration is long enough to make a new copy ready for the first time.
	const longToleration, shortToleration = 30 * time.Second, 12
	flapping := createHealthyDeployment(t, env, "flapping", placementOnOneOf(member1, member2), setApplicationFailover(policyv1alpha1.PurgeModeGracefully, int32(longToleration.Seconds())))
	failing := createHealthyDeployment(t, env, "failing", placementOnOneOf(member1, member2), setApplicationFailover(policyv1alpha1.PurgeModeNever, shortToleration))
	simulateRollout(t, env, member1, flapping, 1)
	recovered := await(t, env.Karmada, bindingOf(t, flapping), hasHealth(workv1alpha2.ResourceUnhealthy))
	unhealthySince := time.Now()
	simulateRollout(t, env, member1, flapping, 2)
	await(t, env.Karmada, recovered, hasHealth(workv1alpha2.ResourceHealthy))

	// Make the workload ready in member2 in time. Otherwise the workload would be evicted from
	// member2 too.
	startSimulatedRollout(t, env, member2, failing, 2)
	simulateRollout(t, env, member1, failing, 1)
	rb := await(t, env.Karmada, bindingOf(t, failing), allBindingChecks(hasClusters(member2), hasEvictionsFrom(member1)))
	task := rb.Spec.GracefulEvictionTasks[0]
	if task.Producer != "resource-binding-application-failover-controller" || task.Reason != "ApplicationFailure" || task.SuppressDeletion == nil || !*task.SuppressDeletion {
		t.Errorf("task: %+v", task)
	}
	await(t, env.Karmada, rb, func(b *workv1alpha2.ResourceBinding) error {
		return checkCondition(b.Status.Conditions, workv1alpha2.FullyApplied, metav1.ConditionTrue, "FullyAppliedSuccess", "")
	})
	checkObjectKept(t, env, member1, failing)
	confirmEviction(t, env, rb)
	awaitGone(t, memberClient(env, member1), failing)
	await(t, env.Karmada, rb, allBindingChecks(hasClusters(member2), hasEvictionsFrom()))

	testenv.Holds(t, "the recovered workload stays", time.Until(unhealthySince.Add(longToleration+quietPeriod)), func(ctx context.Context) error {
		if err := env.Karmada.Get(ctx, client.ObjectKeyFromObject(recovered), recovered); err != nil {
			return err
		}
		return allBindingChecks(hasClusters(member1), hasEvictionsFrom())(recovered)
	})
}

// The components are stopped at several stages while a cluster is tainted. Each workload is in
// at least one member at any time, and in the end in exactly the right one.
func TestRestartsDuringEvictionsLoseNoWorkload(t *testing.T) {
	env := alone(t)
	const number = 12
	enableEvictions(t, env)
	namespace := env.Namespace(t)
	var templates []*corev1.ConfigMap
	for i := range number {
		templates = append(templates, configMap(namespace, fmt.Sprintf("moved-%02d", i)))
	}
	policy := &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "moved"},
		Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "ConfigMap"}}, Placement: placementOnOneOf(member1, member2),
		},
	}
	env.Create(t, policy)
	for _, template := range templates {
		env.Create(t, template)
	}
	for _, template := range templates {
		awaitInMember(t, env, member1, template, exists)
	}
	checkNoneLost := func(ctx context.Context) error {
		for _, template := range templates {
			if checkAbsent(ctx, memberClient(env, member1), template) == nil && checkAbsent(ctx, memberClient(env, member2), template) == nil {
				return fmt.Errorf("%s is in no member", template.Name)
			}
		}
		return nil
	}
	taintCluster(t, env, member1)
	for _, reached := range []func(*workv1alpha2.ResourceBinding) bool{
		// A binding that has passed this stage counts too, because all bindings may have passed it
		// before they are listed.
		func(b *workv1alpha2.ResourceBinding) bool {
			return len(b.Spec.GracefulEvictionTasks) > 0 || hasClusters(member1)(b) != nil
		},
		func(b *workv1alpha2.ResourceBinding) bool { return hasClusters(member2)(b) == nil },
		func(b *workv1alpha2.ResourceBinding) bool {
			return hasClusters(member2)(b) == nil && hasEvictionsFrom()(b) == nil
		},
	} {
		testenv.Eventually(t, "some bindings reached the stage", func(ctx context.Context) error {
			list := &workv1alpha2.ResourceBindingList{}
			if err := errors.Join(checkNoneLost(ctx), env.Karmada.List(ctx, list, client.InNamespace(namespace))); err != nil {
				if strings.Contains(err.Error(), "is in no member") {
					t.Fatal(err)
				}
				return err
			}
			for i := range list.Items {
				if reached(&list.Items[i]) {
					return nil
				}
			}
			return errors.New("no binding reached the stage")
		})
		restartComponents(t, env)
	}
	for _, template := range templates {
		await(t, env.Karmada, bindingOf(t, template), allBindingChecks(hasClusters(member2), hasEvictionsFrom()))
		awaitInMember(t, env, member2, template, hasColor("blue"))
		awaitGone(t, memberClient(env, member1), template)
		if err := checkNoneLost(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
