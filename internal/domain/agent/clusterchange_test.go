package agent_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
)

// readsAnySecret are rules for an agent that can read every Secret.
var readsAnySecret = agent.ClusterRules{CanReadSecret: func(clusterv1alpha1.LocalSecretReference) bool { return true }}

func registeredCluster(change func(*clusterv1alpha1.Cluster)) *clusterv1alpha1.Cluster {
	cluster := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{
			Name: "east", Labels: map[string]string{"tier": "bronze"}, Annotations: map[string]string{"team": "edge"},
			Finalizers: []string{clusterv1alpha1.ClusterControllerFinalizer},
		},
		Spec: clusterv1alpha1.ClusterSpec{
			ID: "id", SyncMode: clusterv1alpha1.Pull, APIEndpoint: "https://10.0.0.1", Region: "north", Provider: "metal", Zones: []string{"a"},
			Taints: []corev1.Taint{{Key: "maintenance", Effect: corev1.TaintEffectNoSchedule}},
		},
	}
	if change != nil {
		change(cluster)
	}
	return cluster
}

func fieldNames(wrong field.ErrorList) []string {
	var names []string
	for _, each := range wrong {
		names = append(names, each.Field)
	}
	return names
}

func TestAgentClusterChange(t *testing.T) {
	deleting := func(c *clusterv1alpha1.Cluster) { c.DeletionTimestamp = &metav1.Time{} }
	tests := map[string]struct {
		stored, change func(*clusterv1alpha1.Cluster)
		want           []string
	}{
		"no change":     {},
		"its endpoint":  {change: func(c *clusterv1alpha1.Cluster) { c.Spec.APIEndpoint = "https://10.0.0.2" }},
		"its proxy":     {change: func(c *clusterv1alpha1.Cluster) { c.Spec.ProxyURL = "http://proxy" }},
		"proxy headers": {change: func(c *clusterv1alpha1.Cluster) { c.Spec.ProxyHeader = map[string]string{"a": "b"} }},
		"its own secret": {change: func(c *clusterv1alpha1.Cluster) {
			c.Spec.SecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: "karmada-cluster", Name: "east"}
		}},
		"an ID that was empty": {
			stored: func(c *clusterv1alpha1.Cluster) { c.Spec.ID = "" }, change: func(c *clusterv1alpha1.Cluster) { c.Spec.ID = "id" },
		},
		"labels":               {change: func(c *clusterv1alpha1.Cluster) { c.Labels = map[string]string{"tier": "gold"} }, want: []string{"metadata.labels"}},
		"no labels":            {change: func(c *clusterv1alpha1.Cluster) { c.Labels = nil }, want: []string{"metadata.labels"}},
		"annotations of users": {change: func(c *clusterv1alpha1.Cluster) { c.Annotations["cluster.karmada.io/x"] = "now" }, want: []string{"metadata.annotations"}},
		"an owner":             {change: func(c *clusterv1alpha1.Cluster) { c.OwnerReferences = []metav1.OwnerReference{{Name: "x"}} }, want: []string{"metadata.ownerReferences"}},
		"its finalizers":       {change: func(c *clusterv1alpha1.Cluster) { c.Finalizers = nil }, want: []string{"metadata.finalizers"}},
		"more finalizers":      {change: func(c *clusterv1alpha1.Cluster) { c.Finalizers = append(c.Finalizers, "mine/x") }, want: []string{"metadata.finalizers"}},
		"the finalizer of the control plane during deletion": {stored: deleting, change: func(c *clusterv1alpha1.Cluster) { deleting(c); c.Finalizers = nil }},
		"another finalizer during deletion": {
			stored: func(c *clusterv1alpha1.Cluster) { deleting(c); c.Finalizers = append(c.Finalizers, "theirs/x") },
			change: func(c *clusterv1alpha1.Cluster) { deleting(c); c.Finalizers = nil }, want: []string{"metadata.finalizers"},
		},
		"its taints":              {change: func(c *clusterv1alpha1.Cluster) { c.Spec.Taints = nil }, want: []string{"spec.taints"}},
		"its region and provider": {change: func(c *clusterv1alpha1.Cluster) { c.Spec.Region, c.Spec.Provider, c.Spec.Zones = "south", "cloud", nil }, want: []string{"spec.provider", "spec.region", "spec.zones"}},
		"its zone":                {change: func(c *clusterv1alpha1.Cluster) { c.Spec.Zones, c.Spec.Zone = nil, "b" }, want: []string{"spec.zone", "spec.zones"}},
		"the grades of nodes":     {change: func(c *clusterv1alpha1.Cluster) { c.Spec.ResourceModels = []clusterv1alpha1.ResourceModel{{}} }, want: []string{"spec.resourceModels"}},
		"its ID":                  {change: func(c *clusterv1alpha1.Cluster) { c.Spec.ID = "another" }, want: []string{"spec.id"}},
		"its sync mode":           {change: func(c *clusterv1alpha1.Cluster) { c.Spec.SyncMode = clusterv1alpha1.Push }, want: []string{"spec.syncMode"}},
		"its sync mode, to Pull": {
			stored: func(c *clusterv1alpha1.Cluster) { c.Spec.SyncMode = clusterv1alpha1.Push },
			change: func(c *clusterv1alpha1.Cluster) { c.Spec.SyncMode = clusterv1alpha1.Pull }, want: []string{"spec.syncMode"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			stored := registeredCluster(test.stored)
			written := stored.DeepCopy()
			if test.change != nil {
				test.change(written)
			}
			wrong := agent.ValidateCluster(agent.User("east"), written, stored, readsAnySecret)
			if diff := cmp.Diff(test.want, fieldNames(wrong)); diff != "" {
				t.Errorf("rejected fields (-want +got):\n%s", diff)
			}
			for _, each := range wrong {
				if !strings.Contains(each.Detail, "kubectl edit cluster east") {
					t.Errorf("%s names no remedy: %s", each.Field, each.Detail)
				}
			}
			if wrong := agent.ValidateCluster("system:admin", written, stored, readsAnySecret); len(wrong) > 0 {
				t.Errorf("an administrator is rejected: %v", wrong)
			}
		})
	}
}

func TestAgentClusterCreation(t *testing.T) {
	created := registeredCluster(func(c *clusterv1alpha1.Cluster) {
		c.Annotations = map[string]string{"team": "edge", "cluster.karmada.io/declared-dead": "true", "karmada.io/x": ""}
		c.OwnerReferences = []metav1.OwnerReference{{Name: "x"}}
	})
	want := []string{
		"metadata.annotations[cluster.karmada.io/declared-dead]", "metadata.annotations[karmada.io/x]", "metadata.finalizers", "metadata.ownerReferences",
	}
	if diff := cmp.Diff(want, fieldNames(agent.ValidateCluster(agent.User("east"), created, nil, readsAnySecret))); diff != "" {
		t.Errorf("rejected fields (-want +got):\n%s", diff)
	}
}

func TestValidateAgentStatus(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: "Because"}
	}
	const good = `{
		"kubernetesVersion": "v1.36.3", "nodeSummary": {"totalNum": 3, "readyNum": 2},
		"apiEnablements": [{"groupVersion": "apps/v1", "resources": [{"name": "deployments", "kind": "Deployment"}]}],
		"resourceSummary": {
			"allocatable": {"cpu": "8", "memory": "1Ti", "pods": "330", "example.com/fpga": "2"}, "allocating": {"cpu": "0"}, "allocated": {"cpu": "500m"},
			"allocatableModelings": [{"grade": 0, "count": 1}, {"grade": 1, "count": 2}]}}`
	report := func(text string) func(*clusterv1alpha1.ClusterStatus) {
		return func(status *clusterv1alpha1.ClusterStatus) {
			if err := json.Unmarshal([]byte(text), status); err != nil {
				t.Fatal(err)
			}
		}
	}
	tests := map[string]struct {
		change func(*clusterv1alpha1.ClusterStatus)
		want   []string
	}{
		"the status of an upstream agent": {change: report(good)},
		"a reported condition": {change: func(s *clusterv1alpha1.ClusterStatus) {
			s.Conditions = append(s.Conditions, condition("Ready", "True"))
		}},
		"exceeded bounds and an identity mismatch": {change: func(s *clusterv1alpha1.ClusterStatus) {
			s.Conditions = append(s.Conditions, condition("WithinBounds", "False"), condition("IdentityMismatch", "True"))
		}},
		"a negative number of nodes":            {change: report(`{"nodeSummary": {"totalNum": -1}}`), want: []string{"status.nodeSummary.totalNum"}},
		"a count that would exhaust the memory": {change: report(`{"resourceSummary": {"allocatableModelings": [{"grade": 8, "count": 2147483647}]}}`), want: []string{"status.resourceSummary.allocatableModelings[0].count"}},
		"a negative count":                      {change: report(`{"resourceSummary": {"allocatableModelings": [{"grade": 8, "count": -1}]}}`), want: []string{"status.resourceSummary.allocatableModelings[0].count"}},
		"a duplicate grade":                     {change: report(`{"resourceSummary": {"allocatableModelings": [{"grade": 8, "count": 1}, {"grade": 8, "count": 1}]}}`), want: []string{"status.resourceSummary.allocatableModelings[1].grade"}},
		"a negative quantity":                   {change: report(`{"resourceSummary": {"allocated": {"cpu": "-8"}}}`), want: []string{"status.resourceSummary.allocated[cpu]"}},
		"too many resources":                    {change: func(s *clusterv1alpha1.ClusterStatus) { s.ResourceSummary = newResourceSummary(agent.MaxResources + 1) }, want: []string{"status.resourceSummary.allocatable"}},
		"too many group versions": {change: func(s *clusterv1alpha1.ClusterStatus) {
			s.APIEnablements = make([]clusterv1alpha1.APIEnablement, agent.MaxGroupVersions+1)
		}, want: []string{"status.apiEnablements"}},
		"too many APIs": {change: func(s *clusterv1alpha1.ClusterStatus) {
			s.APIEnablements = []clusterv1alpha1.APIEnablement{{Resources: make([]clusterv1alpha1.APIResource, agent.MaxAPIs+1)}}
		}, want: []string{"status.apiEnablements[0].resources"}},
		"a name that is too long": {change: func(s *clusterv1alpha1.ClusterStatus) {
			s.APIEnablements = []clusterv1alpha1.APIEnablement{{GroupVersion: strings.Repeat("a", 400)}}
		}, want: []string{"status.apiEnablements[0].groupVersion"}},
		"a version that is too long":               {change: func(s *clusterv1alpha1.ClusterStatus) { s.KubernetesVersion = strings.Repeat("v", 400) }, want: []string{"status.kubernetesVersion"}},
		"a message that is too long":               {change: func(s *clusterv1alpha1.ClusterStatus) { s.Conditions[0].Message = strings.Repeat("a", 1<<16) }, want: []string{"status.conditions[0].message"}},
		"an unknown status":                        {change: func(s *clusterv1alpha1.ClusterStatus) { s.Conditions[0].Status = "Perhaps" }, want: []string{"status.conditions[0].status"}},
		"a condition of the control plane":         {change: func(s *clusterv1alpha1.ClusterStatus) { s.Conditions[1].Status = "False" }, want: []string{"status.conditions[1].type"}},
		"a removed condition of the control plane": {change: func(s *clusterv1alpha1.ClusterStatus) { s.Conditions = s.Conditions[:1] }, want: []string{"status.conditions[Leaving]"}},
		"an unknown condition type":                {change: func(s *clusterv1alpha1.ClusterStatus) { s.Conditions = append(s.Conditions, condition("Mine", "True")) }, want: []string{"status.conditions[2].type"}},
		"a duplicate condition":                    {change: func(s *clusterv1alpha1.ClusterStatus) { s.Conditions = append(s.Conditions, s.Conditions[0]) }, want: []string{"status.conditions[2].type"}},
		"the actions of Remedies":                  {change: func(s *clusterv1alpha1.ClusterStatus) { s.RemedyActions = []string{"TrafficControl"} }, want: []string{"status.remedyActions"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			stored := registeredCluster(nil)
			stored.Status.Conditions = []metav1.Condition{condition("CompleteAPIEnablements", "True"), condition("Leaving", "True")}
			written := stored.DeepCopy()
			test.change(&written.Status)
			if diff := cmp.Diff(test.want, fieldNames(agent.ValidateStatus(agent.User("east"), written, stored))); diff != "" {
				t.Errorf("rejected fields (-want +got):\n%s", diff)
			}
			if wrong := agent.ValidateStatus(agent.User("east"), written, written); len(wrong) > 0 && name != "a duplicate condition" {
				t.Errorf("stored values are rejected: %v", wrong)
			}
			if wrong := agent.ValidateStatus(agent.User("west"), written, stored); len(wrong) != 1 || wrong[0].Field != "metadata.name" {
				t.Errorf("the agent of another cluster: %v", wrong)
			}
			if wrong := agent.ValidateStatus("system:admin", written, stored); len(wrong) > 0 {
				t.Errorf("components are rejected: %v", wrong)
			}
		})
	}
}

func newResourceSummary(number int) *clusterv1alpha1.ResourceSummary {
	summary := &clusterv1alpha1.ResourceSummary{Allocatable: corev1.ResourceList{}}
	for i := range number {
		summary.Allocatable[corev1.ResourceName(strings.Repeat("a", i+1))] = *new(corev1.ResourceList).Cpu()
	}
	return summary
}
