package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/discovery"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/testenv"
)

func clusterNamed(name string) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// unregisterCluster deletes a Cluster that a test has registered. It returns when the scheduler no
// longer knows the Cluster, so that the following tests find only the members that they expect.
func unregisterCluster(t *testing.T, env *testenv.Env, name string) {
	t.Helper()
	deleteObject(t, env.Karmada, clusterNamed(name))
	awaitGone(t, env.Karmada, clusterNamed(name))
	namespace := env.Namespace(t)
	testenv.Eventually(t, "the scheduler no longer knows cluster "+name, func(ctx context.Context) error {
		probe := configMap(namespace, "probe-"+rand.String(5))
		env.Create(t, policyFor(t, placementOn(name), probe), probe)
		bound := await(t, env.Karmada, bindingOf(t, probe), func(b *workv1alpha2.ResourceBinding) error {
			return checkCondition(b.Status.Conditions, workv1alpha2.Scheduled, metav1.ConditionFalse, "NoClusterFit", "")
		})
		message, want := conditions.Get(bound.Status.Conditions, workv1alpha2.Scheduled).Message, fmt.Sprintf("The placement names cluster %q, which does not exist", name)
		if !strings.Contains(message, want) {
			return fmt.Errorf("the scheduler reports %q, want %q in it", message, want)
		}
		return nil
	})
}

func TestRegisteredClusterReportsReadyAndAPIEnablements(t *testing.T) {
	env := shared(t)
	cluster := await(t, env.Karmada, clusterNamed(member1), func(c *clusterv1alpha1.Cluster) error {
		return errors.Join(
			checkCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady, metav1.ConditionTrue, "ClusterReady",
				"cluster is healthy and ready to accept workloads"),
			checkCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionCompleteAPIEnablements, metav1.ConditionTrue, "Complete", ""),
			checkEqual("finalizers", []string{clusterv1alpha1.ClusterControllerFinalizer}, c.Finalizers),
			checkEqual("taints", 0, len(c.Spec.Taints)))
	})
	memberDiscovery, err := discovery.NewDiscoveryClientForConfig(env.Members[member1].Config)
	if err != nil {
		t.Fatal(err)
	}
	version, err := memberDiscovery.ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if cluster.Status.KubernetesVersion != version.GitVersion {
		t.Errorf("the reported version is %q, the member has %q", cluster.Status.KubernetesVersion, version.GitVersion)
	}
	apps := slices.IndexFunc(cluster.Status.APIEnablements, func(e clusterv1alpha1.APIEnablement) bool { return e.GroupVersion == "apps/v1" })
	if apps < 0 || !slices.ContainsFunc(cluster.Status.APIEnablements[apps].Resources, func(r clusterv1alpha1.APIResource) bool {
		return r.Name == "deployments" && r.Kind == "Deployment"
	}) {
		t.Errorf("Deployments are missing in %v", cluster.Status.APIEnablements)
	}
	await(t, env.Karmada, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: work.ExecutionNamespace(member1)}}, exists)
}

func TestNodeAndResourceSummaryOfMember(t *testing.T) {
	env := shared(t)
	for name, ready := range map[string]corev1.ConditionStatus{"n1": corev1.ConditionTrue, "n2": corev1.ConditionFalse} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := memberClient(env, member3).Create(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = memberClient(env, member3).Delete(context.WithoutCancel(t.Context()), node) })
		node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourcePods: resource.MustParse("110")}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
		if err := memberClient(env, member3).Status().Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	await(t, env.Karmada, clusterNamed(member3), func(c *clusterv1alpha1.Cluster) error {
		if c.Status.NodeSummary == nil || c.Status.ResourceSummary == nil {
			return errors.New("the status has no NodeSummary or no ResourceSummary")
		}
		cpu := c.Status.ResourceSummary.Allocatable[corev1.ResourceCPU]
		return errors.Join(
			checkEqual("nodes", clusterv1alpha1.NodeSummary{TotalNum: 2, ReadyNum: 1}, *c.Status.NodeSummary),
			checkEqual("allocatable CPU", "8", cpu.String()))
	})
}

func TestClusterIDMustBeUnique(t *testing.T) {
	env := shared(t)
	testenv.Update(t, env.Karmada, clusterNamed(member1), func(c *clusterv1alpha1.Cluster) { c.Spec.ID = memberID(t, env.Members[member1]) })
	first := await(t, env.Karmada, clusterNamed(member1), exists)
	second := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "twin"},
		Spec:       clusterv1alpha1.ClusterSpec{ID: first.Spec.ID, SyncMode: clusterv1alpha1.Push, APIEndpoint: "https://127.0.0.1:1"},
	}
	err := env.Karmada.Create(t.Context(), second)
	want := fmt.Sprintf("the cluster ID %s or the cluster name %s has been registered", first.Spec.ID, member1)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got error %v, want %q", err, want)
	}
}

func TestClusterTableColumns(t *testing.T) {
	env := shared(t)
	await(t, env.Karmada, clusterNamed(member2), func(c *clusterv1alpha1.Cluster) error {
		return checkCondition(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady, metav1.ConditionTrue, "ClusterReady", "")
	})
	karmadaDiscovery, err := discovery.NewDiscoveryClientForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := karmadaDiscovery.RESTClient().Get().AbsPath("/apis/cluster.karmada.io/v1alpha1/clusters/"+member2).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	table := &metav1.Table{}
	if err := json.Unmarshal(answer, table); err != nil {
		t.Fatal(err)
	}
	var columns []string
	for _, column := range table.ColumnDefinitions {
		if column.Priority == 0 {
			columns = append(columns, column.Name)
		}
	}
	if err := checkEqual("columns", []string{"Name", "Version", "Mode", "Ready", "Age"}, columns); err != nil {
		t.Error(err)
	}
	if len(table.Rows) != 1 || table.Rows[0].Cells[0] != member2 || table.Rows[0].Cells[2] != "Push" || table.Rows[0].Cells[3] != "True" {
		t.Errorf("the rows are %+v", table.Rows)
	}
}
