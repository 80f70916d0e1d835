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
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/testenv"
)

const broken = "test.karmada.io/broken"

// evicting runs the components with evictions switched on, many a second, and
// whatever else is changed, until the test ends.
func evicting(t testing.TB, env *testenv.Env, changes ...func(*programs.Evictions)) {
	t.Helper()
	reconfigure(t, env, "Failover=true,StatefulFailoverInjection=true", append([]func(*programs.Evictions){func(of *programs.Evictions) {
		of.NoExecute, of.Rate = true, 1000
	}}, changes...)...)
}

// reconfigure gives the components a new life with gates and settings for evictions,
// and another one without when the test ends.
func reconfigure(t testing.TB, env *testenv.Env, gates string, changes ...func(*programs.Evictions)) {
	t.Helper()
	before := env.FeatureGates
	env.FeatureGates, env.Settings = gates, func(settings *programs.Settings) {
		for _, change := range changes {
			change(&settings.Controllers.Evictions)
		}
	}
	t.Cleanup(func() {
		env.FeatureGates, env.Settings = before, nil
		if err := env.RestartComponents(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	restart(t, env)
}

// taint drives work out of a cluster until the returned function, or the test, ends
// that.
func taint(t testing.TB, env *testenv.Env, cluster string) (cure func()) {
	t.Helper()
	is := func(taint corev1.Taint) bool { return taint.Key == broken }
	cure = func() {
		testenv.Update(t, env.Karmada, clusterNamed(cluster), func(c *clusterv1alpha1.Cluster) { c.Spec.Taints = slices.DeleteFunc(c.Spec.Taints, is) })
	}
	t.Cleanup(cure)
	testenv.Update(t, env.Karmada, clusterNamed(cluster), func(c *clusterv1alpha1.Cluster) {
		c.Spec.Taints = append(slices.DeleteFunc(c.Spec.Taints, is), corev1.Taint{Key: broken, Effect: corev1.TaintEffectNoExecute})
	})
	return cure
}

// oneOf is a placement on one of the named clusters, the first if it can be.
func oneOf(clusters ...string) policyv1alpha1.Placement {
	placement := on(clusters...)
	placement.SpreadConstraints = []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 1, MaxGroups: 1}}
	return placement
}

// serve places a Deployment by a policy, and has it rolled out in the first cluster.
func serve(t testing.TB, env *testenv.Env, name string, placement policyv1alpha1.Placement, change func(*policyv1alpha1.PropagationPolicy)) *appsv1.Deployment {
	t.Helper()
	template := deployment(env.Namespace(t), name, 2)
	policy := policyFor(t, placement, template)
	if change != nil {
		change(policy)
	}
	rollsOut(t, env, member1, template, 2)
	env.Create(t, policy, template)
	inMember(t, env, member1, template, replicas(2))
	await(t, env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
		return errors.Join(names(member1)(b), healths(workv1alpha2.ResourceHealthy)(b))
	})
	return template
}

// leaves checks which clusters a binding is leaving.
func leaves(want ...string) func(*workv1alpha2.ResourceBinding) error {
	return func(b *workv1alpha2.ResourceBinding) error {
		var got []string
		for _, task := range b.Spec.GracefulEvictionTasks {
			got = append(got, task.FromCluster)
		}
		return same("clusters that it leaves", want, got)
	}
}

// both checks one thing after the other.
func both(checks ...func(*workv1alpha2.ResourceBinding) error) func(*workv1alpha2.ResourceBinding) error {
	return func(b *workv1alpha2.ResourceBinding) error {
		for _, check := range checks {
			if err := check(b); err != nil {
				return err
			}
		}
		return nil
	}
}

// stays checks for a while that the member has the very same object.
func stays(t testing.TB, env *testenv.Env, cluster string, object client.Object) {
	t.Helper()
	before, err := uidOf(t.Context(), env, cluster, object)
	if err != nil {
		t.Fatal(err)
	}
	testenv.Holds(t, "the copy in "+cluster, quiet, func(ctx context.Context) error {
		after, err := uidOf(ctx, env, cluster, object)
		return errors.Join(err, same("UID", before, after))
	})
}

func confirmEviction(t testing.TB, env *testenv.Env, bound *workv1alpha2.ResourceBinding) {
	t.Helper()
	testenv.Update(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) {
		for i := range b.Spec.GracefulEvictionTasks {
			b.Spec.GracefulEvictionTasks[i].SuppressDeletion = new(false)
		}
	})
}

func TestEvictionByTaintsNeedsAllItsSwitches(t *testing.T) {
	env := alone(t)
	const gate = "Failover=true"
	on := func(of *programs.Evictions) { of.NoExecute, of.Rate = true, 1000 }
	template := serve(t, env, "web", oneOf(member1, member2), nil)
	taint(t, env, member1)
	bound := bindingOf(t, template)
	for name, off := range map[string]struct {
		gates  string
		change func(*programs.Evictions)
	}{
		"the gate":          {"Failover=false", func(*programs.Evictions) {}},
		"the taint manager": {gate, func(of *programs.Evictions) { of.TaintManager = false }},
		"NoExecute":         {gate, func(of *programs.Evictions) { of.NoExecute = false }},
		"the rate":          {gate, func(of *programs.Evictions) { of.Rate = 0 }},
	} {
		t.Run("without "+name, func(t *testing.T) {
			reconfigure(t, env, off.gates, on, off.change)
			testenv.Holds(t, "the workload in its cluster", quiet, func(ctx context.Context) error {
				if err := env.Karmada.Get(ctx, client.ObjectKeyFromObject(bound), bound); err != nil {
					return err
				}
				return both(names(member1), leaves())(bound)
			})
		})
	}
	reconfigure(t, env, gate, on)
	await(t, env.Karmada, bound, both(names(member2), leaves(member1)))
}

func TestWorkloadLeavesATaintedClusterWhenItIsHealthyElsewhere(t *testing.T) {
	env := alone(t)
	evicting(t, env)
	namespace := env.Namespace(t)
	settings := configMap(namespace, "settings")
	template := needing(namespace, "web", settings)
	*template.Spec.Replicas = 2
	env.Create(t, settings, following(t, oneOf(member1, member2), template), template)
	inMember(t, env, member1, template, replicas(2))
	inMember(t, env, member1, settings, exists)
	rollOut(t, env, member1, template, 2)
	bound := await(t, env.Karmada, bindingOf(t, template), healths(workv1alpha2.ResourceHealthy))

	taint(t, env, member1)
	bound = await(t, env.Karmada, bound, both(names(member2), leaves(member1), func(b *workv1alpha2.ResourceBinding) error {
		if b.Spec.GracefulEvictionTasks[0].CreationTimestamp.IsZero() {
			return errors.New("the task has no time")
		}
		return nil
	}))
	want := []workv1alpha2.GracefulEvictionTask{{
		FromCluster: member1, PurgeMode: policyv1alpha1.PurgeModeGracefully, Replicas: new(int32(2)), Reason: "TaintUntolerated", Producer: "TaintManager",
		Message: "the taint " + broken + ":NoExecute is not tolerated",
	}}
	if diff := cmp.Diff(want, bound.Spec.GracefulEvictionTasks, cmpopts.IgnoreFields(workv1alpha2.GracefulEvictionTask{}, "CreationTimestamp")); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
	inMember(t, env, member2, template, replicas(2))
	inMember(t, env, member2, settings, exists)
	// A change reaches the new cluster only, and one ready replica of two is not health.
	testenv.Update(t, env.Karmada, template, func(d *appsv1.Deployment) { d.Spec.MinReadySeconds = 1 })
	inMember(t, env, member2, template, func(d *appsv1.Deployment) error { return same("minReadySeconds", int32(1), d.Spec.MinReadySeconds) })
	rollOut(t, env, member2, template, 1)
	stays(t, env, member1, template)
	stays(t, env, member1, settings)
	inMember(t, env, member1, template, func(d *appsv1.Deployment) error { return same("minReadySeconds", int32(0), d.Spec.MinReadySeconds) })

	rollOut(t, env, member2, template, 2)
	awaitGone(t, member(env, member1), template)
	awaitGone(t, member(env, member1), settings)
	awaitGone(t, env.Karmada, workOf(t, member1, template))
	await(t, env.Karmada, bound, both(names(member2), leaves()))
	inMember(t, env, member2, template, replicas(2))
	for _, object := range []client.Object{bound, template} {
		awaitEvent(t, env, object, corev1.EventTypeNormal, workv1alpha2.EventReasonEvictWorkloadFromClusterSucceed)
	}
}

func TestTimeoutKeepsTheOldCopyUntilANewOneIsHealthyOrAUserGivesItUp(t *testing.T) {
	env := alone(t)
	evicting(t, env, func(of *programs.Evictions) { of.Timeout = time.Second })
	healed, given := serve(t, env, "healed", oneOf(member1, member2), nil), serve(t, env, "given", oneOf(member1, member2), nil)
	taint(t, env, member1)
	for _, template := range []*appsv1.Deployment{healed, given} {
		bound := await(t, env.Karmada, bindingOf(t, template), func(b *workv1alpha2.ResourceBinding) error {
			return condition(b.Status.Conditions, workv1alpha2.EvictionHeld, metav1.ConditionTrue, "NotReplaced",
				"the grace period for the eviction from cluster member1 is over, and the copy there is kept: the workload is not known to be healthy in member2.")
		})
		awaitEvent(t, env, bound, corev1.EventTypeWarning, workv1alpha2.EventReasonEvictionHeld)
		awaitEvent(t, env, template, corev1.EventTypeWarning, workv1alpha2.EventReasonEvictionHeld)
		stays(t, env, member1, template)
	}
	rollOut(t, env, member2, healed, 2)
	confirmEviction(t, env, bindingOf(t, given))
	for _, template := range []*appsv1.Deployment{healed, given} {
		awaitGone(t, member(env, member1), template)
		await(t, env.Karmada, bindingOf(t, template), both(names(member2), leaves(), func(b *workv1alpha2.ResourceBinding) error {
			if meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.EvictionHeld) != nil {
				return errors.New("what is over is still told")
			}
			return nil
		}))
	}
}

func TestWorkloadThatNoOtherClusterTakesStaysAndIsTakenBack(t *testing.T) {
	env := alone(t)
	evicting(t, env, func(of *programs.Evictions) { of.Timeout = time.Second })
	template := serve(t, env, "lonely", on(member1), nil)
	before, err := uidOf(t.Context(), env, member1, template)
	if err != nil {
		t.Fatal(err)
	}
	cure := taint(t, env, member1)
	bound := await(t, env.Karmada, bindingOf(t, template), both(names(), leaves(member1), func(b *workv1alpha2.ResourceBinding) error {
		return condition(b.Status.Conditions, workv1alpha2.EvictionHeld, metav1.ConditionTrue, "NotReplaced",
			"the grace period for the eviction from cluster member1 is over, and the copy there is kept: no other cluster takes the workload.")
	}))
	stays(t, env, member1, template)
	restart(t, env)
	stays(t, env, member1, template)

	cure()
	await(t, env.Karmada, bound, both(names(member1), leaves()))
	awaitEvent(t, env, bound, corev1.EventTypeNormal, workv1alpha2.EventReasonEvictionReturned)
	testenv.Update(t, env.Karmada, template, func(d *appsv1.Deployment) { d.Spec.MinReadySeconds = 1 })
	inMember(t, env, member1, template, func(d *appsv1.Deployment) error {
		return errors.Join(same("minReadySeconds", int32(1), d.Spec.MinReadySeconds), same("UID", before, d.UID))
	})
}

func TestDirectlyPurgedWorkloadStartsElsewhereOnlyWhenItIsGoneOrItsClusterIsDeclaredDead(t *testing.T) {
	env := alone(t)
	evicting(t, env)
	const hold = "test.karmada.io/hold"
	template := serve(t, env, "stateful", oneOf(member1, member2), func(p *policyv1alpha1.PropagationPolicy) {
		p.Spec.Failover = &policyv1alpha1.FailoverBehavior{Cluster: &policyv1alpha1.ClusterFailoverBehavior{
			PurgeMode: policyv1alpha1.PurgeModeDirectly,
			StatePreservation: &policyv1alpha1.StatePreservation{Rules: []policyv1alpha1.StatePreservationRule{
				{AliasLabelName: "test.karmada.io/replicas", JSONPath: "{.readyReplicas}"},
			}},
		}}
	})
	// The Work cannot go, as if its cluster were out of reach.
	of := workOf(t, member1, template)
	testenv.Update(t, env.Karmada, of, func(w *workv1alpha1.Work) { w.Finalizers = append(w.Finalizers, hold) })
	release := func() {
		err := env.Karmada.Get(context.WithoutCancel(t.Context()), client.ObjectKeyFromObject(of), of)
		if err == nil {
			testenv.Update(t, env.Karmada, of, func(w *workv1alpha1.Work) {
				w.Finalizers = slices.DeleteFunc(w.Finalizers, func(one string) bool { return one == hold })
			})
		}
	}
	t.Cleanup(release)
	taint(t, env, member1)
	bound := await(t, env.Karmada, bindingOf(t, template), both(names(member2), leaves(member1)))
	testenv.Holds(t, "nothing in the next cluster", quiet, func(ctx context.Context) error {
		return errors.Join(absent(ctx, member(env, member2), template), absent(ctx, env.Karmada, workOf(t, member2, template)))
	})

	declare := func(value string) {
		testenv.Update(t, env.Karmada, clusterNamed(member1), func(c *clusterv1alpha1.Cluster) {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, clusterv1alpha1.DeclaredDeadAnnotation, value)
		})
	}
	t.Cleanup(func() { declare("false") })
	declare("true")
	state := func(want string) func(*appsv1.Deployment) error {
		return func(d *appsv1.Deployment) error { return same("state", want, d.Labels["test.karmada.io/replicas"]) }
	}
	inMember(t, env, member2, template, state("2"))
	rollOut(t, env, member2, template, 2)
	await(t, env.Karmada, bound, both(names(member2), leaves()))
	inMember(t, env, member2, template, state(""))
	release()
	awaitGone(t, env.Karmada, of)
}

func TestClusterWideWorkloadIsEvictedLikeAnyOther(t *testing.T) {
	env := alone(t)
	evicting(t, env)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "evicted-" + env.Namespace(t)}}
	cleanUp(t, env, role)
	env.Create(t, role)
	env.Create(t, clusterPolicyFor(t, env, oneOf(member1, member2), role))
	inMember(t, env, member1, role, exists)
	taint(t, env, member1)
	inMember(t, env, member2, role, exists)
	awaitGone(t, member(env, member1), role)
	bound := &workv1alpha2.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: binding.Name(role.Name, "ClusterRole")}}
	await(t, env.Karmada, bound, func(b *workv1alpha2.ClusterResourceBinding) error {
		return errors.Join(same("tasks", 0, len(b.Spec.GracefulEvictionTasks)), same("clusters", 1, len(b.Spec.Clusters)))
	})
}

func TestTaintIsToleratedForAsLongAsThePolicySays(t *testing.T) {
	env := alone(t)
	evicting(t, env)
	const seconds = 3
	tolerating := func(seconds *int64) policyv1alpha1.Placement {
		placement := oneOf(member1, member2)
		placement.ClusterTolerations = []corev1.Toleration{{Key: broken, Operator: corev1.TolerationOpExists, TolerationSeconds: seconds}}
		return placement
	}
	patient, stoic := serve(t, env, "patient", tolerating(new(int64(seconds))), nil), serve(t, env, "stoic", tolerating(nil), nil)
	taint(t, env, member1)
	var added time.Time
	await(t, env.Karmada, clusterNamed(member1), func(c *clusterv1alpha1.Cluster) error {
		for _, taint := range c.Spec.Taints {
			if taint.Key == broken && taint.TimeAdded != nil {
				added = taint.TimeAdded.Time
				return nil
			}
		}
		return errors.New("the taint has no time")
	})
	bound := await(t, env.Karmada, bindingOf(t, patient), leaves(member1))
	if now := time.Now(); now.Before(added.Add(seconds * time.Second)) {
		t.Errorf("evicted %s before its time", added.Add(seconds*time.Second).Sub(now))
	}
	await(t, env.Karmada, bindingOf(t, stoic), both(names(member1), leaves()))
	// It may not come back while the taint is there, tolerated for a time as it is.
	rollOut(t, env, member2, patient, 2)
	await(t, env.Karmada, bound, both(names(member2), leaves()))
	awaitGone(t, member(env, member1), patient)
}

func TestEvictionsAreNoFasterThanTheRate(t *testing.T) {
	env := alone(t)
	const rate, number = 4, 9
	evicting(t, env, func(of *programs.Evictions) { of.Rate = rate })
	namespace := env.Namespace(t)
	var templates []*corev1.ConfigMap
	for i := range number {
		template := configMap(namespace, fmt.Sprintf("paced-%d", i))
		env.Create(t, policyFor(t, oneOf(member1, member2), template), template)
		templates = append(templates, template)
	}
	for _, template := range templates {
		inMember(t, env, member1, template, exists)
	}
	began := time.Now()
	taint(t, env, member1)
	testenv.Eventually(t, "all are evicted", func(ctx context.Context) error {
		list := &workv1alpha2.ResourceBindingList{}
		if err := env.Karmada.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return err
		}
		took, gone := time.Since(began), 0
		for i := range list.Items {
			if names(member1)(&list.Items[i]) != nil {
				gone++
			}
		}
		if most := 1 + int(took.Seconds()*rate); gone > most {
			t.Fatalf("%d evictions within %s, want %d at most", gone, took, most)
		}
		return same("evicted", number, gone)
	})
	for _, template := range templates {
		inMember(t, env, member2, template, exists)
		awaitGone(t, member(env, member1), template)
	}
}

// leavingWhenIll is the wish to leave clusters in which the application is unhealthy.
func leavingWhenIll(mode policyv1alpha1.PurgeMode, tolerated int32) func(*policyv1alpha1.PropagationPolicy) {
	return func(p *policyv1alpha1.PropagationPolicy) {
		p.Spec.PropagateDeps = true
		p.Spec.Failover = &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{
			DecisionConditions: policyv1alpha1.DecisionConditions{TolerationSeconds: &tolerated}, PurgeMode: mode,
		}}
	}
}

func TestApplicationLeavesWhereItStaysUnhealthyAndNotWhereItRecovers(t *testing.T) {
	env := shared(t)
	// Long enough for a machine that is slow to roll out again what is ill, or what has
	// just come.
	const patience, soon = 30 * time.Second, 12
	flapping := serve(t, env, "flapping", oneOf(member1, member2), leavingWhenIll(policyv1alpha1.PurgeModeGracefully, int32(patience.Seconds())))
	failing := serve(t, env, "failing", oneOf(member1, member2), leavingWhenIll(policyv1alpha1.PurgeModeNever, soon))
	rollOut(t, env, member1, flapping, 1)
	ill := await(t, env.Karmada, bindingOf(t, flapping), healths(workv1alpha2.ResourceUnhealthy))
	since := time.Now()
	rollOut(t, env, member1, flapping, 2)
	await(t, env.Karmada, ill, healths(workv1alpha2.ResourceHealthy))

	// It would not stay in member2 either if it were not at once well there.
	rollsOut(t, env, member2, failing, 2)
	rollOut(t, env, member1, failing, 1)
	bound := await(t, env.Karmada, bindingOf(t, failing), both(names(member2), leaves(member1)))
	task := bound.Spec.GracefulEvictionTasks[0]
	if task.Producer != "resource-binding-application-failover-controller" || task.Reason != "ApplicationFailure" || task.SuppressDeletion == nil || !*task.SuppressDeletion {
		t.Errorf("task: %+v", task)
	}
	await(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) error {
		return condition(b.Status.Conditions, workv1alpha2.FullyApplied, metav1.ConditionTrue, "FullyAppliedSuccess", "")
	})
	stays(t, env, member1, failing)
	confirmEviction(t, env, bound)
	awaitGone(t, member(env, member1), failing)
	await(t, env.Karmada, bound, both(names(member2), leaves()))

	testenv.Holds(t, "where what recovered is", time.Until(since.Add(patience+quiet)), func(ctx context.Context) error {
		if err := env.Karmada.Get(ctx, client.ObjectKeyFromObject(ill), ill); err != nil {
			return err
		}
		return both(names(member1), leaves())(ill)
	})
}

// The components end again and again while clusters fail. Each workload is in some
// member at any time, and in the end where it belongs, once.
func TestNothingIsLostWhenTheComponentsEndInTheMiddleOfEvictions(t *testing.T) {
	env := alone(t)
	const number = 12
	evicting(t, env)
	namespace := env.Namespace(t)
	var templates []*corev1.ConfigMap
	for i := range number {
		templates = append(templates, configMap(namespace, fmt.Sprintf("moved-%02d", i)))
	}
	policy := &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "moved"},
		Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "ConfigMap"}}, Placement: oneOf(member1, member2),
		},
	}
	env.Create(t, policy)
	for _, template := range templates {
		env.Create(t, template)
	}
	for _, template := range templates {
		inMember(t, env, member1, template, exists)
	}
	somewhere := func(ctx context.Context) error {
		for _, template := range templates {
			if absent(ctx, member(env, member1), template) == nil && absent(ctx, member(env, member2), template) == nil {
				return fmt.Errorf("%s is nowhere", template.Name)
			}
		}
		return nil
	}
	taint(t, env, member1)
	for _, reached := range []func(*workv1alpha2.ResourceBinding) bool{
		// All of them may be further when somebody looks.
		func(b *workv1alpha2.ResourceBinding) bool {
			return len(b.Spec.GracefulEvictionTasks) > 0 || names(member1)(b) != nil
		},
		func(b *workv1alpha2.ResourceBinding) bool { return names(member2)(b) == nil },
		func(b *workv1alpha2.ResourceBinding) bool { return names(member2)(b) == nil && leaves()(b) == nil },
	} {
		testenv.Eventually(t, "a few have come so far", func(ctx context.Context) error {
			list := &workv1alpha2.ResourceBindingList{}
			if err := errors.Join(somewhere(ctx), env.Karmada.List(ctx, list, client.InNamespace(namespace))); err != nil {
				if strings.Contains(err.Error(), "nowhere") {
					t.Fatal(err)
				}
				return err
			}
			for i := range list.Items {
				if reached(&list.Items[i]) {
					return nil
				}
			}
			return errors.New("none")
		})
		restart(t, env)
	}
	for _, template := range templates {
		await(t, env.Karmada, bindingOf(t, template), both(names(member2), leaves()))
		inMember(t, env, member2, template, hasColor("blue"))
		awaitGone(t, member(env, member1), template)
		if err := somewhere(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
