package e2e

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// goldLabel is a label of nodes that only some members have.
const goldLabel = "e2e.karmada.io/tier"

// labelNodes makes the simulated nodes of a member accept Pods that select goldLabel.
func (i *installation) labelNodes(t *testing.T, member string) {
	t.Helper()
	nodes := &corev1.NodeList{}
	if err := i.members[member].List(t.Context(), nodes, client.HasLabels{clusterv1alpha1.SimulatedNodeLabel}); err != nil {
		t.Fatal(err)
	}
	if len(nodes.Items) == 0 {
		t.Fatalf("%s has no simulated nodes", member)
	}
	for n := range nodes.Items {
		node := &nodes.Items[n]
		before := client.MergeFrom(node.DeepCopy())
		node.Labels[goldLabel] = "gold"
		if err := i.members[member].Patch(t.Context(), node, before); err != nil {
			t.Fatal(err)
		}
	}
}

// newGoldDeployment returns a Deployment whose Pods run only on nodes with goldLabel. The resource
// summary of a cluster does not contain labels.
func newGoldDeployment(namespace, name string, replicas int32) *appsv1.Deployment {
	template := newDeployment(namespace, name, replicas)
	template.Spec.Template.Spec.NodeSelector = map[string]string{goldLabel: "gold"}
	template.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	return template
}

// divideByCapacity returns a policy that divides the replicas of a Deployment in proportion to the
// number of replicas that still fit into each cluster.
func divideByCapacity(template *appsv1.Deployment, clusters ...string) *policyv1alpha1.PropagationPolicy {
	policy := selectAll(policyv1alpha1.ResourceSelector{APIVersion: "apps/v1", Kind: "Deployment", Name: template.Name}).propagationPolicy(template.Namespace, clusters...)
	policy.Name = template.Name
	policy.Spec.Placement.ReplicaScheduling = &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
		ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
		WeightPreference:          &policyv1alpha1.ClusterPreferences{DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas},
	}
	return policy
}

// awaitReplicas waits until isExpected accepts the replicas that a template has in each cluster and
// the message of the condition Scheduled of its binding.
func (i *installation) awaitReplicas(t *testing.T, template *appsv1.Deployment, description string, isExpected func(replicas map[string]int32, message string) bool) {
	t.Helper()
	eventually(t, description, func(ctx context.Context) error {
		binding, err := i.bindingOf(ctx, template)
		if err != nil {
			return err
		}
		replicas, message := map[string]int32{}, ""
		for _, target := range binding.Spec.Clusters {
			replicas[target.Name] = target.Replicas
		}
		if scheduled := meta.FindStatusCondition(binding.Status.Conditions, workv1alpha2.Scheduled); scheduled != nil {
			message = scheduled.Message
		}
		if len(replicas) == 0 || !isExpected(replicas, message) {
			return fmt.Errorf("the replicas are %v, and Scheduled reports %q", replicas, message)
		}
		return nil
	})
}

// awaitResourceSummary waits until a member has reported nodes that accept Pods. A scheduling
// before that report counts no capacity in the member, and is not repeated after the report.
func (i *installation) awaitResourceSummary(t *testing.T, member string) {
	t.Helper()
	eventually(t, "the resource summary of "+member, func(ctx context.Context) error {
		cluster := &clusterv1alpha1.Cluster{}
		if err := i.karmada.Get(ctx, client.ObjectKey{Name: member}, cluster); err != nil {
			return err
		}
		if summary := cluster.Status.ResourceSummary; summary == nil || summary.Allocatable.Pods().IsZero() {
			return fmt.Errorf("the resource summary is %+v", summary)
		}
		return nil
	})
}

// estimatorService reads the Service with the address of the estimator of a member.
func (i *installation) estimatorService(t *testing.T, member string) *corev1.Service {
	t.Helper()
	service := &corev1.Service{}
	if err := i.karmada.Get(t.Context(), client.ObjectKey{Namespace: clusterv1alpha1.NamespaceKarmadaSystem, Name: clusterv1alpha1.EstimatorPrefix + member}, service); err != nil {
		t.Fatal(err)
	}
	return service
}

// TestReplicasGoWhereNodesAccept runs one member in push mode and one in pull mode. The nodes of
// one of them accept the Pods, although the resource summaries of both have room.
func TestReplicasGoWhereNodesAccept(t *testing.T) {
	for _, accepting := range []string{member1, member2} {
		t.Run("only "+accepting+" accepts the Pods", func(t *testing.T) {
			i := &installation{dir: t.TempDir()}
			t.Cleanup(i.remove)
			if err := i.up(t.Context(), "--members", "2", "--pull-members", "1", "--nodes-per-member", "1"); err != nil {
				t.Fatal(err)
			}
			i.labelNodes(t, accepting)
			first := newGoldDeployment("default", "first", 6)
			createObjects(t, i, first, divideByCapacity(first, member1, member2))
			onlyAccepting := func(replicas map[string]int32, message string) bool {
				return replicas[accepting] == 6 && !strings.Contains(message, "Failed estimators")
			}
			i.awaitReplicas(t, first, "all replicas in "+accepting, onlyAccepting)
			if accepting == member1 {
				i.checkFailingEstimator(t, member2)
				i.checkEstimatorsSurviveKill(t, onlyAccepting)
			}
		})
	}
}

// checkFailingEstimator lets no estimator listen at the address of a member. Then the resource
// summary of this member counts, and the condition Scheduled names the estimator.
func (i *installation) checkFailingEstimator(t *testing.T, member string) {
	t.Helper()
	i.awaitResourceSummary(t, member)
	service := i.estimatorService(t, member)
	before := client.MergeFrom(service.DeepCopy())
	service.Spec.Ports[0].TargetPort = intstr.FromInt32(1)
	if err := i.karmada.Patch(t.Context(), service, before); err != nil {
		t.Fatal(err)
	}
	template := newGoldDeployment("default", "unknown", 6)
	createObjects(t, i, template, divideByCapacity(template, member1, member2))
	i.awaitReplicas(t, template, "replicas by the resource summary", func(replicas map[string]int32, message string) bool {
		return replicas[member] > 0 && strings.Contains(message, "Failed estimators are ignored, and the resource summary is used: ") && strings.Contains(message, member)
	})
}

// checkEstimatorsSurviveKill kills the control plane. The next start continues with the same ports
// and certificates, and repairs the address that checkFailingEstimator changed.
func (i *installation) checkEstimatorsSurviveKill(t *testing.T, isExpected func(replicas map[string]int32, message string) bool) {
	t.Helper()
	port := i.estimatorService(t, member1).Spec.Ports[0].TargetPort
	pid, err := i.processID(controlPlane)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	i.awaitProcessesEnded(t, stopTimeout)
	if err := i.up(t.Context()); err != nil {
		t.Fatal(err)
	}
	if now := i.estimatorService(t, member1).Spec.Ports[0].TargetPort; now != port {
		t.Errorf("the port of the estimator was %s and is %s", port.String(), now.String())
	}
	if now := i.estimatorService(t, member2).Spec.Ports[0].TargetPort; now.IntValue() == 1 {
		t.Error("the start did not repair the address of the estimator of " + member2)
	}
	template := newGoldDeployment("default", "again", 6)
	createObjects(t, i, template, divideByCapacity(template, member1, member2))
	i.awaitReplicas(t, template, "all replicas in one member after the restart", isExpected)
}

// TestAddonsEstimator installs the estimator of a member that was joined by hand, in another member
// as the host.
func TestAddonsEstimator(t *testing.T) {
	t.Parallel()
	const addon = "karmada-scheduler-estimator"
	namespace := newNamespace(t)
	run := func(verb string, args ...string) commandResult {
		args = append([]string{"addons", verb, "-C", member1, "--karmada-kubeconfig", shared.karmadaConfig(), "--kubeconfig", shared.membersConfig(), "--context", member2}, args...)
		return runProgram(t.Context(), nil, "karmadactl", args...)
	}
	spread := newGoldDeployment(namespace, "before", 4)
	createObjects(t, shared, spread, divideByCapacity(spread, member1, member2))
	shared.awaitReplicas(t, spread, "replicas by the resource summaries", func(replicas map[string]int32, message string) bool {
		return replicas[member1] > 0 && replicas[member2] > 0 && !strings.Contains(message, "Failed estimators")
	})

	enable := []string{addon, "--member-kubeconfig", shared.membersConfig()}
	checkOutput(t, run("enable", enable...), "addon "+addon+" enabled\n")
	again := run("enable", enable...)
	checkOutput(t, again, "addon "+addon+" unchanged\n")
	if again.stderr != "" {
		t.Errorf("the second run reports changes:\n%s", again.stderr)
	}
	checkOutput(t, run("list"), "| "+addon+" | enabled  |\n", "| karmada-descheduler         | disabled |\n")
	run("enable", "karmada-descheduler", addon, "--member-kubeconfig", shared.membersConfig()).mustFailPartly(t, "Secret karmada-descheduler-config is missing", "addon "+addon+" unchanged\n")

	moved := newGoldDeployment(namespace, "after", 4)
	createObjects(t, shared, moved, divideByCapacity(moved, member1, member2))
	shared.awaitReplicas(t, moved, "no replica in the member whose nodes reject it", func(replicas map[string]int32, message string) bool {
		return replicas[member2] == 4 && !strings.Contains(message, "Failed estimators")
	})

	checkOutput(t, run("disable", addon, "-f"), "addon "+addon+" disabled\n")
	checkOutput(t, run("list"), "| "+addon+" | disabled |\n")
	checkOutput(t, run("disable", addon, "-f"), "addon "+addon+" disabled\n")
	installed := objectMeta(clusterv1alpha1.NamespaceKarmadaSystem, clusterv1alpha1.EstimatorPrefix+member1)
	certificates := objectMeta(installed.Namespace, clusterv1alpha1.CertificateSecret)
	for _, object := range []client.Object{&appsv1.Deployment{ObjectMeta: installed}, &corev1.Service{ObjectMeta: installed}, &corev1.Secret{ObjectMeta: certificates}} {
		if err := checkAbsent(t.Context(), shared.members[member2], object); err != nil {
			t.Errorf("in the host: %v", err)
		}
	}
	if err := checkAbsent(t.Context(), shared.karmada, &corev1.Service{ObjectMeta: installed}); err != nil {
		t.Errorf("in the control plane: %v", err)
	}
}

// mustFailPartly requires exit code 1 and texts on stderr and on stdout.
func (c commandResult) mustFailPartly(t *testing.T, stderr, stdout string) {
	t.Helper()
	if c.code != 1 || !strings.Contains(c.stderr, stderr) || c.stdout != stdout {
		t.Errorf("exit code %d, want 1 with %q and %q:\n%s%s", c.code, stderr, stdout, c.stdout, c.stderr)
	}
}
