package placement

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/capacity"
)

type targets = []workv1alpha2.TargetCluster

func TestDivisionByStrategy(t *testing.T) {
	unknown := aggregate.DeepCopy()
	unknown.ReplicaDivisionPreference = "Sideways"
	unsaid := aggregate.DeepCopy()
	unsaid.ReplicaDivisionPreference = ""
	withRequirements := func(spec *workv1alpha2.ResourceBindingSpec) *workv1alpha2.ResourceBindingSpec {
		spec.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{}
		return spec
	}
	of := func(replicas int32, strategy *policyv1alpha1.ReplicaSchedulingStrategy, current ...workv1alpha2.TargetCluster) *workv1alpha2.ResourceBindingSpec {
		return deployment(replicas, policyv1alpha1.Placement{ReplicaScheduling: strategy}, current...)
	}
	odd := of(5, evenly)
	odd.Resource.UID = types.UID(oddUID)

	free := map[string]int32{"a": 10, "b": 6, "c": 3}
	tests := map[string]struct {
		spec      *workv1alpha2.ResourceBindingSpec
		capacity  map[string]int32
		empty     bool
		want      targets
		wantError string
	}{
		"no strategy: all replicas everywhere":   {of(4, nil), free, false, targets{target("a", 4), target("b", 4), target("c", 4)}, ""},
		"duplicated: all replicas everywhere":    {of(4, duplicate), free, false, targets{target("a", 4), target("b", 4), target("c", 4)}, ""},
		"evenly":                                 {of(5, evenly), free, false, targets{target("a", 2), target("b", 2), target("c", 1)}, ""},
		"evenly, odd UID: ties to the last name": {odd, free, false, targets{target("a", 1), target("b", 2), target("c", 2)}, ""},
		"no preference counts as weighted":       {of(5, unsaid), free, false, targets{target("a", 2), target("b", 2), target("c", 1)}, ""},
		"an unknown preference":                  {of(5, unknown), free, false, nil, `failed to assign replicas: unsupported replica scheduling strategy, type "Divided" and preference "Sideways"`},

		"static weights": {of(9, staticWeight(clusterWeight(1, "a"), clusterWeight(2, "b"))), free, false, targets{target("a", 3), target("b", 6)}, ""},
		"static weights: the largest entry counts":       {of(9, staticWeight(clusterWeight(1, "a", "b"), clusterWeight(2, "b"))), free, false, targets{target("a", 3), target("b", 6)}, ""},
		"static weights that select no cluster":          {of(3, staticWeight(clusterWeight(2, "x"))), free, false, targets{target("a", 1), target("b", 1), target("c", 1)}, ""},
		"static weights ignore capacity":                 {of(90, staticWeight(clusterWeight(1, "c"))), free, false, targets{target("c", 90)}, ""},
		"static weights ignore the previous result":      {of(9, staticWeight(clusterWeight(1, "a"), clusterWeight(2, "b")), target("a", 9)), free, false, targets{target("a", 3), target("b", 6)}, ""},
		"an empty share is dropped":                      {of(1, staticWeight(clusterWeight(1, "a"), clusterWeight(9, "b"))), free, false, targets{target("b", 1)}, ""},
		"an empty share is kept as empty workload":       {of(1, staticWeight(clusterWeight(1, "a"), clusterWeight(9, "b"))), free, true, targets{target("b", 1), target("a", 0), target("c", 0)}, ""},
		"no replicas, with requirements: no targets":     {withRequirements(of(0, aggregate)), free, false, nil, ""},
		"no replicas, with requirements: empty workload": {withRequirements(of(0, duplicate)), free, true, targets{target("a", 0), target("b", 0), target("c", 0)}, ""},
		"no replicas, no requirements: all clusters":     {of(0, aggregate), free, false, targets{target("a", 0), target("b", 0), target("c", 0)}, ""},

		"dynamic weight, first scheduling":                  {of(19, dynamicWeight), free, false, targets{target("a", 10), target("b", 6), target("c", 3)}, ""},
		"dynamic weight, fewer replicas than capacity":      {of(8, dynamicWeight), free, false, targets{target("a", 4), target("b", 3), target("c", 1)}, ""},
		"dynamic weight, not enough capacity":               {of(20, dynamicWeight), free, false, nil, "failed to assign replicas: failed to scale up: Clusters available replicas 19 are not enough to schedule: 20 replicas wanted, room for 19 (a 10, b 6, c 3)."},
		"dynamic weight, scale up adds":                     {of(12, dynamicWeight, target("c", 4)), free, false, targets{target("a", 4), target("b", 3), target("c", 5)}, ""},
		"dynamic weight, scale down ignores capacity":       {of(6, dynamicWeight, target("a", 8), target("b", 4)), map[string]int32{"a": 0, "b": 0, "c": 99}, false, targets{target("a", 4), target("b", 2)}, ""},
		"dynamic weight, unchanged: keeps the old order":    {of(6, dynamicWeight, target("b", 4), target("a", 2)), free, false, targets{target("b", 4), target("a", 2)}, ""},
		"dynamic weight, a target is no candidate any more": {of(6, dynamicWeight, target("a", 4), target("gone", 2)), map[string]int32{"a": 0, "b": 2, "c": 0}, false, targets{target("a", 4), target("b", 2)}, ""},
		"dynamic weight, unknown capacity fits everything":  {of(6, dynamicWeight), nil, false, targets{target("a", 2), target("b", 2), target("c", 2)}, ""},
		"dynamic weight, total capacity beyond 32 bits":     {of(3, dynamicWeight), map[string]int32{"a": 2147483646, "b": 2147483646, "c": 2147483646}, false, targets{target("a", 1), target("b", 1), target("c", 1)}, ""},
		"scale down to nothing":                             {withRequirements(of(0, dynamicWeight, target("a", 8))), free, false, nil, ""},

		"aggregated, first scheduling: largest capacity first":     {of(12, aggregate), free, false, targets{target("a", 7), target("b", 5)}, ""},
		"aggregated, one cluster is sufficient":                    {of(10, aggregate), free, false, targets{target("a", 10)}, ""},
		"aggregated, not enough capacity":                          {of(20, aggregate), free, false, nil, "failed to assign replicas: failed to scale up: Clusters available replicas 19 are not enough to schedule: 20 replicas wanted, room for 19 (a 10, b 6, c 3)."},
		"aggregated, scale up prefers current targets":             {of(5, aggregate, target("c", 3)), free, false, targets{target("c", 5)}, ""},
		"aggregated, scale up continues with the largest capacity": {of(8, aggregate, target("c", 3)), free, false, targets{target("a", 4), target("c", 4)}, ""},
		"aggregated, other current targets follow by name":         {of(13, aggregate, target("c", 3), target("b", 6)), map[string]int32{"a": 10, "b": 0, "c": 9}, false, targets{target("c", 7), target("b", 6)}, ""},
		"aggregated, scale down keeps the largest":                 {of(5, aggregate, target("b", 3), target("a", 6)), free, false, targets{target("a", 5)}, ""},
		"aggregated, unchanged":                                    {of(9, aggregate, target("b", 3), target("a", 6)), free, false, targets{target("b", 3), target("a", 6)}, ""},
		"aggregated, evicted replicas go to other clusters":        {of(9, aggregate, target("b", 3)), map[string]int32{"a": 10, "b": 0, "c": 0}, false, targets{target("a", 6), target("b", 3)}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.wantError != "" {
				test.want = test.spec.Clusters // every error except FitError keeps the previous targets
			}
			in := newInput(test.spec, members("b", "c", "a"), test.capacity)
			in.Features.EmptyWorkload = test.empty
			checkSchedule(t, in, test.want, test.wantError)
		})
	}
}

func TestRescheduleDividesFromScratch(t *testing.T) {
	tests := map[string]struct {
		strategy  *policyv1alpha1.ReplicaSchedulingStrategy
		replicas  int32
		capacity  map[string]int32
		want      targets
		wantError string
	}{
		"dynamic weight counts current replicas as capacity": {dynamicWeight, 8, map[string]int32{"a": 0, "b": 8}, targets{target("a", 4), target("b", 4)}, ""},
		"aggregated does not prefer current targets":         {aggregate, 8, map[string]int32{"a": 0, "b": 20}, targets{target("b", 8)}, ""},
		"not enough capacity":                                {aggregate, 9, map[string]int32{"a": 0, "b": 0}, targets{target("a", 8)}, "failed to assign replicas: failed to schedule afresh: Clusters available replicas 8 are not enough to schedule: 9 replicas wanted, room for 8 (a 8, b 0)."},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			spec := deployment(test.replicas, policyv1alpha1.Placement{ReplicaScheduling: test.strategy}, target("a", 8))
			checkSchedule(t, withRescheduleRequest(newInput(spec, members("a", "b"), test.capacity)), test.want, test.wantError)
		})
	}
}

func TestComponents(t *testing.T) {
	two := []workv1alpha2.Component{{Name: "x", Replicas: 1}, {Name: "y", Replicas: 2}}
	recorded := []workv1alpha2.TargetComponent{{Name: "x", Replicas: 1}, {Name: "y", Replicas: 2}}
	one := two[:1]
	single := policyv1alpha1.Placement{ReplicaScheduling: aggregate, SpreadConstraints: []policyv1alpha1.SpreadConstraint{spreadBy("cluster", 1, 1)}}
	anywhere := policyv1alpha1.Placement{ReplicaScheduling: aggregate}
	tests := map[string]struct {
		components []workv1alpha2.Component
		placement  policyv1alpha1.Placement
		gate       bool
		capacity   map[string]int32
		want       targets
		wantError  string
	}{
		"a set goes to the cluster with capacity":             {two, single, true, map[string]int32{"a": 0, "b": 1}, targets{{Name: "b", Components: recorded}}, ""},
		"a set goes to the largest capacity":                  {two, single, true, map[string]int32{"a": 2, "b": 1}, targets{{Name: "a", Components: recorded}}, ""},
		"a set goes anywhere if the capacity is unknown":      {two, single, true, nil, targets{{Name: "a", Components: recorded}}, ""},
		"no cluster has capacity for a set":                   {two, single, true, map[string]int32{"a": 0, "b": 0}, nil, "failed to select clusters: no enough resource when selecting 1 clusters: 1 set of components wanted, room for 0 (a 0)"},
		"a single component is not recorded":                  {one, single, true, map[string]int32{"a": 1, "b": 0}, targets{{Name: "a"}}, ""},
		"without the constraint to one cluster":               {two, anywhere, true, map[string]int32{"a": 0, "b": 0}, targets{{Name: "a"}, {Name: "b"}}, ""},
		"gate disabled: one cluster without a capacity check": {two, single, false, map[string]int32{"a": 0, "b": 0}, targets{{Name: "a"}}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			spec := deployment(0, test.placement)
			spec.Components = test.components
			in := newInput(spec, members("a", "b"), test.capacity)
			in.Features.MultiplePodTemplates = test.gate
			checkSchedule(t, in, test.want, test.wantError)
		})
	}
}

func TestDemandOf(t *testing.T) {
	spec := deployment(3, policyv1alpha1.Placement{SpreadConstraints: []policyv1alpha1.SpreadConstraint{spreadBy("cluster", 1, 1)}})
	spec.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{PriorityClassName: "high"}
	spec.Components = []workv1alpha2.Component{{Name: "x", Replicas: 1}}
	replicas := capacity.Demand{Workload: spec.Resource, Requirements: spec.ReplicaRequirements}
	sets := replicas
	sets.Components = spec.Components
	tests := map[string]struct {
		gate bool
		want capacity.Demand
	}{
		"replicas":                             {false, replicas},
		"sets if the components stay together": {true, sets},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, DemandOf(spec, Features{MultiplePodTemplates: test.gate})); diff != "" {
				t.Errorf("demand (-want +got):\n%s", diff)
			}
		})
	}
}
