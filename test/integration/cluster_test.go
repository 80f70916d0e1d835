package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/testenv"
)

func clusterNamed(name string) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func TestRegisteredClusterBecomesReadyAndTellsWhatItServes(t *testing.T) {
	t.Parallel()
	cluster := await(t, env.Karmada, clusterNamed(member1), func(c *clusterv1alpha1.Cluster) error {
		return errors.Join(
			condition(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady, metav1.ConditionTrue, "ClusterReady",
				"cluster is healthy and ready to accept workloads"),
			condition(c.Status.Conditions, clusterv1alpha1.ClusterConditionCompleteAPIEnablements, metav1.ConditionTrue, "Complete", ""),
			same("finalizers", []string{clusterv1alpha1.ClusterControllerFinalizer}, c.Finalizers),
			same("taints", 0, len(c.Spec.Taints)))
	})
	asked, err := discovery.NewDiscoveryClientForConfig(env.Members[member1].Config)
	if err != nil {
		t.Fatal(err)
	}
	version, err := asked.ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if cluster.Status.KubernetesVersion != version.GitVersion {
		t.Errorf("the version is said to be %q, the member says %q", cluster.Status.KubernetesVersion, version.GitVersion)
	}
	apps := slices.IndexFunc(cluster.Status.APIEnablements, func(e clusterv1alpha1.APIEnablement) bool { return e.GroupVersion == "apps/v1" })
	if apps < 0 || !slices.ContainsFunc(cluster.Status.APIEnablements[apps].Resources, func(r clusterv1alpha1.APIResource) bool {
		return r.Name == "deployments" && r.Kind == "Deployment"
	}) {
		t.Errorf("Deployments are missing in %v", cluster.Status.APIEnablements)
	}
	await(t, env.Karmada, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: work.ExecutionNamespace(member1)}}, exists)
}

func TestNodesOfAMemberAreSummedUp(t *testing.T) {
	t.Parallel()
	for name, ready := range map[string]corev1.ConditionStatus{"n1": corev1.ConditionTrue, "n2": corev1.ConditionFalse} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := member(member3).Create(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = member(member3).Delete(context.WithoutCancel(t.Context()), node) })
		node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourcePods: resource.MustParse("110")}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
		if err := member(member3).Status().Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	await(t, env.Karmada, clusterNamed(member3), func(c *clusterv1alpha1.Cluster) error {
		if c.Status.NodeSummary == nil || c.Status.ResourceSummary == nil {
			return errors.New("there is no summary")
		}
		cpu := c.Status.ResourceSummary.Allocatable[corev1.ResourceCPU]
		return errors.Join(
			same("nodes", clusterv1alpha1.NodeSummary{TotalNum: 2, ReadyNum: 1}, *c.Status.NodeSummary),
			same("processors", "8", cpu.String()))
	})
}

func TestClusterIDIsRegisteredOnce(t *testing.T) {
	t.Parallel()
	first := await(t, env.Karmada, clusterNamed(member1), exists)
	second := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "twin"},
		Spec:       clusterv1alpha1.ClusterSpec{ID: first.Spec.ID, SyncMode: clusterv1alpha1.Push, APIEndpoint: "https://127.0.0.1:1"},
	}
	err := env.Karmada.Create(t.Context(), second)
	want := fmt.Sprintf("the cluster ID %s or the cluster name %s has been registered", first.Spec.ID, member1)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the answer is %v, want %q", err, want)
	}
}

func TestClustersAreListedWithTheirColumns(t *testing.T) {
	t.Parallel()
	await(t, env.Karmada, clusterNamed(member2), func(c *clusterv1alpha1.Cluster) error {
		return condition(c.Status.Conditions, clusterv1alpha1.ClusterConditionReady, metav1.ConditionTrue, "ClusterReady", "")
	})
	asked, err := discovery.NewDiscoveryClientForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := asked.RESTClient().Get().AbsPath("/apis/cluster.karmada.io/v1alpha1/clusters/"+member2).
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
	if err := same("columns", []string{"Name", "Version", "Mode", "Ready", "Age"}, columns); err != nil {
		t.Error(err)
	}
	if len(table.Rows) != 1 || table.Rows[0].Cells[0] != member2 || table.Rows[0].Cells[2] != "Push" || table.Rows[0].Cells[3] != "True" {
		t.Errorf("the rows are %+v", table.Rows)
	}
}

// A member that is out of reach loses nothing, holds up nobody, and catches up
// when it is back.
func TestMemberThatReturnsCatchesUp(t *testing.T) {
	namespace := env.Namespace(t)
	changing, going := configMap(namespace, "changing"), configMap(namespace, "going")
	env.Create(t, policyFor(t, on(member2, member3), changing, going), changing, going)
	for _, cluster := range []string{member2, member3} {
		inMember(t, cluster, changing, exists)
		inMember(t, cluster, going, exists)
	}

	lost := env.Members[member3]
	lost.Stop()
	testenv.Update(t, env.Karmada, changing, func(c *corev1.ConfigMap) { c.Data["color"] = "green" })
	deleteObject(t, env.Karmada, going)
	coming := configMap(namespace, "coming")
	policy := policyFor(t, on(member2, member3), coming)
	env.Create(t, policy, coming)
	inMember(t, member2, changing, hasColor("green"))
	awaitGone(t, member(member2), going)
	inMember(t, member2, coming, exists)
	testenv.Holds(t, "what the lost member has to hold", quiet, func(ctx context.Context) error {
		bound := bindingOf(t, changing)
		if err := env.Karmada.Get(ctx, client.ObjectKeyFromObject(bound), bound); err != nil {
			return err
		}
		// The Work of the deleted template waits for the member.
		return errors.Join(names(member2, member3)(bound),
			env.Karmada.Get(ctx, client.ObjectKeyFromObject(workOf(t, member3, going)), &workv1alpha1.Work{}))
	})

	// The member lives on after the test.
	if err := lost.Start(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	inMember(t, member3, changing, hasColor("green"))
	inMember(t, member3, coming, exists)
	awaitGone(t, member(member3), going)
	awaitGone(t, env.Karmada, workOf(t, member3, going))
}

func TestClusterThatLeavesGivesEverythingBack(t *testing.T) {
	const name = "member4"
	leaving, err := testenv.StartMember(t.Context(), filepath.Join(t.TempDir(), name), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(leaving.Stop)
	if err := env.Register(t.Context(), name, leaving); err != nil {
		t.Fatal(err)
	}
	template := configMap(env.Namespace(t), "everywhere")
	env.Create(t, policyFor(t, on(), template), template)
	await(t, leaving.Client, template, exists)
	inMember(t, member1, template, exists)

	deleteObject(t, env.Karmada, clusterNamed(name))
	awaitGone(t, env.Karmada, clusterNamed(name))
	// The Cluster goes last, so what belonged to it is gone when it is.
	if err := absent(t.Context(), env.Karmada, namespaceNamed(work.ExecutionNamespace(name))); err != nil {
		t.Errorf("the execution namespace: %v", err)
	}
	if err := absent(t.Context(), leaving.Client, template); err != nil {
		t.Errorf("the object in the member: %v", err)
	}
	awaitGone(t, env.Karmada, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.NamespaceKarmadaCluster, Name: name}})
	await(t, env.Karmada, bindingOf(t, template), names(member1, member2, member3))
	inMember(t, member1, template, exists)
}
