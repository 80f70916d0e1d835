package work

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
)

// boundDeployment returns the binding of the Deployment in these tests, with 2 replicas in m1 and 3 in
// m2.
func boundDeployment() *workv1alpha2.ResourceBinding {
	bound := resourceBinding(2, 3)
	bound.UID, bound.Generation = "binding-uid", 4
	bound.Spec.Resource = workv1alpha2.ObjectReference{
		APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "template-uid", ResourceVersion: "12",
	}
	return bound
}

// worksFrom returns the Works for all of the binding's targets, rendered from the given version of the
// template.
func worksFrom(t testing.TB, bound binding.Object, templateVersion string) []*workv1alpha1.Work {
	t.Helper()
	var works []*workv1alpha1.Work
	for _, target := range binding.TargetClusters(bound.BindingSpec()) {
		template := parseObject(t, deployment)
		template.SetResourceVersion(templateVersion)
		in := inputForFirstTarget(template, bound)
		in.Target, in.Cluster = target, newCluster(target.Name)
		rendered, err := Render(in)
		if err != nil {
			t.Fatal(err)
		}
		works = append(works, rendered)
	}
	return works
}

func TestWorkIsCurrentForTheSettingsFromWhichItIsRendered(t *testing.T) {
	purgedWithState := func(state string) func(*workv1alpha2.ResourceBinding) {
		return func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Clusters = b.Spec.Clusters[:1]
			b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{
				FromCluster: "m9", PurgeMode: policyv1alpha1.PurgeModeDirectly, PreservedLabelState: map[string]string{"job": state},
			}}
		}
	}
	job := func(b *workv1alpha2.ResourceBinding) {
		b.Spec.Resource.APIVersion, b.Spec.Resource.Kind = "batch/v1", "Job"
		b.Spec.Placement = &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided}}
	}
	tests := map[string]struct {
		before, change func(*workv1alpha2.ResourceBinding)
		isOutdated     bool
	}{
		"no change":                       {},
		"more replicas in the cluster":    {change: func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters[0].Replicas = 5 }, isOutdated: true},
		"more replicas in another":        {change: func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters[1].Replicas = 5 }},
		"a Job with replicas in another":  {before: job, change: func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters[1].Replicas = 5 }, isOutdated: true},
		"replicas of a kind without them": {before: func(b *workv1alpha2.ResourceBinding) { b.Spec.Replicas = 0 }, change: func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters[0].Replicas = 5 }},
		"another target": {change: func(b *workv1alpha2.ResourceBinding) {
			b.Spec.Clusters = append(b.Spec.Clusters, workv1alpha2.TargetCluster{Name: "m3"})
		}},
		"the cluster is not a target":                    {change: func(b *workv1alpha2.ResourceBinding) { b.Spec.Clusters = b.Spec.Clusters[1:] }, isOutdated: true},
		"a newer template":                               {change: func(b *workv1alpha2.ResourceBinding) { b.Spec.Resource.ResourceVersion = "101" }, isOutdated: true},
		"a template of an earlier version than the Work": {change: func(b *workv1alpha2.ResourceBinding) { b.Spec.Resource.ResourceVersion = "9" }},
		"a template without a version":                   {change: func(b *workv1alpha2.ResourceBinding) { b.Spec.Resource.ResourceVersion = "" }},
		"another template of the same name":              {change: func(b *workv1alpha2.ResourceBinding) { b.Spec.Resource.UID = "later" }, isOutdated: true},
		"another API version":                            {change: func(b *workv1alpha2.ResourceBinding) { b.Spec.Resource.APIVersion = "apps/v2" }, isOutdated: true},
		"suspended for all clusters":                     {change: func(b *workv1alpha2.ResourceBinding) { b.Spec.Suspension = suspendedOn() }, isOutdated: true},
		"suspended for the cluster":                      {change: func(b *workv1alpha2.ResourceBinding) { b.Spec.Suspension = suspendedOn("m1") }, isOutdated: true},
		"suspended for another cluster":                  {change: func(b *workv1alpha2.ResourceBinding) { b.Spec.Suspension = suspendedOn("m2") }},
		"objects preserved on deletion":                  {change: func(b *workv1alpha2.ResourceBinding) { b.Spec.PreserveResourcesOnDeletion = new(true) }, isOutdated: true},
		"preservation turned off explicitly":             {change: func(b *workv1alpha2.ResourceBinding) { b.Spec.PreserveResourcesOnDeletion = new(false) }},
		"another conflict resolution":                    {change: func(b *workv1alpha2.ResourceBinding) { b.Spec.ConflictResolution = policyv1alpha1.ConflictOverwrite }, isOutdated: true},
		"an eviction from another cluster": {change: func(b *workv1alpha2.ResourceBinding) {
			b.Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "m9", PurgeMode: policyv1alpha1.PurgeModeGracefully}}
		}},
		"the same preserved state":   {before: purgedWithState("1"), change: purgedWithState("1")},
		"another preserved state":    {before: purgedWithState("1"), change: purgedWithState("2"), isOutdated: true},
		"an invalid preserved state": {before: purgedWithState("1"), change: purgedWithState("not a label"), isOutdated: true},
		"scheduling fields": {change: func(b *workv1alpha2.ResourceBinding) {
			b.Spec.SchedulerName, b.Spec.Placement = "other", &policyv1alpha1.Placement{}
		}},
		"a failure of the cluster":     {change: func(b *workv1alpha2.ResourceBinding) { b.Annotations = failuresOf(`{"m1":"forbidden"}`) }, isOutdated: true},
		"a failure of another cluster": {change: func(b *workv1alpha2.ResourceBinding) { b.Annotations = failuresOf(`{"m2":"forbidden"}`) }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			bound := boundDeployment()
			if tc.before != nil {
				tc.before(bound)
			}
			stored := renderedWork(t, func(in *RenderInput) {
				in.Binding, in.Target, in.PassPreservedState = bound, bound.Spec.Clusters[0], true
			})
			if tc.change != nil {
				tc.change(bound)
			}
			isCurrent := RenderingOf(bound).IsCurrent(stored)
			if isCurrent == tc.isOutdated {
				t.Errorf("current: %t", isCurrent)
			}
			in := inputForFirstTarget(parseObject(t, deployment), bound)
			in.PassPreservedState = true
			if next, err := Render(in); isCurrent && (err != nil || !cmp.Equal(stored.Spec, next.Spec)) {
				t.Errorf("a Work that would be written differently is current; %v", err)
			}
		})
	}
}

func suspendedOn(clusters ...string) *workv1alpha2.Suspension {
	suspension := &workv1alpha2.Suspension{}
	if len(clusters) == 0 {
		suspension.Dispatching = new(true)
	} else {
		suspension.DispatchingOnClusters = &policyv1alpha1.SuspendClusters{ClusterNames: clusters}
	}
	return suspension
}

func failuresOf(text string) map[string]string {
	return map[string]string{workv1alpha2.RenderFailuresAnnotation: text}
}

func TestRenderingIsComplete(t *testing.T) {
	other := boundDeployment()
	other.Spec.Clusters[1].Replicas = 1
	outdated := worksFrom(t, other, "12")[1]
	terminating := outdated.DeepCopy()
	terminating.DeletionTimestamp = &metav1.Time{}
	unmarked := worksFrom(t, boundDeployment(), "12")[1]
	delete(unmarked.Annotations, workv1alpha1.RenderedFromAnnotation)
	astray := outdated.DeepCopy()
	astray.Namespace = ExecutionNamespace("m3")
	current := worksFrom(t, boundDeployment(), "12")
	tests := map[string]struct {
		works       []*workv1alpha1.Work
		annotations map[string]string
		want        bool
	}{
		"all targets have a current Work":                 {works: current, want: true},
		"a target has no Work":                            {works: current[:1]},
		"a target has no Work, and a failure":             {works: current[:1], annotations: failuresOf(`{"m2":"forbidden"}`), want: true},
		"a target has an outdated Work":                   {works: []*workv1alpha1.Work{current[0], outdated}},
		"a target has an outdated Work, and a failure":    {works: []*workv1alpha1.Work{current[0], outdated}, annotations: failuresOf(`{"m2":"forbidden"}`), want: true},
		"a target has a current and an outdated Work":     {works: append([]*workv1alpha1.Work{outdated}, current...)},
		"an outdated Work is in deletion":                 {works: append([]*workv1alpha1.Work{terminating}, current...), want: true},
		"a target has only a Work in deletion":            {works: []*workv1alpha1.Work{current[0], terminating}},
		"a cluster that is no target has a Work":          {works: append([]*workv1alpha1.Work{astray}, current...), want: true},
		"an unmarked Work":                                {works: []*workv1alpha1.Work{current[0], unmarked}},
		"an unmarked Work that the binding records":       {works: []*workv1alpha1.Work{current[0], unmarked}, annotations: map[string]string{workv1alpha2.RenderedGenerationAnnotation: "binding-uid/4"}, want: true},
		"an unmarked Work of an earlier generation":       {works: []*workv1alpha1.Work{current[0], unmarked}, annotations: map[string]string{workv1alpha2.RenderedGenerationAnnotation: "binding-uid/3"}},
		"an unmarked Work that another binding records":   {works: []*workv1alpha1.Work{current[0], unmarked}, annotations: map[string]string{workv1alpha2.RenderedGenerationAnnotation: "earlier/4"}},
		"a missing Work that the binding recorded before": {works: current[:1], annotations: map[string]string{workv1alpha2.RenderedGenerationAnnotation: "binding-uid/4"}},
		"failures that cannot be decoded":                 {works: current[:1], annotations: failuresOf(`["m2"]`)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			bound := boundDeployment()
			bound.Annotations = tc.annotations
			if got := RenderingOf(bound).IsComplete(tc.works); got != tc.want {
				t.Errorf("complete: %t", got)
			}
		})
	}
	if nowhere := resourceBinding(); !RenderingOf(nowhere).IsComplete(current) {
		t.Error("a binding without targets has something to render")
	}
}

func TestFailuresOfOtherClustersAreIgnored(t *testing.T) {
	bound := boundDeployment()
	bound.Annotations = failuresOf(`{"m2":"forbidden","m7":"it was a target"}`)
	if diff := cmp.Diff(map[string]string{"m2": "forbidden"}, RenderingOf(bound).Failures()); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
}

func TestWithReport(t *testing.T) {
	const failures, generation = workv1alpha2.RenderFailuresAnnotation, workv1alpha2.RenderedGenerationAnnotation
	tests := map[string]struct {
		stored map[string]string
		report RenderReport
		// want is nil if nothing must be written.
		want map[string]string
	}{
		"marked Works without failures": {},
		"a failure":                     {report: RenderReport{Failures: map[string]string{"m1": "forbidden"}}, want: map[string]string{failures: `{"m1":"forbidden"}`}},
		"the same failure":              {stored: map[string]string{failures: `{"m1":"forbidden"}`}, report: RenderReport{Failures: map[string]string{"m1": "forbidden"}}},
		"the end of a failure":          {stored: map[string]string{failures: `{"m1":"forbidden"}`, "note": "x"}, want: map[string]string{"note": "x"}},
		"an unmarked Work":              {report: RenderReport{HasUnmarkedWork: true}, want: map[string]string{generation: "binding-uid/4"}},
		"an unmarked Work that is recorded": {
			stored: map[string]string{generation: "binding-uid/4"}, report: RenderReport{HasUnmarkedWork: true},
		},
		"an unmarked Work in a later generation": {
			stored: map[string]string{generation: "binding-uid/3"}, report: RenderReport{HasUnmarkedWork: true}, want: map[string]string{generation: "binding-uid/4"},
		},
		"an obsolete record stays until the next write": {stored: map[string]string{generation: "binding-uid/3"}},
		"an obsolete record goes with the next write": {
			stored: map[string]string{generation: "binding-uid/3"}, report: RenderReport{Failures: map[string]string{"m1": "forbidden"}},
			want: map[string]string{failures: `{"m1":"forbidden"}`},
		},
		"both at once": {
			report: RenderReport{Failures: map[string]string{"m1": "forbidden"}, HasUnmarkedWork: true},
			want:   map[string]string{failures: `{"m1":"forbidden"}`, generation: "binding-uid/4"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			bound := boundDeployment()
			bound.Annotations = tc.stored
			before := bound.DeepCopy()
			recorded := WithReport(bound, tc.report)
			if (recorded != nil) != (tc.want != nil) {
				t.Fatalf("a write: %t", recorded != nil)
			}
			if recorded == nil {
				return
			}
			if diff := cmp.Diff(tc.want, recorded.GetAnnotations()); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
			if WithReport(recorded, tc.report) != nil {
				t.Error("the report is recorded twice")
			}
			if !HasNewReport(bound, recorded) || HasNewReport(recorded, recorded) {
				t.Error("the report is not recognized as new")
			}
			if diff := cmp.Diff(before, bound); diff != "" {
				t.Errorf("the stored binding was changed: %s", diff)
			}
		})
	}
}

// TestReportOfManyFailuresIsBounded checks the size of a report with many failures, because the API
// server rejects an object whose annotations exceed 256 KiB.
func TestReportOfManyFailuresIsBounded(t *testing.T) {
	bound, report := boundDeployment(), RenderReport{Failures: map[string]string{}}
	bound.Spec.Clusters = nil
	for i := range 2000 {
		name := fmt.Sprintf("member-%04d", i)
		bound.Spec.Clusters = append(bound.Spec.Clusters, workv1alpha2.TargetCluster{Name: name})
		report.Failures[name] = strings.Repeat("é", 1000)
	}
	recorded := WithReport(bound, report)
	if size := len(recorded.GetAnnotations()[workv1alpha2.RenderFailuresAnnotation]); size > 128<<10 {
		t.Errorf("the annotation has %d bytes", size)
	}
	if got := len(RenderingOf(recorded).Failures()); got != 2000 {
		t.Errorf("%d failures are left", got)
	}
	if WithReport(recorded, report) != nil {
		t.Error("a cut report is recorded twice")
	}
}

// TestRenderedFromStaysTheSameInAllReleases checks that the text never changes, because a changed text
// would cause a write of every Work or binding in an installation.
func TestRenderedFromStaysTheSameInAllReleases(t *testing.T) {
	bound := boundDeployment()
	if got := RenderedFrom(bound, bound.Spec.Clusters[0], "12"); got != "8931c01af11f27d0/12" {
		t.Errorf("got %q", got)
	}
}

func TestMarkIsWrittenOnlyWithAnotherChange(t *testing.T) {
	rendered := func(replicas int32, templateVersion string) *workv1alpha1.Work {
		bound := boundDeployment()
		bound.Spec.Clusters[0].Replicas = replicas
		return worksFrom(t, bound, templateVersion)[0]
	}
	unmarked := rendered(2, "12")
	delete(unmarked.Annotations, workv1alpha1.RenderedFromAnnotation)
	tests := map[string]struct {
		stored, desired *workv1alpha1.Work
		isChanged       bool
	}{
		"a newer template of the same content": {rendered(2, "12"), rendered(2, "13"), false},
		"a Work of an earlier release":         {unmarked, rendered(2, "12"), false},
		"other replicas":                       {rendered(2, "12"), rendered(4, "13"), true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			merged, isChanged, err := Merge(tc.stored, tc.desired)
			if err != nil || isChanged != tc.isChanged {
				t.Fatalf("changed: %t, %v", isChanged, err)
			}
			want := tc.stored
			if isChanged {
				want = tc.desired
			}
			if diff := cmp.Diff(want.Annotations, merged.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}

func BenchmarkRenderingIsComplete(b *testing.B) {
	for _, kind := range []string{"Deployment", "Job"} {
		for _, clusters := range []int{2, 1000} {
			b.Run(fmt.Sprintf("%s in %d clusters", kind, clusters), func(b *testing.B) {
				bound := boundDeployment()
				bound.Spec.Clusters = nil
				if kind == "Job" {
					bound.Spec.Resource.APIVersion, bound.Spec.Resource.Kind = "batch/v1", kind
					bound.Spec.Placement = &policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{ReplicaSchedulingType: policyv1alpha1.ReplicaSchedulingTypeDivided}}
				}
				for i := range clusters {
					bound.Spec.Clusters = append(bound.Spec.Clusters, workv1alpha2.TargetCluster{Name: fmt.Sprintf("m%d", i), Replicas: 1})
				}
				works := worksFrom(b, bound, "12")
				for b.Loop() {
					if !RenderingOf(bound).IsComplete(works) {
						b.Fatal("not complete")
					}
				}
			})
		}
	}
}
