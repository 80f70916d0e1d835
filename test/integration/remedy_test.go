package integration

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	remedyv1alpha1 "karmada.io/karmada/api/remedy/v1alpha1"
	"karmada.io/karmada/internal/testenv"
)

func newRemedy(name, cluster string, action remedyv1alpha1.RemedyAction, matches ...remedyv1alpha1.DecisionMatch) *remedyv1alpha1.Remedy {
	return &remedyv1alpha1.Remedy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: remedyv1alpha1.RemedySpec{
		ClusterAffinity: &remedyv1alpha1.ClusterAffinity{ClusterNames: []string{cluster}},
		DecisionMatches: matches, Actions: []remedyv1alpha1.RemedyAction{action},
	}}
}

func hasRemedyActions(want ...string) func(*clusterv1alpha1.Cluster) error {
	return func(c *clusterv1alpha1.Cluster) error {
		return checkEqual("remedyActions", want, c.Status.RemedyActions)
	}
}

func TestRemedyActionsFollowRemediesAndConditions(t *testing.T) {
	env := alone(t)
	const name, dns = "remedied", "ServiceDomainNameResolutionReady"
	always := newRemedy("always", name, "Inspect")
	broken := newRemedy("dns", name, remedyv1alpha1.TrafficControl, remedyv1alpha1.DecisionMatch{
		ClusterConditionMatch: &remedyv1alpha1.ClusterConditionRequirement{
			ConditionType: dns, Operator: remedyv1alpha1.ClusterConditionNotEqual, ConditionStatus: metav1.ConditionTrue,
		},
	})
	cleanUp(t, env, always, broken)
	env.Create(t, always, broken)
	// A new Cluster gets the actions of Remedies that existed before it.
	cluster := createPullCluster(t, env, name)
	// Report the cluster as lost before its deletion, because no agent withdraws its Works.
	t.Cleanup(func() { reportConditions(t, env, name, lostCondition) })
	await(t, env.Karmada, cluster, hasRemedyActions("Inspect"))
	reportDNS := func(status metav1.ConditionStatus) {
		reportConditions(t, env, name, readyCondition, metav1.Condition{Type: dns, Status: status, Reason: "Detected"})
	}
	reportDNS(metav1.ConditionFalse)
	await(t, env.Karmada, cluster, hasRemedyActions("Inspect", "TrafficControl"))
	reportDNS(metav1.ConditionTrue)
	await(t, env.Karmada, cluster, hasRemedyActions("Inspect"))
	reportDNS(metav1.ConditionUnknown)
	cluster = await(t, env.Karmada, cluster, hasRemedyActions("Inspect", "TrafficControl"))

	// An empty list of matches never matches, in contrast to no list.
	patchMatches := func(list string) {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"decisionMatches":`+list+`}}`))
		if err := env.Karmada.Patch(t.Context(), broken.DeepCopy(), patch); err != nil {
			t.Fatal(err)
		}
	}
	patchMatches("[]")
	await(t, env.Karmada, cluster, hasRemedyActions("Inspect"))
	patchMatches("null")
	await(t, env.Karmada, cluster, hasRemedyActions("Inspect", "TrafficControl"))

	// The controller replaces actions that other clients write.
	testenv.Eventually(t, "a write of other actions", func(ctx context.Context) error {
		err := env.Karmada.Get(ctx, client.ObjectKeyFromObject(cluster), cluster)
		cluster.Status.RemedyActions = []string{"Other"}
		return errors.Join(err, env.Karmada.Status().Update(ctx, cluster))
	})
	await(t, env.Karmada, cluster, hasRemedyActions("Inspect", "TrafficControl"))

	// Remedies may be deleted while no controller runs.
	if err := env.StopComponents(); err != nil {
		t.Fatal(err)
	}
	deleteObject(t, env.Karmada, always)
	deleteObject(t, env.Karmada, broken)
	if err := env.StartComponents(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, env.Karmada, cluster, func(c *clusterv1alpha1.Cluster) error {
		return checkEqual("number of actions", 0, len(c.Status.RemedyActions))
	})
}
