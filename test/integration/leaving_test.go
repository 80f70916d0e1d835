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

// guest starts a member that a test may do with what it likes, registers it behind
// a gate, and has an object delivered to it.
func guest(t *testing.T, env *testenv.Env, name string) (inside *testenv.Member, between *gate, template *corev1.ConfigMap) {
	t.Helper()
	inside, err := testenv.StartMember(t.Context(), filepath.Join(t.TempDir(), name), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(inside.Stop)
	between = newGate(t, inside.Config.Host)
	if err := env.Register(t.Context(), name, inside); err != nil {
		t.Fatal(err)
	}
	testenv.Update(t, env.Karmada, clusterNamed(name), func(c *clusterv1alpha1.Cluster) { c.Spec.APIEndpoint = between.URL() })
	template = configMap(env.Namespace(t), "delivered")
	env.Create(t, policyFor(t, on(name), template), template)
	await(t, inside.Client, template, exists)
	return inside, between, template
}

// unjoin takes a cluster out of the control plane and returns how long it took.
func unjoin(t *testing.T, env *testenv.Env, name string, wait time.Duration, force bool) (took time.Duration, err error) {
	t.Helper()
	began := clock.now()
	err = push.Unjoin{Name: name, Wait: wait, Force: force, Karmada: env.Config, Log: t.Logf}.Run(t.Context())
	return clock.since(began), err
}

// forgotten waits until nothing of a cluster is left in the control plane but its
// namespace, which takes seconds to find out that it is empty.
func forgotten(t *testing.T, env *testenv.Env, name string) {
	t.Helper()
	if err := absent(context.WithoutCancel(t.Context()), env.Karmada, clusterNamed(name)); err != nil {
		t.Errorf("Cluster %s: %v", name, err)
	}
	testenv.Eventually(t, "no Works of "+name, func(ctx context.Context) error {
		works := &workv1alpha1.WorkList{}
		if err := env.Karmada.List(ctx, works, client.InNamespace(work.ExecutionNamespace(name))); err != nil {
			return err
		}
		return same("Works", 0, len(works.Items))
	})
	awaitGone(t, env.Karmada, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: name}})
}

func TestAClusterThatIsWellIsUnjoinedBeforeItsNamespaceIsGone(t *testing.T) {
	env := alone(t)
	const name = "quick"
	inside, _, template := guest(t, env, name)
	held := configMap(work.ExecutionNamespace(name), "held")
	held.Finalizers = []string{"test.karmada.io/hold"}
	env.Create(t, held)
	t.Cleanup(func() {
		testenv.Update(t, env.Karmada, held, func(c *corev1.ConfigMap) { c.Finalizers = nil })
	})
	took, err := unjoin(t, env, name, testenv.Patience, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("it took %s", took)
	await(t, env.Karmada, namespaceNamed(held.Namespace), exists)
	if err := absent(t.Context(), inside.Client, template); err != nil {
		t.Errorf("what was delivered: %v", err)
	}
	forgotten(t, env, name)
}

func TestAClusterThatHangsIsUnjoinedByForceInTime(t *testing.T) {
	env := alone(t)
	const name, wait = "stuck", 2 * time.Second
	inside, between, template := guest(t, env, name)
	between.set(true)
	_, err := unjoin(t, env, name, wait, false)
	if err == nil {
		t.Fatal("it is unjoined although its object could not be taken out")
	}
	for _, part := range []string{"left, such as karmada-es-" + name + "/", "repeat with --force"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is missing in %q", part, err)
		}
	}
	took, err := unjoin(t, env, name, wait, true)
	if err != nil {
		t.Fatal(err)
	}
	if took > wait+promptly {
		t.Errorf("it took %s", took)
	}
	forgotten(t, env, name)
	between.set(false)
	await(t, inside.Client, template, exists)
}

func TestAClusterThatNeverAnsweredIsUnjoined(t *testing.T) {
	env := alone(t)
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
		return condition(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady, metav1.ConditionFalse, "ClusterNotReachable", "")
	})
	await(t, env.Karmada, namespaceNamed(work.ExecutionNamespace(name)), exists)
	env.Create(t, &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: work.ExecutionNamespace(name), Name: "left", Finalizers: []string{workv1alpha1.ExecutionFinalizer},
	}})
	// Without its Secret nobody could even try.
	deleteObject(t, env.Karmada, secret)
	took, err := unjoin(t, env, name, testenv.Patience, false)
	if err != nil {
		t.Fatal(err)
	}
	if took > promptly {
		t.Errorf("it took %s", took)
	}
	forgotten(t, env, name)
}

func TestAClusterIsUnjoinedByForceWithoutControllers(t *testing.T) {
	env := alone(t)
	const name = "orphan"
	inside, _, template := guest(t, env, name)
	if err := env.StopComponents(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.StartComponents(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
		forgotten(t, env, name)
	})
	_, err := unjoin(t, env, name, time.Second, false)
	if err == nil || !strings.Contains(err.Error(), "no controller has taken it up") {
		t.Errorf("the answer is %v", err)
	}
	if _, err := unjoin(t, env, name, time.Second, true); err != nil {
		t.Fatal(err)
	}
	await(t, inside.Client, template, exists)
}

// unscheduled waits until the condition Scheduled of a binding says that it is not
// placed as wanted, and why.
func unscheduled(t *testing.T, env *testenv.Env, of *workv1alpha2.ResourceBinding, reason string, parts ...string) {
	t.Helper()
	await(t, env.Karmada, of, func(b *workv1alpha2.ResourceBinding) error {
		said := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.Scheduled)
		if said == nil || said.Status != metav1.ConditionFalse || said.Reason != reason {
			return fmt.Errorf("condition Scheduled is %+v", said)
		}
		for _, part := range parts {
			if !strings.Contains(said.Message, part) {
				return fmt.Errorf("%q is missing in %q", part, said.Message)
			}
		}
		return nil
	})
}

// A cluster leaves bindings about which nothing else can be decided: one whose policy
// is gone, and one whose spread constraint wants more clusters than there are.
func TestAClusterLeavesBindingsThatCannotBeRescheduled(t *testing.T) {
	env := alone(t)
	const name = "outgoing"
	guest(t, env, name)
	namespace := env.Namespace(t)
	orphan, spread := deployment(namespace, "orphan", 4), deployment(namespace, "spread", 4)
	even := on(member1, name)
	even.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided, ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
	}
	gone := policyFor(t, even, orphan)
	two := on(member1, name)
	two.SpreadConstraints = []policyv1alpha1.SpreadConstraint{{SpreadByField: policyv1alpha1.SpreadByFieldCluster, MinGroups: 2, MaxGroups: 2}}
	env.Create(t, gone, policyFor(t, two, spread), orphan, spread)
	for _, template := range []*appsv1.Deployment{orphan, spread} {
		await(t, env.Karmada, bindingOf(t, template), names(member1, name))
		inMember(t, env, member1, template, exists)
	}
	deleteObject(t, env.Karmada, gone)
	await(t, env.Karmada, bindingOf(t, orphan), func(b *workv1alpha2.ResourceBinding) error {
		return same("labels of the policy", "", b.Labels[policyv1alpha1.PropagationPolicyPermanentIDLabel])
	})

	if _, err := unjoin(t, env, name, testenv.Patience, false); err != nil {
		t.Fatal(err)
	}
	unscheduled(t, env, bindingOf(t, orphan), "ClusterRemoved", "cluster "+name, "no policy claims its object", "2 of 4 replicas are placed: {"+member1+":2}")
	unscheduled(t, env, bindingOf(t, spread), "SchedulerError", "2 clusters wanted, 1 feasible ("+member1+")")
	awaitEvent(t, env, orphan, corev1.EventTypeNormal, "ClusterRemoved")
	awaitEvent(t, env, spread, corev1.EventTypeWarning, "ScheduleBindingFailed")
	for _, template := range []*appsv1.Deployment{orphan, spread} {
		await(t, env.Karmada, bindingOf(t, template), names(member1))
		inMember(t, env, member1, template, exists)
	}
	forgotten(t, env, name)
}
