package agent_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/domain/agent"
)

func TestScopeOfCluster(t *testing.T) {
	bronze := map[string]string{"tier": "bronze"}
	tests := map[string]struct {
		scope  agent.Scope
		labels map[string]string
		spec   clusterv1alpha1.ClusterSpec
		want   []string
	}{
		"no scope":                         {labels: bronze, spec: clusterv1alpha1.ClusterSpec{Region: "eu", Zones: []string{"a"}}},
		"only a name":                      {scope: agent.Scope{ClusterName: "east"}, labels: bronze, spec: clusterv1alpha1.ClusterSpec{Region: "eu"}},
		"the agent sets nothing":           {scope: agent.Scope{Labels: bronze, Region: "eu", Provider: "metal", Zones: []string{"a"}}},
		"the agent sets the same":          {scope: agent.Scope{Labels: bronze, Region: "eu", Zones: []string{"a"}}, labels: bronze, spec: clusterv1alpha1.ClusterSpec{Region: "eu", Zones: []string{"a"}}},
		"another label":                    {scope: agent.Scope{Labels: bronze}, labels: map[string]string{"tier": "gold"}, want: []string{"metadata.labels"}},
		"one more label":                   {scope: agent.Scope{Labels: bronze}, labels: map[string]string{"tier": "bronze", "team": "a"}, want: []string{"metadata.labels"}},
		"a label, and the token has none":  {scope: agent.Scope{Region: "eu"}, labels: bronze, want: []string{"metadata.labels"}},
		"another region":                   {scope: agent.Scope{Region: "eu"}, spec: clusterv1alpha1.ClusterSpec{Region: "us"}, want: []string{"spec.region"}},
		"a region, and the token has none": {scope: agent.Scope{Labels: bronze}, spec: clusterv1alpha1.ClusterSpec{Region: "us"}, want: []string{"spec.region"}},
		"a provider and zones":             {scope: agent.Scope{Region: "eu"}, spec: clusterv1alpha1.ClusterSpec{Provider: "cloud", Zones: []string{"a"}}, want: []string{"spec.provider", "spec.zones"}},
		"a zone in the old field":          {scope: agent.Scope{Region: "eu"}, spec: clusterv1alpha1.ClusterSpec{Zone: "a"}, want: []string{"spec.zones"}},
		"one more zone":                    {scope: agent.Scope{Zones: []string{"a"}}, spec: clusterv1alpha1.ClusterSpec{Zones: []string{"a", "b"}}, want: []string{"spec.zones"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			created := &clusterv1alpha1.Cluster{Spec: test.spec}
			created.Name, created.Labels, created.Spec.SyncMode = "east", test.labels, clusterv1alpha1.Pull
			test.scope.Apply(created)
			rules := readsAnySecret
			rules.Scope = test.scope
			if diff := cmp.Diff(test.want, fieldNames(agent.ValidateCluster(agent.User("east"), created, nil, rules))); diff != "" {
				t.Errorf("rejected fields (-want +got):\n%s", diff)
			}
			if test.want == nil && test.scope.Region != "" && (created.Spec.Region != test.scope.Region || !cmp.Equal(created.Labels, test.scope.Labels)) {
				t.Errorf("got region %q and labels %v, want those of the token", created.Spec.Region, created.Labels)
			}
			if wrong := agent.ValidateCluster("system:admin", created, nil, rules); len(wrong) > 0 {
				t.Errorf("an administrator is rejected: %v", wrong)
			}
		})
	}
}

func TestScopeText(t *testing.T) {
	scope := agent.Scope{ClusterName: "east", Labels: map[string]string{"b": "2", "a": "1"}, Provider: "metal", Region: "eu", Zones: []string{"x", "y"}}
	got, err := agent.ParseScope(scope.Encode())
	if diff := cmp.Diff(scope, got); err != nil || diff != "" {
		t.Errorf("%v (-encoded +parsed):\n%s", err, diff)
	}
	if want := "cluster-name=east cluster-labels=a=1,b=2 cluster-provider=metal cluster-region=eu cluster-zones=x,y"; scope.String() != want {
		t.Errorf("got %s, want %s", scope, want)
	}
	if text := (agent.Scope{}).Encode(); text != "" {
		t.Errorf("the empty scope is %q", text)
	}
	for _, text := range []string{"{", `{"country":"x"}`} {
		if _, err := agent.ParseScope(text); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}
