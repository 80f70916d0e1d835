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
	"karmada.io/karmada/internal/programs/controllermanager"
	"karmada.io/karmada/internal/testenv"
)

const (
	notReadyTaint    = "cluster.karmada.io/not-ready:NoSchedule"
	unreachableTaint = "cluster.karmada.io/unreachable:NoSchedule"
)

// hasRespondingCondition checks the condition Responding, which a Cluster has while a probe differs
// from its condition Ready. With an empty status the condition must be absent.
func hasRespondingCondition(status metav1.ConditionStatus, reason string) func(*clusterv1alpha1.Cluster) error {
	return func(c *clusterv1alpha1.Cluster) error {
		if responding := meta.FindStatusCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionResponding); responding != nil {
			return checkEqual("Responding", []string{string(status), reason}, []string{string(responding.Status), responding.Reason})
		}
		return checkEqual("Responding", status, metav1.ConditionStatus(""))
	}
}

// allChecks joins the errors of several checks.
func allChecks(checks ...func(*clusterv1alpha1.Cluster) error) func(*clusterv1alpha1.Cluster) error {
	return func(c *clusterv1alpha1.Cluster) error {
		var errs []error
		for _, check := range checks {
			errs = append(errs, check(c))
		}
		return errors.Join(errs...)
	}
}

// lastTransition returns the last transition time of a condition, or the zero time.
func lastTransition(c *clusterv1alpha1.Cluster, kind string) time.Time {
	if found := meta.FindStatusCondition(c.Status.Conditions, kind); found != nil {
		return found.LastTransitionTime.Time
	}
	return time.Time{}
}

func TestReadyConditionIsDebouncedAcrossRestart(t *testing.T) {
	env := alone(t)
	const failureThreshold, successThreshold = 3 * time.Second, time.Hour
	withSettings(t, env, "", fastClusterStatus(successThreshold, failureThreshold))
	f := newFlakyMember(t, env, "flapping")
	cluster, recorder := clusterNamed(f.name), recordCluster(t, env, f.name)
	before := recorder.awaitVersion(t, "ready", allChecks(hasReadyStatus(metav1.ConditionTrue), hasTaints()))

	f.setMode(respondUnhealthyOnce)
	recorder.awaitVersion(t, "ready, although a probe failed", allChecks(hasReadyStatus(metav1.ConditionTrue), hasRespondingCondition(metav1.ConditionFalse, "ClusterNotReady")))
	after := recorder.awaitVersion(t, "ready after a short failure", allChecks(hasReadyStatus(metav1.ConditionTrue), hasRespondingCondition("", "")))
	if err := checkEqual("last transition of Ready", lastTransition(before, "Ready"), lastTransition(after, "Ready")); err != nil {
		t.Errorf("after a short failure: %v", err)
	}

	f.setMode(dropConnections)
	firstFailure := recorder.awaitVersion(t, "a failed probe", hasRespondingCondition(metav1.ConditionFalse, "ClusterNotReachable"))
	failed := recorder.awaitVersion(t, "not ready", allChecks(hasReadyStatus(metav1.ConditionFalse), hasRespondingCondition("", "")))
	if lasted := lastTransition(failed, "Ready").Sub(lastTransition(firstFailure, clusterv1alpha1.ClusterConditionResponding)); lasted < failureThreshold {
		t.Errorf("not ready %s after the first failed probe", lasted)
	}
	await(t, env.Karmada, cluster, hasTaints(notReadyTaint))

	f.setMode(respondNormally)
	await(t, env.Karmada, cluster, allChecks(hasReadyStatus(metav1.ConditionFalse), hasRespondingCondition(metav1.ConditionTrue, "ClusterReady")))
	if err := env.StopComponents(); err != nil {
		t.Fatal(err)
	}
	// The condition is older than the success threshold, but only the stopped process has observed
	// the probes since then.
	oldResponding := metav1.Condition{
		Type: clusterv1alpha1.ClusterConditionResponding, Status: metav1.ConditionTrue, Reason: "ClusterReady", Message: "old probe",
		LastTransitionTime: metav1.NewTime(time.Now().Add(-successThreshold)),
	}
	testenv.Eventually(t, "condition of an old probe", func(ctx context.Context) error {
		if err := env.Karmada.Get(ctx, client.ObjectKeyFromObject(cluster), cluster); err != nil {
			return err
		}
		meta.RemoveStatusCondition(&cluster.Status.Conditions, oldResponding.Type)
		meta.SetStatusCondition(&cluster.Status.Conditions, oldResponding)
		return env.Karmada.Status().Update(ctx, cluster)
	})
	if err := env.StartComponents(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, env.Karmada, cluster, allChecks(hasReadyStatus(metav1.ConditionTrue), hasRespondingCondition("", ""), hasTaints()))
}

// The condition Ready of a recovered member changes only after the success threshold. Changes
// that wait for the member are delivered at once.
func TestPendingChangesAreDeliveredBeforeMemberIsReady(t *testing.T) {
	env := alone(t)
	withSettings(t, env, "", fastClusterStatus(time.Hour, time.Second))
	f := newFlakyMember(t, env, "returning")
	template := configMap(env.Namespace(t), "there")
	env.Create(t, policyFor(t, placementOn(f.name), template), template)
	await(t, f.Client, template, hasColor("blue"))

	f.setMode(dropConnections)
	await(t, env.Karmada, clusterNamed(f.name), allChecks(hasReadyStatus(metav1.ConditionFalse), hasTaints(notReadyTaint)))
	testenv.Update(t, env.Karmada, template, func(c *corev1.ConfigMap) { c.Data["color"] = "green" })
	await(t, env.Karmada, workOf(t, f.name, template), func(w *workv1alpha1.Work) error {
		manifest, err := manifestOf(w)
		if err != nil {
			return err
		}
		return checkEqual("color", map[string]any{"color": "green"}, manifest.Object["data"])
	})
	f.setMode(respondNormally)
	recoveredAt := time.Now()
	await(t, f.Client, template, hasColor("green"))
	t.Logf("delivered %s after the recovery of the member", time.Since(recoveredAt))
	// Karmada also observes changes in a member that is not Ready yet.
	deleteObject(t, f.Client, template)
	await(t, f.Client, template, hasColor("green"))
	await(t, env.Karmada, clusterNamed(f.name), allChecks(hasReadyStatus(metav1.ConditionFalse), hasRespondingCondition(metav1.ConditionTrue, "ClusterReady")))
}

// fakeAgent reports for a cluster in pull mode with its own clock, which differs from the clock of
// the control plane by clockSkew.
type fakeAgent struct {
	env       *testenv.Env
	name      string
	clockSkew time.Duration
	cancel    context.CancelFunc
	done      sync.WaitGroup
}

// start renews the Lease and reports the cluster as ready until stop is called.
func (f *fakeAgent) start(t *testing.T) {
	t.Helper()
	if err := client.IgnoreAlreadyExists(f.env.Karmada.Create(t.Context(), f.lease())); err != nil {
		t.Fatal(err)
	}
	cleanUp(t, f.env, f.lease())
	var ctx context.Context
	ctx, f.cancel = context.WithCancel(t.Context())
	f.done.Go(func() {
		ticker := time.NewTicker(200 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			renewed := fmt.Sprintf(`{"spec":{"renewTime":%q}}`, time.Now().Add(f.clockSkew).UTC().Format("2006-01-02T15:04:05.000000Z"))
			err := f.env.Karmada.Patch(ctx, f.lease(), client.RawPatch("application/merge-patch+json", []byte(renewed)))
			if err = errors.Join(err, updateConditions(ctx, f.env, f.name, readyCondition)); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) {
				t.Errorf("sending a heartbeat: %v", err)
				return
			}
		}
	})
}

func (f *fakeAgent) lease() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: f.name}}
}

// lastHeartbeat returns the time of the last heartbeat by the clock of the control plane.
func (f *fakeAgent) lastHeartbeat(ctx context.Context) (time.Time, error) {
	lease := f.lease()
	if err := f.env.Karmada.Get(ctx, client.ObjectKeyFromObject(lease), lease); err != nil {
		return time.Time{}, err
	}
	return lease.Spec.RenewTime.Add(-f.clockSkew), nil
}

// stop stops the heartbeats and returns when the last heartbeat is written.
func (f *fakeAgent) stop() {
	f.cancel()
	f.done.Wait()
}

// reportConditions sets conditions of a Cluster as the agent of the cluster does, and retries after
// errors.
func reportConditions(t testing.TB, env *testenv.Env, name string, conditions ...metav1.Condition) {
	t.Helper()
	testenv.Eventually(t, "report of "+name, func(ctx context.Context) error { return updateConditions(ctx, env, name, conditions...) })
}

// updateConditions writes the conditions of a Cluster if they have changed.
func updateConditions(ctx context.Context, env *testenv.Env, name string, conditions ...metav1.Condition) error {
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

// createPullCluster creates a Cluster in pull mode, which is removed at the end of the test.
func createPullCluster(t *testing.T, env *testenv.Env, name string) *clusterv1alpha1.Cluster {
	t.Helper()
	cluster := clusterNamed(name)
	cluster.Spec = clusterv1alpha1.ClusterSpec{ID: uuid.NewString(), SyncMode: clusterv1alpha1.Pull}
	deleteClusterAfterTest(t, env, name)
	env.Create(t, cluster)
	return cluster
}

var (
	readyCondition = metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionTrue, Reason: "ClusterReady", Message: "healthy"}
	lostCondition  = metav1.Condition{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, Reason: "ClusterNotReachable", Message: "lost"}
)

func TestClusterWithoutHeartbeatBecomesUnknown(t *testing.T) {
	env := alone(t)
	const grace = 3 * time.Second
	withSettings(t, env, "", func(s *controllermanager.Options) {
		s.Monitor.Period = 200 * time.Millisecond
		s.Monitor.Grace.Period, s.Monitor.Grace.Startup = grace, grace
	})
	recorder := recordCluster(t, env, "silent")
	cluster := createPullCluster(t, env, "silent")
	recorder.awaitVersion(t, "not ready", hasTaints(notReadyTaint))
	await(t, env.Karmada, cluster, allChecks(hasTaints(unreachableTaint), func(c *clusterv1alpha1.Cluster) error {
		return checkCondition(c.Status.Conditions, "Ready", metav1.ConditionUnknown, "ClusterStatusNeverUpdated", "Cluster status controller never posted cluster status.")
	}))

	agent := &fakeAgent{env: env, name: cluster.Name, clockSkew: -5 * time.Minute}
	agent.start(t)
	retryAfterStall(t, "a cluster with heartbeats stays ready", func() error {
		await(t, env.Karmada, cluster, allChecks(hasReadyStatus(metav1.ConditionTrue), hasTaints()))
		return testenv.Held(t.Context(), 2*grace, func(ctx context.Context) error {
			if err := env.Karmada.Get(ctx, client.ObjectKeyFromObject(cluster), cluster); err != nil {
				return err
			}
			return hasReadyStatus(metav1.ConditionTrue)(cluster)
		})
	})

	agent.stop()
	lastHeartbeat, err := agent.lastHeartbeat(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	await(t, env.Karmada, cluster, allChecks(hasTaints(unreachableTaint), func(c *clusterv1alpha1.Cluster) error {
		// Times in conditions have a precision of one second.
		if took := lastTransition(c, "Ready").Sub(lastHeartbeat); took < grace-time.Second {
			return fmt.Errorf("unknown %s after the last heartbeat, with a grace period of %s", took, grace)
		}
		return checkCondition(c.Status.Conditions, "Ready", metav1.ConditionUnknown, "ClusterStatusUnknown", "Cluster status controller stopped posting cluster status.")
	}))

	restartedAgent := &fakeAgent{env: env, name: cluster.Name, clockSkew: 5 * time.Minute}
	restartedAgent.start(t)
	t.Cleanup(restartedAgent.stop)
	await(t, env.Karmada, cluster, allChecks(hasReadyStatus(metav1.ConditionTrue), hasTaints()))
}

func TestUnreachableClusterCanBeDeleted(t *testing.T) {
	env := alone(t)
	withSettings(t, env, "", fastClusterStatus(time.Second, time.Second))

	t.Run("in push mode its member objects stay", func(t *testing.T) {
		f := newFlakyMember(t, env, "dead")
		template := configMap(env.Namespace(t), "kept")
		env.Create(t, policyFor(t, placementOn(f.name), template), template)
		await(t, f.Client, template, exists)
		f.setMode(dropConnections)
		// Delete the Cluster without waiting until the control plane notices that the member is
		// lost.
		deleteObject(t, env.Karmada, clusterNamed(f.name))
		awaitGone(t, env.Karmada, clusterNamed(f.name))
		await(t, f.Client, template, hasColor("blue"))
	})

	t.Run("in pull mode", func(t *testing.T) {
		cluster := createPullCluster(t, env, "agentless")
		executionNamespace := work.ExecutionNamespace(cluster.Name)
		await(t, env.Karmada, namespaceNamed(executionNamespace), exists)
		remainingWork := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
			Namespace: executionNamespace, Name: "left", Finalizers: []string{workv1alpha1.ExecutionFinalizer},
		}}
		env.Create(t, remainingWork)
		deleteObject(t, env.Karmada, cluster)
		awaitGone(t, env.Karmada, cluster)
	})

	t.Run("not while another scheduler binds a template to it", func(t *testing.T) {
		cluster := createPullCluster(t, env, "wanted")
		await(t, env.Karmada, cluster, hasTaints(notReadyTaint))
		template := configMap(env.Namespace(t), "foreign")
		policy := policyFor(t, placementOn(cluster.Name), template)
		policy.Spec.SchedulerName = "somebody-else"
		env.Create(t, policy, template)
		bound := await(t, env.Karmada, bindingOf(t, template), exists)
		testenv.Update(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: cluster.Name}}
		})
		await(t, env.Karmada, workOf(t, cluster.Name, template), exists)
		deleteObject(t, env.Karmada, cluster)
		awaitGone(t, env.Karmada, workOf(t, cluster.Name, template))
		testenv.Holds(t, "the cluster is not removed", 2*quietPeriod, func(ctx context.Context) error {
			return env.Karmada.Get(ctx, client.ObjectKeyFromObject(cluster), clusterNamed(cluster.Name))
		})
		testenv.Update(t, env.Karmada, bound, func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = nil })
		awaitGone(t, env.Karmada, cluster)
	})
}
