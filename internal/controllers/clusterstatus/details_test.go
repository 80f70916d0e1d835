package clusterstatus

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/loop"
)

// TestDetailsAreReadWhenReady probes healthy members that serve v1.36.3. These members' last observed
// version is v1.35.0.
func TestDetailsAreReadWhenReady(t *testing.T) {
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	condition := func(kind string, status metav1.ConditionStatus, since time.Duration) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: "It", LastTransitionTime: metav1.NewTime(noon.Add(-since))}
	}
	ready, responding := clusterv1alpha1.ClusterConditionReady, clusterv1alpha1.ClusterConditionResponding
	tests := map[string]struct {
		stored        []metav1.Condition
		ready, wanted string
	}{
		"a new member":                          {nil, "True", "v1.36.3"},
		"a ready member":                        {[]metav1.Condition{condition(ready, metav1.ConditionTrue, time.Hour)}, "True", "v1.36.3"},
		"a member that has just recovered":      {[]metav1.Condition{condition(ready, metav1.ConditionFalse, time.Hour)}, "False", "v1.35.0"},
		"a member within the success threshold": {[]metav1.Condition{condition(ready, metav1.ConditionFalse, time.Hour), condition(responding, metav1.ConditionTrue, 29*time.Second)}, "False", "v1.35.0"},
		"a member after the success threshold":  {[]metav1.Condition{condition(ready, metav1.ConditionFalse, time.Hour), condition(responding, metav1.ConditionTrue, 30*time.Second)}, "True", "v1.36.3"},
	}
	url := newIdleMember(t).URL
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1", UID: "1", Finalizers: []string{clusterv1alpha1.ClusterControllerFinalizer}}}
			cluster.Spec = clusterv1alpha1.ClusterSpec{
				SyncMode: clusterv1alpha1.Push, APIEndpoint: url, InsecureSkipTLSVerification: true,
				SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: "m1"},
			}
			cluster.Status.Conditions, cluster.Status.KubernetesVersion = test.stored, "v1.35.0"
			karmada := &fakeKarmada{clusters: map[string]*clusterv1alpha1.Cluster{"m1": cluster}}
			measured, err := newClusterMetrics(prometheus.NewRegistry())
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c := &controller{
				options: DefaultOptions(), karmada: karmada, members: member.NewClusters(ctx, member.Options{Karmada: karmada, Secrets: karmada}),
				now: func() time.Time { return noon }, metrics: measured, events: loop.NewEvents(record.NewFakeRecorder(10)),
			}
			c.options.Inventory = false
			defer c.members.CloseMember("m1")
			if _, err := c.reconcile(ctx, "m1", types.NamespacedName{Name: "m1"}); err != nil {
				t.Fatal(err)
			}
			status := karmada.clusters["m1"].Status
			if diff := cmp.Diff([]string{test.ready, test.wanted}, []string{string(conditions.Get(status.Conditions, ready).Status), status.KubernetesVersion}); diff != "" {
				t.Errorf("ready and version (-want +got):\n%s", diff)
			}
			if known := len(status.APIEnablements) > 0; known != (test.wanted == "v1.36.3") {
				t.Errorf("%d APIs are known", len(status.APIEnablements))
			}
		})
	}
}

func TestSetStatusKeepsUnknownValues(t *testing.T) {
	nodes, resources := &clusterv1alpha1.NodeSummary{TotalNum: 3}, &clusterv1alpha1.ResourceSummary{}
	apis := []clusterv1alpha1.APIEnablement{{GroupVersion: "apps/v1"}}
	known := clusterv1alpha1.ClusterStatus{KubernetesVersion: "v1.35.0", NodeSummary: nodes, ResourceSummary: resources, APIEnablements: apis}
	tests := map[string]struct {
		seen probeResult
		want clusterv1alpha1.ClusterStatus
	}{
		"nothing was read": {probeResult{}, known},
		"the version was read": {
			probeResult{version: "v1.36.3"},
			clusterv1alpha1.ClusterStatus{KubernetesVersion: "v1.36.3", NodeSummary: nodes, ResourceSummary: resources, APIEnablements: apis},
		},
		"the APIs were read": {
			probeResult{apisRead: true, complete: true, enablements: []clusterv1alpha1.APIEnablement{{GroupVersion: "v1"}}},
			clusterv1alpha1.ClusterStatus{KubernetesVersion: "v1.35.0", NodeSummary: nodes, ResourceSummary: resources, APIEnablements: []clusterv1alpha1.APIEnablement{{GroupVersion: "v1"}}},
		},
		"some APIs were read": {
			probeResult{apisRead: true, enablements: []clusterv1alpha1.APIEnablement{{GroupVersion: "v1"}}, isUnknown: func(of string) bool { return of == "apps/v1" }},
			clusterv1alpha1.ClusterStatus{KubernetesVersion: "v1.35.0", NodeSummary: nodes, ResourceSummary: resources, APIEnablements: []clusterv1alpha1.APIEnablement{{GroupVersion: "apps/v1"}, {GroupVersion: "v1"}}},
		},
		"no APIs were read": {
			probeResult{apisRead: true, isUnknown: func(string) bool { return true }},
			known,
		},
		"the nodes were counted": {
			probeResult{nodes: &clusterv1alpha1.NodeSummary{TotalNum: 4}},
			clusterv1alpha1.ClusterStatus{KubernetesVersion: "v1.35.0", NodeSummary: &clusterv1alpha1.NodeSummary{TotalNum: 4}, APIEnablements: apis},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1alpha1.Cluster{Status: *known.DeepCopy()}
			(&controller{now: time.Now}).setStatus(cluster, test.seen)
			if told := len(cluster.Status.Conditions) > 0; told != test.seen.apisRead {
				t.Errorf("conditions %+v", cluster.Status.Conditions)
			}
			cluster.Status.Conditions = nil
			if diff := cmp.Diff(test.want, cluster.Status); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}
