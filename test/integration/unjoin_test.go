package integration

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/registration/push"
	"karmada.io/karmada/internal/testenv"
)

// joinMemberBehindProxy starts a member for one test, registers it behind a tcpProxy and
// propagates an object to it.
func joinMemberBehindProxy(t *testing.T, env *testenv.Env, name string) (memberCluster *testenv.Member, proxy *tcpProxy, template *corev1.ConfigMap) {
	t.Helper()
	memberCluster, err := testenv.StartMember(t.Context(), filepath.Join(t.TempDir(), name), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(memberCluster.Stop)
	proxy = newTCPProxy(t, memberCluster.Config.Host)
	if err := env.Register(t.Context(), name, memberCluster); err != nil {
		t.Fatal(err)
	}
	testenv.Update(t, env.Karmada, clusterNamed(name), func(c *clusterv1alpha1.Cluster) { c.Spec.APIEndpoint = proxy.URL() })
	template = configMap(env.Namespace(t), "delivered")
	env.Create(t, policyFor(t, placementOn(name), template), template)
	await(t, memberCluster.Client, template, exists)
	return memberCluster, proxy, template
}

// unjoin unjoins a cluster and returns how long it took.
func unjoin(t *testing.T, env *testenv.Env, name string, wait time.Duration, force bool) (duration time.Duration, err error) {
	t.Helper()
	began := clock.now()
	err = push.Unjoin{Name: name, Wait: wait, Force: force, Karmada: env.Config, Log: t.Logf}.Run(t.Context())
	return clock.since(began), err
}

// awaitUnregistered waits until the control plane has no objects of a cluster except its execution
// namespace. The namespace controller needs some seconds to delete this namespace.
func awaitUnregistered(t *testing.T, env *testenv.Env, name string) {
	t.Helper()
	if err := checkAbsent(context.WithoutCancel(t.Context()), env.Karmada, clusterNamed(name)); err != nil {
		t.Errorf("Cluster %s: %v", name, err)
	}
	testenv.Eventually(t, "no Works of "+name, func(ctx context.Context) error {
		works := &workv1alpha1.WorkList{}
		if err := env.Karmada.List(ctx, works, client.InNamespace(work.ExecutionNamespace(name))); err != nil {
			return err
		}
		return checkEqual("Works", 0, len(works.Items))
	})
	awaitGone(t, env.Karmada, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: name}})
}

func TestUnjoinDoesNotWaitForTheExecutionNamespace(t *testing.T) {
	env := joining(t)
	const name = "quick"
	memberCluster, _, template := joinMemberBehindProxy(t, env, name)
	blocking := configMap(work.ExecutionNamespace(name), "held")
	blocking.Finalizers = []string{"test.karmada.io/hold"}
	env.Create(t, blocking)
	t.Cleanup(func() {
		testenv.Update(t, env.Karmada, blocking, func(c *corev1.ConfigMap) { c.Finalizers = nil })
	})
	duration, err := unjoin(t, env, name, testenv.Patience, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the unjoin took %s", duration)
	await(t, env.Karmada, namespaceNamed(blocking.Namespace), exists)
	if err := checkAbsent(t.Context(), memberCluster.Client, template); err != nil {
		t.Errorf("the propagated object: %v", err)
	}
	awaitUnregistered(t, env, name)
}

func TestForcedUnjoinOfAHangingCluster(t *testing.T) {
	env := joining(t)
	const name, wait = "stuck", 2 * time.Second
	memberCluster, proxy, template := joinMemberBehindProxy(t, env, name)
	proxy.setPaused(true)
	_, err := unjoin(t, env, name, wait, false)
	if err == nil {
		t.Fatal("the unjoin succeeds although the member object cannot be withdrawn")
	}
	for _, part := range []string{"left, such as karmada-es-" + name + "/", "repeat with --force"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is missing in %q", part, err)
		}
	}
	duration, err := unjoin(t, env, name, wait, true)
	if err != nil {
		t.Fatal(err)
	}
	if duration > wait+maxDeliveryTime {
		t.Errorf("the unjoin took %s", duration)
	}
	awaitUnregistered(t, env, name)
	proxy.setPaused(false)
	await(t, memberCluster.Client, template, exists)
}

func TestUnjoinOfAClusterThatWasNeverReachable(t *testing.T) {
	env := joining(t)
	const name = "never"
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := "https://" + closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: name},
		Data:       map[string][]byte{clusterv1alpha1.SecretTokenKey: []byte("token")},
	}
	dead := clusterNamed(name)
	dead.Spec = clusterv1alpha1.ClusterSpec{
		SyncMode: clusterv1alpha1.Push, APIEndpoint: address,
		SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: secret.Namespace, Name: secret.Name},
	}
	env.Create(t, secret, dead)
	await(t, env.Karmada, clusterNamed(name), func(c *clusterv1alpha1.Cluster) error {
		return checkCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady, metav1.ConditionFalse, "ClusterNotReachable", "")
	})
	await(t, env.Karmada, namespaceNamed(work.ExecutionNamespace(name)), exists)
	env.Create(t, &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: work.ExecutionNamespace(name), Name: "left", Finalizers: []string{workv1alpha1.ExecutionFinalizer},
	}})
	// Without the Secret no controller can reach the member.
	deleteObject(t, env.Karmada, secret)
	duration, err := unjoin(t, env, name, testenv.Patience, false)
	if err != nil {
		t.Fatal(err)
	}
	if duration > maxDeliveryTime {
		t.Errorf("the unjoin took %s", duration)
	}
	awaitUnregistered(t, env, name)
}

func TestForcedUnjoinWithoutControllers(t *testing.T) {
	env := alone(t)
	const name = "orphan"
	memberCluster, _, template := joinMemberBehindProxy(t, env, name)
	if err := env.StopComponents(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.StartComponents(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
		awaitUnregistered(t, env, name)
	})
	_, err := unjoin(t, env, name, time.Second, false)
	if err == nil || !strings.Contains(err.Error(), "no controller has taken it up") {
		t.Errorf("the error is %v", err)
	}
	if _, err := unjoin(t, env, name, time.Second, true); err != nil {
		t.Fatal(err)
	}
	await(t, memberCluster.Client, template, exists)
}

// awaitUnscheduled waits until the condition Scheduled of a binding is False with the reason
// and with a message that contains the parts.
func awaitUnscheduled(t *testing.T, env *testenv.Env, rb *workv1alpha2.ResourceBinding, reason string, parts ...string) {
	t.Helper()
	await(t, env.Karmada, rb, func(b *workv1alpha2.ResourceBinding) error {
		scheduled := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.Scheduled)
		if scheduled == nil || scheduled.Status != metav1.ConditionFalse || scheduled.Reason != reason {
			return fmt.Errorf("the condition Scheduled is %+v", scheduled)
		}
		for _, part := range parts {
			if !strings.Contains(scheduled.Message, part) {
				return fmt.Errorf("%q is missing in %q", part, scheduled.Message)
			}
		}
		return nil
	})
}

// An unjoined cluster is removed even from bindings that the scheduler cannot reschedule: one whose
// policy is deleted, and one whose spread constraint requires more clusters than exist.
func TestUnjoinRemovesTheClusterFromBindingsThatCannotBeRescheduled(t *testing.T) {
	env := joining(t)
	const name = "outgoing"
	joinMemberBehindProxy(t, env, name)
	namespace := env.Namespace(t)
	orphan, spread := deployment(namespace, "orphan", 4), deployment(namespace, "spread", 4)
	even := placementOn(member1, name)
	even.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided, ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
	}
	deletedPolicy := policyFor(t, even, orphan)
	two := placementOn(member1, name)
	two.SpreadConstraints = []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 2, MaxGroups: 2}}
	env.Create(t, deletedPolicy, policyFor(t, two, spread), orphan, spread)
	for _, template := range []*appsv1.Deployment{orphan, spread} {
		await(t, env.Karmada, bindingOf(t, template), hasClusters(member1, name))
		awaitInMember(t, env, member1, template, exists)
	}
	deleteObject(t, env.Karmada, deletedPolicy)
	await(t, env.Karmada, bindingOf(t, orphan), func(b *workv1alpha2.ResourceBinding) error {
		return checkEqual("labels of the policy", "", b.Labels[policyv1alpha1.PropagationPolicyPermanentIDLabel])
	})

	if _, err := unjoin(t, env, name, testenv.Patience, false); err != nil {
		t.Fatal(err)
	}
	awaitUnscheduled(t, env, bindingOf(t, orphan), "ClusterRemoved", "cluster "+name, "no policy claims its object", "2 of 4 replicas are placed: {"+member1+":2}")
	awaitUnscheduled(t, env, bindingOf(t, spread), "SchedulerError", "2 clusters wanted, 1 feasible ("+member1+")")
	awaitEvent(t, env, orphan, corev1.EventTypeNormal, "ClusterRemoved")
	awaitEvent(t, env, spread, corev1.EventTypeWarning, "ScheduleBindingFailed")
	for _, template := range []*appsv1.Deployment{orphan, spread} {
		await(t, env.Karmada, bindingOf(t, template), hasClusters(member1))
		awaitInMember(t, env, member1, template, exists)
	}
	awaitUnregistered(t, env, name)
}
