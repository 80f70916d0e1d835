package failover

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/toleration"
)

func TestEvict(t *testing.T) {
	eviction := Eviction{From: "a", PurgeMode: policyv1alpha1.PurgeModeGracefully, Reason: "R", Producer: "P"}
	task := workv1alpha2.GracefulEvictionTask{FromCluster: "a", PurgeMode: policyv1alpha1.PurgeModeGracefully, Reason: "R", Producer: "P"}
	with := func(change func(*workv1alpha2.GracefulEvictionTask)) []workv1alpha2.GracefulEvictionTask {
		return []workv1alpha2.GracefulEvictionTask{withChange(task, change)}
	}
	tests := map[string]struct {
		spec     workv1alpha2.ResourceBindingSpec
		eviction Eviction
		want     workv1alpha2.ResourceBindingSpec
		not      bool
	}{
		"a target is evicted with its replicas": {
			spec:     workv1alpha2.ResourceBindingSpec{Clusters: []workv1alpha2.TargetCluster{target("a", 2), target("b", 1)}},
			eviction: eviction,
			want: workv1alpha2.ResourceBindingSpec{
				Clusters:              []workv1alpha2.TargetCluster{target("b", 1)},
				GracefulEvictionTasks: with(func(task *workv1alpha2.GracefulEvictionTask) { task.Replicas = new(int32(2)) }),
			},
		},
		"0 replicas are omitted": {
			spec: workv1alpha2.ResourceBindingSpec{Clusters: []workv1alpha2.TargetCluster{target("a", 0)}}, eviction: eviction,
			want: workv1alpha2.ResourceBindingSpec{GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{task}},
		},
		"an existing task stays unchanged": {
			spec: workv1alpha2.ResourceBindingSpec{
				Clusters:              []workv1alpha2.TargetCluster{target("a", 2)},
				GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{evictionTask("a", 1, 1)},
			},
			eviction: eviction,
			want:     workv1alpha2.ResourceBindingSpec{GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{evictionTask("a", 1, 1)}},
		},
		"a cluster that is no target is not evicted": {
			spec: workv1alpha2.ResourceBindingSpec{Clusters: []workv1alpha2.TargetCluster{target("b", 2)}}, eviction: eviction,
			want: workv1alpha2.ResourceBindingSpec{Clusters: []workv1alpha2.TargetCluster{target("b", 2)}}, not: true,
		},
		"Never waits for the user": {
			spec:     workv1alpha2.ResourceBindingSpec{Clusters: []workv1alpha2.TargetCluster{target("a", 0)}},
			eviction: Eviction{From: "a", PurgeMode: policyv1alpha1.PurgeModeNever, Reason: "R", Producer: "P"},
			want: workv1alpha2.ResourceBindingSpec{GracefulEvictionTasks: with(func(task *workv1alpha2.GracefulEvictionTask) {
				task.PurgeMode, task.SuppressDeletion = policyv1alpha1.PurgeModeNever, new(true)
			})},
		},
		"a long message is cut": {
			spec:     workv1alpha2.ResourceBindingSpec{Clusters: []workv1alpha2.TargetCluster{target("a", 0)}},
			eviction: Eviction{From: "a", PurgeMode: policyv1alpha1.PurgeModeGracefully, Reason: "R", Producer: "P", Message: strings.Repeat("x", 2000)},
			want: workv1alpha2.ResourceBindingSpec{GracefulEvictionTasks: with(func(task *workv1alpha2.GracefulEvictionTask) {
				task.Message = strings.Repeat("x", 1021) + "..."
			})},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Evict(&test.spec, test.eviction); got == test.not {
				t.Errorf("Evict = %t", got)
			}
			if diff := cmp.Diff(test.want, test.spec); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestEvictLosesNoReplica(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawBinding(t)
		b.Spec.GracefulEvictionTasks = nil
		var before, after int32
		for _, each := range b.Spec.Clusters {
			before += each.Replicas
		}
		Evict(&b.Spec, Eviction{From: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "from")})
		for _, each := range b.Spec.Clusters {
			after += each.Replicas
		}
		for _, task := range b.Spec.GracefulEvictionTasks {
			if task.Replicas != nil {
				after += *task.Replicas
			}
		}
		if before != after {
			t.Fatalf("%d replicas became %d", before, after)
		}
	})
}

func taintedCluster() *clusterv1alpha1.Cluster {
	cluster := &clusterv1alpha1.Cluster{}
	cluster.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoExecute, TimeAdded: &metav1.Time{Time: noon}}}
	return cluster
}

func TestEvictionDeadline(t *testing.T) {
	cluster := taintedCluster()
	out := toleration.Deadline{Taint: &cluster.Spec.Taints[0]}
	tolerant := &policyv1alpha1.Placement{ClusterTolerations: []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}}}
	tests := map[string]struct {
		applied   string
		placement *policyv1alpha1.Placement
		want      toleration.Deadline
		unknown   bool
	}{
		"the applied tolerations count": {
			applied: `{"clusterTolerations":[{"key":"k","operator":"Exists"}]}`, placement: &policyv1alpha1.Placement{},
		},
		"the tolerations in the spec do not count":                 {applied: `{}`, placement: tolerant, want: out},
		"without a record the tolerations in the spec count":       {placement: tolerant},
		"with an invalid record the tolerations in the spec count": {applied: `{`, placement: tolerant},
		"a workload without a placement is unknown":                {unknown: true},
		"no tolerations tolerate nothing":                          {placement: &policyv1alpha1.Placement{}, want: out},
		"a record of another type is ignored":                      {applied: `[]`, placement: tolerant},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := &workv1alpha2.ResourceBinding{}
			b.Spec.Placement = test.placement
			if test.applied != "" {
				b.Annotations = map[string]string{policyv1alpha1.AppliedPlacementAnnotation: test.applied}
			}
			deadline, ok := EvictionDeadline(cluster, b)
			if ok == test.unknown {
				t.Errorf("known is %t", ok)
			}
			if diff := cmp.Diff(test.want, deadline); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestClusterEvictionPurgeModes(t *testing.T) {
	tests := map[string]struct {
		failover *policyv1alpha1.FailoverBehavior
		want     policyv1alpha1.PurgeMode
	}{
		"the default without a policy":               {want: policyv1alpha1.PurgeModeDirectly},
		"the default with application failover only": {failover: &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{}}, want: policyv1alpha1.PurgeModeDirectly},
		"Gracefully if the policy sets none":         {failover: &policyv1alpha1.FailoverBehavior{Cluster: &policyv1alpha1.ClusterFailoverBehavior{}}, want: policyv1alpha1.PurgeModeGracefully},
		"the purge mode of the policy": {
			failover: &policyv1alpha1.FailoverBehavior{Cluster: &policyv1alpha1.ClusterFailoverBehavior{PurgeMode: policyv1alpha1.PurgeModeDirectly}},
			want:     policyv1alpha1.PurgeModeDirectly,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBinding(1, target("a", 1))
			b.Spec.Failover = test.failover
			got, err := ClusterEviction(b, "a", toleration.Deadline{}, policyv1alpha1.PurgeModeDirectly, true)
			if err != nil || got.PurgeMode != test.want || got.Producer != "TaintManager" || got.Reason != "TaintUntolerated" {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func TestClusterEvictionMessage(t *testing.T) {
	taint := &taintedCluster().Spec.Taints[0]
	for want, deadline := range map[string]toleration.Deadline{
		"the taint k:NoExecute is not tolerated":            {Taint: taint},
		"the taint k:NoExecute is not tolerated any longer": {Taint: taint, Until: noon},
	} {
		if got, err := ClusterEviction(newBinding(1, target("a", 1)), "a", deadline, policyv1alpha1.PurgeModeGracefully, false); err != nil || got.Message != want {
			t.Errorf("%q, %v, want %q", got.Message, err, want)
		}
	}
}

func TestApplicationEviction(t *testing.T) {
	tests := map[string]struct {
		behavior policyv1alpha1.ApplicationFailoverBehavior
		graceful bool
		want     Eviction
		wrong    string
	}{
		"gracefully with the default grace period": {graceful: true, want: Eviction{PurgeMode: "Gracefully", GracePeriodSeconds: new(int32(600))}},
		"gracefully with its own grace period": {
			behavior: policyv1alpha1.ApplicationFailoverBehavior{PurgeMode: "Gracefully", GracePeriodSeconds: new(int32(30))}, graceful: true,
			want: Eviction{PurgeMode: "Gracefully", GracePeriodSeconds: new(int32(30))},
		},
		"gracefully with the gate disabled": {wrong: "feature gate GracefulEviction"},
		"directly":                          {behavior: policyv1alpha1.ApplicationFailoverBehavior{PurgeMode: "Directly"}, want: Eviction{PurgeMode: "Directly"}},
		"never":                             {behavior: policyv1alpha1.ApplicationFailoverBehavior{PurgeMode: "Never"}, want: Eviction{PurgeMode: "Never"}},
		"an unknown purge mode":             {behavior: policyv1alpha1.ApplicationFailoverBehavior{PurgeMode: "Slowly"}, wrong: "must be Directly"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for producer, b := range map[string]binding.Object{
				"resource-binding-application-failover-controller":         &workv1alpha2.ResourceBinding{},
				"cluster-resource-binding-application-failover-controller": &workv1alpha2.ClusterResourceBinding{},
			} {
				b.BindingSpec().Failover = &policyv1alpha1.FailoverBehavior{Application: &test.behavior}
				got, err := ApplicationEviction(b, "a", test.graceful, false)
				if test.wrong != "" {
					if err == nil || !strings.Contains(err.Error(), test.wrong) {
						t.Errorf("error %v", err)
					}
					continue
				}
				want := test.want
				want.From, want.Reason, want.Producer, want.Message = "a", "ApplicationFailure", producer, "unhealthy for longer than 5m0s"
				if diff := cmp.Diff(want, got); err != nil || diff != "" {
					t.Errorf("%v (-want +got):\n%s", err, diff)
				}
			}
		})
	}
}

func TestHasApplicationFailover(t *testing.T) {
	part := func(change func(*workv1alpha2.ResourceBinding)) *workv1alpha2.ResourceBinding {
		b := withHealth(newBinding(1, target("a", 1)), healthy, "a")
		b.Spec.PropagateDeps = true
		b.Spec.Failover = &policyv1alpha1.FailoverBehavior{Application: &policyv1alpha1.ApplicationFailoverBehavior{}}
		change(b)
		return b
	}
	tests := map[string]struct {
		of       binding.Object
		unjudged bool
		want     bool
	}{
		"a policy with application failover": {of: part(func(*workv1alpha2.ResourceBinding) {}), want: true},
		"no policy for applications":         {of: part(func(b *workv1alpha2.ResourceBinding) { b.Spec.Failover.Application = nil })},
		"no policy at all":                   {of: part(func(b *workv1alpha2.ResourceBinding) { b.Spec.Failover = nil })},
		"no report yet":                      {of: part(func(b *workv1alpha2.ResourceBinding) { b.Status.AggregatedStatus = nil })},
		"dependencies are not propagated":    {of: part(func(b *workv1alpha2.ResourceBinding) { b.Spec.PropagateDeps = false })},
		"a terminating binding":              {of: part(func(b *workv1alpha2.ResourceBinding) { b.DeletionTimestamp = &metav1.Time{Time: noon} })},
		"a kind without health":              {of: part(func(*workv1alpha2.ResourceBinding) {}), unjudged: true},
		"a cluster-wide workload has no dependencies": {
			of: &workv1alpha2.ClusterResourceBinding{Status: part(func(*workv1alpha2.ResourceBinding) {}).Status, Spec: part(func(b *workv1alpha2.ResourceBinding) { b.Spec.PropagateDeps = false }).Spec}, want: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := HasApplicationFailover(test.of, !test.unjudged); got != test.want {
				t.Errorf("TakesPart = %t", got)
			}
		})
	}
}

func TestUnhealthySince(t *testing.T) {
	unknown := workv1alpha2.ResourceUnknown
	minute := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Minute) }
	tests := map[string]struct {
		memory UnhealthySince
		bound  *workv1alpha2.ResourceBinding
		want   UnhealthySince
	}{
		"a new unhealthy target is recorded": {bound: withHealth(newBinding(1, target("a", 1)), unhealthy, "a"), want: UnhealthySince{"a": noon.Add(time.Millisecond)}},
		"an unhealthy target keeps its first time": {
			memory: UnhealthySince{"a": minute(-5)}, bound: withHealth(newBinding(1, target("a", 1)), unhealthy, "a"), want: UnhealthySince{"a": minute(-5)},
		},
		"a healthy target is removed":            {memory: UnhealthySince{"a": minute(-5)}, bound: withHealth(newBinding(1, target("a", 1)), healthy, "a"), want: UnhealthySince{}},
		"an unknown health is removed":           {memory: UnhealthySince{"a": minute(-5)}, bound: withHealth(newBinding(1, target("a", 1)), unknown, "a"), want: UnhealthySince{}},
		"a cluster that is no target is removed": {memory: UnhealthySince{"a": minute(-5)}, bound: withHealth(newBinding(1, target("b", 1)), unhealthy, "a"), want: UnhealthySince{}},
		"a cluster with an eviction task is not recorded": {
			bound: func() *workv1alpha2.ResourceBinding {
				b := withHealth(newBinding(1, target("a", 1)), unhealthy, "a")
				b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{evictionTask("a", 1, 1)}
				return b
			}(), want: UnhealthySince{},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := test.memory.Update(&test.bound.Spec, &test.bound.Status, noon.Add(time.Millisecond))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			text, err := got.Encode()
			if err != nil {
				t.Fatal(err)
			}
			stored := UnhealthySince{}
			for cluster, since := range got {
				stored[cluster] = since.Truncate(time.Second)
			}
			if diff := cmp.Diff(stored, ParseUnhealthySince(text, noon)); diff != "" {
				t.Errorf("stored and read (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOverdue(t *testing.T) {
	memory := UnhealthySince{"c": noon.Add(-301 * time.Second), "a": noon.Add(-300 * time.Second), "b": noon.Add(-299 * time.Second), "d": noon}
	clusters, next := memory.Overdue(memory, &policyv1alpha1.ApplicationFailoverBehavior{}, noon)
	if diff := cmp.Diff([]string{"a", "c"}, clusters); diff != "" || !next.Equal(noon.Add(time.Second)) {
		t.Errorf("next at %s (-want +got):\n%s", next, diff)
	}
	started := UnhealthySince{"a": noon.Add(-29 * time.Second), "b": noon, "c": noon.Add(-30 * time.Second), "d": noon}
	clusters, next = memory.Overdue(started, &policyv1alpha1.ApplicationFailoverBehavior{}, noon)
	if diff := cmp.Diff([]string{"c"}, clusters); diff != "" || !next.Equal(noon.Add(time.Second)) {
		t.Errorf("after a start, next at %s (-want +got):\n%s", next, diff)
	}
	soon := policyv1alpha1.ApplicationFailoverBehavior{}
	soon.DecisionConditions.TolerationSeconds = new(int32(0))
	if clusters, next = memory.Overdue(memory, &soon, noon); len(clusters) != 4 || !next.IsZero() {
		t.Errorf("without toleration %v are overdue, next at %s", clusters, next)
	}
}

func FuzzParseUnhealthySince(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"a":"2026-05-01T12:00:00Z"}`, `{"a":null}`, `{"a":"2126-05-01T12:00:00Z"}`, "["} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		memory := ParseUnhealthySince(text, noon)
		for cluster, since := range memory {
			if since.After(noon) || since.IsZero() {
				t.Errorf("%q has been unhealthy since %s", cluster, since)
			}
		}
		if _, err := memory.Encode(); err != nil {
			t.Error(err)
		}
	})
}

const status = `{"name":"","parent":null,"errors":[],"checkpoint":{"id":"s3-0042","steps":7},"ready":true,"conditions":[{"type":"Ready","status":"True"},{"type":"Old","status":"False"}]}`

func TestCollectState(t *testing.T) {
	items := []workv1alpha2.AggregatedStatusItem{
		{ClusterName: "a", Status: &runtime.RawExtension{Raw: []byte(status)}}, {ClusterName: "b"},
		{ClusterName: "c", Status: &runtime.RawExtension{Raw: []byte("{")}},
		{ClusterName: "d", Status: &runtime.RawExtension{Raw: []byte("null")}},
		{ClusterName: "e", Status: &runtime.RawExtension{Raw: []byte("{}")}},
	}
	tests := map[string]struct {
		path, cluster, want, wrong string
	}{
		"a text":                          {path: "{.checkpoint.id}", want: "s3-0042"},
		"a path without braces":           {path: ".checkpoint.id", want: "s3-0042"},
		"a path without a leading dot":    {path: "checkpoint.id", want: "s3-0042"},
		"a number":                        {path: "{.checkpoint.steps}", want: "7"},
		"a boolean":                       {path: "{.ready}", want: "true"},
		"an element found by a field":     {path: `{.conditions[?(@.type=="Ready")].status}`, want: "True"},
		"text around it":                  {path: "at-{.checkpoint.steps}", want: "at-7"},
		"a key that is missing":           {path: "{.checkpoint.name}", wrong: "name is not found"},
		"an element that is missing":      {path: "{.conditions[5].status}", wrong: "out of bounds"},
		"an invalid path":                 {path: "{.checkpoint", wrong: "unclosed action"},
		"an invalid label value":          {path: "{.checkpoint}", wrong: "select a shorter text"},
		"a cluster that has not reported": {path: "{.ready}", cluster: "b", wrong: "has not reported"},
		"an unknown cluster":              {path: "{.ready}", cluster: "z", wrong: "has not reported"},
		"an invalid status":               {path: "{.ready}", cluster: "c", wrong: "reading the status"},
		"a path into a boolean":           {path: "{.ready.so}", wrong: "jsonPath"},
		"a filter without matches":        {path: `{.conditions[?(@.type=="None")].status}`, wrong: "selects nothing"},
		"an element of an empty list":     {path: `{.errors[*].id}`, wrong: "selects nothing"},
		"an empty text":                   {path: "{.name}", want: ""},
		"a field that is null":            {path: "{.parent}", wrong: "selects nothing"},
		"a status that is null":           {path: "{$}", cluster: "d", wrong: "has not reported"},
		"a status without fields":         {path: "{.ready}", cluster: "e", wrong: "ready is not found"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.cluster == "" {
				test.cluster = "a"
			}
			got, err := CollectState([]policyv1alpha1.StatePreservationRule{{AliasLabelName: "l", JSONPath: test.path}}, items, test.cluster)
			if test.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), test.wrong) {
					t.Errorf("%v, error %v", got, err)
				}
				return
			}
			if diff := cmp.Diff(map[string]string{"l": test.want}, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestStateIsPreservedWithClustersBeforeFailover(t *testing.T) {
	evictions := map[string]func(b *workv1alpha2.ResourceBinding, cluster string, preserve bool) (Eviction, error){
		"cluster failover": func(b *workv1alpha2.ResourceBinding, cluster string, preserve bool) (Eviction, error) {
			return ClusterEviction(b, cluster, toleration.Deadline{}, policyv1alpha1.PurgeModeGracefully, preserve)
		},
		"application failover": func(b *workv1alpha2.ResourceBinding, cluster string, preserve bool) (Eviction, error) {
			return ApplicationEviction(b, cluster, true, preserve)
		},
	}
	tests := map[string]struct {
		cluster  string
		disabled bool
		want     map[string]string
		fails    bool
	}{
		"the reported state is preserved":                           {cluster: "a", want: map[string]string{"l": "s3-0042"}},
		"the last status of a cluster that does not respond counts": {cluster: "c", want: map[string]string{"l": "s3-0042"}},
		"nothing is preserved if that is disabled":                  {cluster: "a", disabled: true},
		"a cluster without a status is not evicted":                 {cluster: "b", fails: true},
		"a cluster whose status lacks the state is not evicted":     {cluster: "d", fails: true},
	}
	for kind, evict := range evictions {
		for name, test := range tests {
			t.Run(kind+": "+name, func(t *testing.T) {
				got, err := evict(newBindingWithState(), test.cluster, !test.disabled)
				if (err != nil) != test.fails {
					t.Fatalf("error %v", err)
				}
				if diff := cmp.Diff(test.want, got.PreservedLabels); diff != "" {
					t.Errorf("state (-want +got):\n%s", diff)
				}
				var before []string
				if test.want != nil {
					before = []string{"a", "b", "c", "d"}
				}
				if diff := cmp.Diff(before, got.ClustersBefore); diff != "" {
					t.Errorf("clusters before (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// newBindingWithState returns a binding that preserves its state in both kinds of failover. Cluster b has
// not reported, c does not respond, and the status of d was truncated.
func newBindingWithState() *workv1alpha2.ResourceBinding {
	b := newBinding(4, target("a", 1), target("b", 1), target("c", 1), target("d", 1))
	b.Status.AggregatedStatus = []workv1alpha2.AggregatedStatusItem{
		{ClusterName: "a", Health: workv1alpha2.ResourceUnhealthy, Status: &runtime.RawExtension{Raw: []byte(status)}},
		{ClusterName: "b", Health: workv1alpha2.ResourceUnknown},
		{ClusterName: "c", Health: workv1alpha2.ResourceUnknown, Status: &runtime.RawExtension{Raw: []byte(status)}},
		{ClusterName: "d", Health: workv1alpha2.ResourceUnknown, Status: &runtime.RawExtension{Raw: []byte(`{"ready":false}`)}},
	}
	preservation := &policyv1alpha1.StatePreservation{Rules: []policyv1alpha1.StatePreservationRule{{AliasLabelName: "l", JSONPath: "{.checkpoint.id}"}}}
	b.Spec.Failover = &policyv1alpha1.FailoverBehavior{
		Cluster: &policyv1alpha1.ClusterFailoverBehavior{PurgeMode: policyv1alpha1.PurgeModeDirectly, StatePreservation: preservation},
		Application: &policyv1alpha1.ApplicationFailoverBehavior{
			PurgeMode: policyv1alpha1.PurgeModeDirectly, StatePreservation: preservation,
		},
	}
	return b
}

func FuzzCollectState(f *testing.F) {
	for _, seed := range []string{"{.checkpoint.id}", "{..status}", "{.conditions[-1:0:1]}", "{range .conditions[*]}{.type}{end}", "{.conditions[?(@.a==1)]}", "{$}", "{@['a']}", `{"x"}`, "{.[0]}", "{.conditions[0:2:0]}"} {
		f.Add(seed, status)
	}
	f.Fuzz(func(t *testing.T, path, document string) {
		if len(path) > 1000 || len(document) > 1000 {
			return
		}
		items := []workv1alpha2.AggregatedStatusItem{{ClusterName: "a", Status: &runtime.RawExtension{Raw: []byte(document)}}}
		state, err := CollectState([]policyv1alpha1.StatePreservationRule{{AliasLabelName: "l", JSONPath: path}}, items, "a")
		if err == nil && len(state) != 1 {
			t.Errorf("%v and no error", state)
		}
	})
}
