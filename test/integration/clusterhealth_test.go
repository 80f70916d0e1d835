package integration

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/testenv"
)

const (
	notReady    = "cluster.karmada.io/not-ready:NoSchedule"
	unreachable = "cluster.karmada.io/unreachable:NoSchedule"
)

// answering compares what was seen while Ready says something else; an empty status
// is nothing.
func answering(status metav1.ConditionStatus, reason string) func(*clusterv1alpha1.Cluster) error {
	return func(c *clusterv1alpha1.Cluster) error {
		if found := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionAnswering); found != nil {
			return same("Answering", []string{string(status), reason}, []string{string(found.Status), found.Reason})
		}
		return same("Answering", status, metav1.ConditionStatus(""))
	}
}

func all(checks ...func(*clusterv1alpha1.Cluster) error) func(*clusterv1alpha1.Cluster) error {
	return func(c *clusterv1alpha1.Cluster) error {
		var errs []error
		for _, check := range checks {
			errs = append(errs, check(c))
		}
		return errors.Join(errs...)
	}
}

func transition(c *clusterv1alpha1.Cluster, kind string) time.Time {
	if found := meta.FindStatusCondition(c.Status.Conditions, kind); found != nil {
		return found.LastTransitionTime.Time
	}
	return time.Time{}
}

func TestReadyFollowsTheMemberWhenWhatIsSeenLastsEvenOverARestart(t *testing.T) {
	env := alone(t)
	const threshold, lasting = 3 * time.Second, time.Hour
	withSettings(t, env, "", impatient(lasting, threshold))
	f := newFlaky(t, env, "flapping")
	cluster, seen := clusterNamed(f.name), record(t, env, f.name)
	before := seen.then(t, "ready", all(readyIs(metav1.ConditionTrue), taintedBy()))

	f.become(unwell)
	seen.then(t, "ready, and was not when it was asked", all(readyIs(metav1.ConditionTrue), answering(metav1.ConditionFalse, "ClusterNotReady")))
	after := seen.then(t, "ready all the same", all(readyIs(metav1.ConditionTrue), answering("", "")))
	if err := same("since when it is ready", transition(before, "Ready"), transition(after, "Ready")); err != nil {
		t.Errorf("a failure that did not last: %v", err)
	}

	f.become(lost)
	first := seen.then(t, "not reached", answering(metav1.ConditionFalse, "ClusterNotReachable"))
	failed := seen.then(t, "not ready", all(readyIs(metav1.ConditionFalse), answering("", "")))
	if lasted := transition(failed, "Ready").Sub(transition(first, clusterv1alpha1.ClusterConditionAnswering)); lasted < threshold {
		t.Errorf("not ready %s after it was first seen failing", lasted)
	}
	await(t, env.Karmada, cluster, taintedBy(notReady))

	f.become(well)
	await(t, env.Karmada, cluster, all(readyIs(metav1.ConditionFalse), answering(metav1.ConditionTrue, "ClusterReady")))
	if err := env.StopComponents(); err != nil {
		t.Fatal(err)
	}
	// Nobody but a process that has died since has seen that it lasted.
	answers := metav1.Condition{
		Type: clusterv1alpha1.ClusterConditionAnswering, Status: metav1.ConditionTrue, Reason: "ClusterReady", Message: "seen long ago",
		LastTransitionTime: metav1.NewTime(time.Now().Add(-lasting)),
	}
	testenv.Eventually(t, "what was seen long ago", func(ctx context.Context) error {
		if err := env.Karmada.Get(ctx, client.ObjectKeyFromObject(cluster), cluster); err != nil {
			return err
		}
		meta.RemoveStatusCondition(&cluster.Status.Conditions, answers.Type)
		meta.SetStatusCondition(&cluster.Status.Conditions, answers)
		return env.Karmada.Status().Update(ctx, cluster)
	})
	if err := env.StartComponents(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, env.Karmada, cluster, all(readyIs(metav1.ConditionTrue), answering("", ""), taintedBy()))
}

// The condition of a member that is back waits whether that lasts; what waits for
// the member does not.
func TestWhatWaitsForAMemberIsDeliveredBeforeItCountsAsReady(t *testing.T) {
	env := alone(t)
	withSettings(t, env, "", impatient(time.Hour, time.Second))
	f := newFlaky(t, env, "returning")
	there := configMap(env.Namespace(t), "there")
	env.Create(t, policyFor(t, on(f.name), there), there)
	await(t, f.Client, there, hasColor("blue"))

	f.become(lost)
	await(t, env.Karmada, clusterNamed(f.name), all(readyIs(metav1.ConditionFalse), taintedBy(notReady)))
	testenv.Update(t, env.Karmada, there, func(c *corev1.ConfigMap) { c.Data["color"] = "green" })
	await(t, env.Karmada, workOf(t, f.name, there), func(w *workv1alpha1.Work) error {
		manifest, err := manifestOf(w)
		if err != nil {
			return err
		}
		return same("color", map[string]any{"color": "green"}, manifest.Object["data"])
	})
	f.become(well)
	opened := time.Now()
	await(t, f.Client, there, hasColor("green"))
	t.Logf("delivered %s after the member was back", time.Since(opened))
	// What happens in the member is seen as well.
	deleteObject(t, f.Client, there)
	await(t, f.Client, there, hasColor("green"))
	await(t, env.Karmada, clusterNamed(f.name), all(readyIs(metav1.ConditionFalse), answering(metav1.ConditionTrue, "ClusterReady")))
}

// reporter reports for a cluster in pull mode by a clock of its own.
type reporter struct {
	env  *testenv.Env
	name string
	skew time.Duration
	stop context.CancelFunc
	done sync.WaitGroup
}

// report renews the Lease, and says that the cluster is ready, until the agent is
// stopped.
func (a *reporter) report(t *testing.T) {
	t.Helper()
	if err := client.IgnoreAlreadyExists(a.env.Karmada.Create(t.Context(), a.lease())); err != nil {
		t.Fatal(err)
	}
	cleanUp(t, a.env, a.lease())
	var ctx context.Context
	ctx, a.stop = context.WithCancel(t.Context())
	a.done.Go(func() {
		ticker := time.NewTicker(200 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			renewed := fmt.Sprintf(`{"spec":{"renewTime":%q}}`, time.Now().Add(a.skew).UTC().Format("2006-01-02T15:04:05.000000Z"))
			err := a.env.Karmada.Patch(ctx, a.lease(), client.RawPatch("application/merge-patch+json", []byte(renewed)))
			if err = errors.Join(err, says(ctx, a.env, a.name, reportsReady)); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) {
				t.Errorf("reporting: %v", err)
				return
			}
		}
	})
}

func (a *reporter) lease() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: a.name}}
}

// heard is when the agent was heard of last.
func (a *reporter) heard(ctx context.Context) (time.Time, error) {
	lease := a.lease()
	if err := a.env.Karmada.Get(ctx, client.ObjectKeyFromObject(lease), lease); err != nil {
		return time.Time{}, err
	}
	return lease.Spec.RenewTime.Add(-a.skew), nil
}

func (a *reporter) die() {
	a.stop()
	a.done.Wait()
}

// report sets the conditions of a cluster, as its agent does.
func report(t testing.TB, env *testenv.Env, name string, conditions ...metav1.Condition) {
	t.Helper()
	testenv.Eventually(t, "report of "+name, func(ctx context.Context) error { return says(ctx, env, name, conditions...) })
}

// says writes conditions of a cluster that are others.
func says(ctx context.Context, env *testenv.Env, name string, conditions ...metav1.Condition) error {
	cluster, changed := clusterNamed(name), false
	if err := env.Karmada.Get(ctx, client.ObjectKeyFromObject(cluster), cluster); err != nil {
		return err
	}
	for _, condition := range conditions {
		changed = meta.SetStatusCondition(&cluster.Status.Conditions, condition) || changed
	}
	if !changed {
		return nil
	}
	return env.Karmada.Status().Update(ctx, cluster)
}

// inPullMode registers a cluster in pull mode that is removed with the test.
func inPullMode(t *testing.T, env *testenv.Env, name string) *clusterv1alpha1.Cluster {
	t.Helper()
	cluster := clusterNamed(name)
	cluster.Spec = clusterv1alpha1.ClusterSpec{ID: uuid.NewString(), SyncMode: clusterv1alpha1.Pull}
	removeWithTest(t, env, name)
	env.Create(t, cluster)
	return cluster
}

var (
	reportsReady = metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue, Reason: "ClusterReady", Message: "healthy"}
	reportsLost  = metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, Reason: "ClusterNotReachable", Message: "lost"}
)

func TestAClusterWhoseAgentFallsSilentIsUnknownUntilItReportsAgain(t *testing.T) {
	env := alone(t)
	const grace = 3 * time.Second
	withSettings(t, env, "", func(s *programs.Settings) {
		s.Controllers.Monitor.Period = 200 * time.Millisecond
		s.Controllers.Monitor.Grace.Period, s.Controllers.Monitor.Grace.Startup = grace, grace
	})
	seen := record(t, env, "silent")
	cluster := inPullMode(t, env, "silent")
	seen.then(t, "not ready", taintedBy(notReady))
	await(t, env.Karmada, cluster, all(taintedBy(unreachable), func(c *clusterv1alpha1.Cluster) error {
		return condition(c.Status.Conditions, "Ready", metav1.ConditionUnknown, "ClusterStatusNeverUpdated", "Cluster status controller never posted cluster status.")
	}))

	reporting := &reporter{env: env, name: cluster.Name, skew: -5 * time.Minute}
	reporting.report(t)
	undisturbed(t, "a cluster that renews its Lease", func() error {
		await(t, env.Karmada, cluster, all(readyIs(metav1.ConditionTrue), taintedBy()))
		return testenv.Held(t.Context(), 2*grace, func(ctx context.Context) error {
			if err := env.Karmada.Get(ctx, client.ObjectKeyFromObject(cluster), cluster); err != nil {
				return err
			}
			return readyIs(metav1.ConditionTrue)(cluster)
		})
	})

	reporting.die()
	heard, err := reporting.heard(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	await(t, env.Karmada, cluster, all(taintedBy(unreachable), func(c *clusterv1alpha1.Cluster) error {
		// Times of conditions are of whole seconds.
		if took := transition(c, "Ready").Sub(heard); took < grace-time.Second {
			return fmt.Errorf("unknown %s after it was heard of, with a grace of %s", took, grace)
		}
		return condition(c.Status.Conditions, "Ready", metav1.ConditionUnknown, "ClusterStatusUnknown", "Cluster status controller stopped posting cluster status.")
	}))

	back := &reporter{env: env, name: cluster.Name, skew: 5 * time.Minute}
	back.report(t)
	t.Cleanup(back.die)
	await(t, env.Karmada, cluster, all(readyIs(metav1.ConditionTrue), taintedBy()))
}

func TestAClusterThatIsLostCanLeave(t *testing.T) {
	env := alone(t)
	withSettings(t, env, "", impatient(time.Second, time.Second))

	t.Run("in push mode, and its objects stay", func(t *testing.T) {
		f := newFlaky(t, env, "dead")
		kept := configMap(env.Namespace(t), "kept")
		env.Create(t, policyFor(t, on(f.name), kept), kept)
		await(t, f.Client, kept, exists)
		f.become(lost)
		// It does not even have to be known that it is lost.
		deleteObject(t, env.Karmada, clusterNamed(f.name))
		awaitGone(t, env.Karmada, clusterNamed(f.name))
		await(t, f.Client, kept, hasColor("blue"))
	})

	t.Run("in pull mode", func(t *testing.T) {
		cluster := inPullMode(t, env, "agentless")
		space := work.ExecutionNamespace(cluster.Name)
		await(t, env.Karmada, namespaceNamed(space), exists)
		left := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
			Namespace: space, Name: "left", Finalizers: []string{workv1alpha1.ExecutionFinalizer},
		}}
		env.Create(t, left)
		deleteObject(t, env.Karmada, cluster)
		awaitGone(t, env.Karmada, cluster)
	})

	t.Run("not while a scheduler of others keeps a binding there", func(t *testing.T) {
		cluster := inPullMode(t, env, "wanted")
		await(t, env.Karmada, cluster, taintedBy(notReady))
		template := configMap(env.Namespace(t), "foreign")
		policy := policyFor(t, on(cluster.Name), template)
		policy.Spec.SchedulerName = "somebody-else"
		env.Create(t, policy, template)
		bound := await(t, env.Karmada, bindingOf(t, template), exists)
		testenv.Update(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: cluster.Name}}
		})
		await(t, env.Karmada, workOf(t, cluster.Name, template), exists)
		deleteObject(t, env.Karmada, cluster)
		awaitGone(t, env.Karmada, workOf(t, cluster.Name, template))
		testenv.Holds(t, "the cluster that is wanted", 2*quiet, func(ctx context.Context) error {
			return env.Karmada.Get(ctx, client.ObjectKeyFromObject(cluster), clusterNamed(cluster.Name))
		})
		testenv.Update(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = nil })
		awaitGone(t, env.Karmada, cluster)
	})
}
