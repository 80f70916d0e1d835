package kubectl

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
)

func TestQuotaTable(t *testing.T) {
	amounts := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
	team := policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "team"}}
	team.Spec.Overall = amounts("10", "0")
	team.Status.OverallUsed = amounts("7500m", "1Gi")
	team.Status.AggregatedStatus = []policyv1alpha1.ClusterQuotaStatus{{ClusterName: "east", ResourceQuotaStatus: corev1.ResourceQuotaStatus{
		Hard: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")},
	}}}
	unreported := policyv1alpha1.FederatedResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "bank", Name: "new"}}
	unreported.Spec.Overall = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
	cases := map[string]struct {
		showsNamespace bool
		want           string
	}{
		"one namespace": {false, `NAME   CLUSTER   RESOURCE   USED    LIMIT   USED%
team   (all)     cpu        7500m   10      75%
team   (all)     memory     1Gi     0       <unknown>
team   east      cpu        0       4       0%
new    (all)     cpu        0       2       0%
`},
		"all namespaces": {true, `NAMESPACE   NAME   CLUSTER   RESOURCE   USED    LIMIT   USED%
shop        team   (all)     cpu        7500m   10      75%
shop        team   (all)     memory     1Gi     0       <unknown>
shop        team   east      cpu        0       4       0%
bank        new    (all)     cpu        0       2       0%
`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out := &bytes.Buffer{}
			quotas := []policyv1alpha1.FederatedResourceQuota{team, unreported}
			if err := printTable(out, false, newQuotaTable(quotas, tc.showsNamespace)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("table (-want +got):\n%s", diff)
			}
		})
	}
}
