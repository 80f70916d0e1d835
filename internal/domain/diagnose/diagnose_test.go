package diagnose

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/guard"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/domain/work"
)

func TestHealthyTemplate(t *testing.T) {
	got := Trace(healthyFacts())
	four, two := int32(4), int32(2)
	const applied = "the member has the object, according to its Work"
	want := Diagnosis{
		Result: OK,
		Links: []Link{
			{Stage: StageTemplate, Result: OK, Reason: ReasonFound, Message: "Deployment shop/web wants 6 replicas"},
			{Stage: StagePolicy, Result: OK, Reason: ReasonClaimed, Message: "PropagationPolicy shop/web"},
			{Stage: StageBinding, Result: OK, Reason: ReasonBound, Message: "ResourceBinding shop/web-deployment"},
			{Stage: StageSchedule, Result: OK, Reason: ReasonScheduled, Message: "east 4, west 2"},
			{Stage: StageWork, Cluster: "east", Result: OK, Reason: ReasonApplied, Message: "Work karmada-es-east/web-6f9 is applied"},
			{Stage: StageWork, Cluster: "west", Result: OK, Reason: ReasonApplied, Message: "Work karmada-es-west/web-6f9 is applied"},
			{Stage: StageMember, Cluster: "east", Result: OK, Reason: ReasonApplied, Message: applied},
			{Stage: StageMember, Cluster: "west", Result: OK, Reason: ReasonApplied, Message: applied},
			{Stage: StageStatus, Cluster: "east", Result: OK, Reason: ReasonHealthy, Message: "healthy: 4/4 ready"},
			{Stage: StageStatus, Cluster: "west", Result: OK, Reason: ReasonHealthy, Message: "healthy: 2/2 ready"},
		},
		Targets: []Target{{Cluster: "east", Replicas: &four}, {Cluster: "west", Replicas: &two}},
		LeftOut: []LeftOutCluster{{Cluster: "north", Filter: "ClusterAffinity", Message: "not selected by the cluster affinity"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("diagnosis (-want +got):\n%s", diff)
	}
}

// brokenSetup is a set-up in which one link is not as wanted.
type brokenSetup struct {
	edit    func(*Facts)
	stage   Stage
	cluster string
	result  Result
	reason  string
	// message and remedy must be in the message and in the remedy.
	message, remedy string
}

func TestBrokenSetups(t *testing.T) {
	for _, setups := range []map[string]brokenSetup{controlPlaneSetups(), scheduleSetups(), deliverySetups(), statusSetups()} {
		for name, test := range setups {
			t.Run(name, func(t *testing.T) { verifySetup(t, test) })
		}
	}
}

func verifySetup(t *testing.T, test brokenSetup) {
	t.Helper()
	facts := healthyFacts()
	test.edit(&facts)
	diagnosis := Trace(facts)
	for _, link := range diagnosis.Links {
		if link.Stage != test.stage || link.Cluster != test.cluster {
			continue
		}
		if link.Result != test.result || link.Reason != test.reason || !strings.Contains(link.Message, test.message) || !strings.Contains(link.Remedy, test.remedy) {
			t.Errorf("got  %+v\nwant %+v", link, test)
		}
		if (link.Result == OK || link.Result == NotApplicable) != (diagnosis.Result == OK) {
			t.Errorf("result of the diagnosis: %s, links: %+v", diagnosis.Result, diagnosis.Links)
		}
		return
	}
	t.Errorf("no link for stage %s and cluster %q: %+v", test.stage, test.cluster, diagnosis.Links)
}

func controlPlaneSetups() map[string]brokenSetup {
	now := metav1.NewTime(noon)
	return map[string]brokenSetup{
		"the template does not exist": {func(f *Facts) { f.Template.Value, f.Binding.Value = nil, nil },
			StageTemplate, "", Failed, ReasonNotFound, "Deployment shop/web does not exist in the control plane", "create"},
		"the template cannot be read": {func(f *Facts) { f.Template = Fact[*unstructured.Unstructured]{Err: errors.New("forbidden")} },
			StageTemplate, "", Unknown, ReasonUnreadable, "could not be read: forbidden", ""},
		"the template is being deleted": {func(f *Facts) { f.Template.Value.SetDeletionTimestamp(&now) },
			StageTemplate, "", Pending, ReasonTerminating, "is being deleted since 2026-03-01T12:00:00Z; finalizers: none", ""},
		"the namespace is never propagated": {func(f *Facts) { f.Key.Namespace = "karmada-system" },
			StageTemplate, "", Failed, ReasonNeverPropagated, "is never propagated", ""},
		"no policy exists": {func(f *Facts) { f.unclaim(); f.Policies.Value = nil },
			StagePolicy, "", Failed, ReasonNoPolicyMatches, "no policy selects it", "create a policy"},
		"a policy nearly matches": {func(f *Facts) { f.unclaim(); f.policy().Spec.ResourceSelectors[0].Name = "web2" },
			StagePolicy, "", Failed, ReasonNoPolicyMatches, `PropagationPolicy shop/web nearly does: selects name "web2", not "web"`, "correct"},
		"a policy with a misspelled kind": {func(f *Facts) {
			f.unclaim()
			f.Policies.Value = append(f.Policies.Value, newPolicy("other"))
			f.policy().Spec.ResourceSelectors[0].Kind = "Deploymnt"
			f.Policies.Value[1].PropagationSpec().ResourceSelectors[0].Name = "web2"
			f.UnservedKinds = sets.New(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deploymnt"})
		}, StagePolicy, "", Failed, ReasonNoPolicyMatches, "no policy selects it; PropagationPolicy shop/web nearly does: selects apps/v1 Deploymnt, which the control plane does not serve", "correct"},
		"the policies cannot be read": {func(f *Facts) { f.Policies = Fact[[]policy.Object]{Err: errors.New("forbidden")} },
			StagePolicy, "", Unknown, ReasonUnreadable, "the policies could not be read: forbidden", ""},
		"a controller created the object": {func(f *Facts) {
			f.unclaim()
			isController := true
			f.Template.Value.SetOwnerReferences([]metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", Controller: &isController}})
			f.Policies.Value = nil
		}, StagePolicy, "", NotApplicable, ReasonManagedByController, "ReplicaSet web created it", "propagate ReplicaSet web"},
		"another policy claims it": {func(f *Facts) {
			other, priority := newPolicy("other"), int32(5)
			other.Spec.Priority = &priority
			f.Policies.Value = append(f.Policies.Value, other)
		}, StagePolicy, "", OK, ReasonClaimedByOther, "PropagationPolicy shop/web claims it; PropagationPolicy shop/other has precedence", "preemption: Always"},
		"another policy also selects it": {func(f *Facts) { f.Policies.Value = append(f.Policies.Value, newPolicy("web2")) },
			StagePolicy, "", OK, ReasonClaimed, "PropagationPolicy shop/web (also selected by PropagationPolicy shop/web2)", ""},
		"the policy is gone": {func(f *Facts) { f.Policies.Value = nil },
			StagePolicy, "", Pending, ReasonPolicyGone, "PropagationPolicy shop/web claims the template, but does not exist", "create a policy"},
		"the policy is being deleted": {func(f *Facts) { f.policy().DeletionTimestamp = &now },
			StagePolicy, "", Pending, ReasonPolicyTerminating, "is being deleted", ""},
		"the policy did not pass admission": {func(f *Facts) { f.unclaim(); f.policy().Labels = nil },
			StagePolicy, "", Failed, ReasonNoPermanentID, "has no permanent id", "webhook"},
		"a Lazy policy waits": {func(f *Facts) { f.unclaim(); f.policy().Spec.ActivationPreference = policyv1alpha1.LazyActivation },
			StagePolicy, "", Pending, ReasonLazyPolicyWaits, "PropagationPolicy shop/web is Lazy", "change the template"},
		"a changed Lazy policy waits": {func(f *Facts) {
			f.policy().Spec.ActivationPreference = policyv1alpha1.LazyActivation
			f.policy().Spec.Placement.ClusterAffinity = nil
		}, StagePolicy, "", Pending, ReasonLazyPolicyWaits, "takes effect at the next change", ""},
		"the policy has not claimed it yet": {func(f *Facts) { f.unclaim() },
			StagePolicy, "", Pending, ReasonNotClaimed, "has not claimed it yet", "karmada-controller-manager"},
		"an override is missing": {func(f *Facts) { f.policy().Spec.DependentOverrides = []string{"images"} },
			StagePolicy, "", Pending, ReasonOverridesMissing, "waiting for dependent overrides: images", "create the override policies"},
		"the overrides cannot be read": {func(f *Facts) {
			f.policy().Spec.DependentOverrides = []string{"images"}
			f.Overrides.Err = errors.New("forbidden")
		}, StagePolicy, "", Unknown, ReasonUnreadable, "forbidden", ""},
		"there is no binding yet": {func(f *Facts) { f.Binding.Value, f.Works.Value = nil, nil },
			StageBinding, "", Pending, ReasonNoBinding, "there is no binding yet", "kubectl describe deployment.apps web -n shop"},
		"the replicas of a template without a binding cannot be interpreted": {func(f *Facts) {
			f.Binding.Value, f.Works.Value = nil, nil
			f.InterpretationErr = errors.New("customization web, InterpretReplica: line 3")
		}, StageBinding, "", Failed, workv1alpha2.InterpreterFailedReason, "the replicas cannot be interpreted: customization web, InterpretReplica: line 3", "kubectl get resourceinterpretercustomizations"},
		"the status cannot be aggregated": {func(f *Facts) {
			f.binding().Status.Conditions = append(f.binding().Status.Conditions,
				metav1.Condition{Type: workv1alpha2.TemplateInterpreted, Status: metav1.ConditionTrue},
				metav1.Condition{Type: workv1alpha2.StatusAggregated, Status: metav1.ConditionFalse, Reason: workv1alpha2.InterpreterFailedReason, Message: "webhook a/b did not answer"})
		}, StageBinding, "", Failed, workv1alpha2.InterpreterFailedReason, "webhook a/b did not answer", "kubectl get resourceinterpretercustomizations"},
		"the latest change of the template was refused": {func(f *Facts) {
			f.binding().Annotations[policyv1alpha1.TemplateStateAnnotation], f.binding().Spec.Resource.ResourceVersion = "earlier", "1"
		}, StageBinding, "", Pending, ReasonTemplateNotRecorded, "does not have the latest change of the template yet", "kubectl describe deployment.apps web -n shop"},
		"the binding belongs to another object": {func(f *Facts) {
			f.binding().Spec.Resource.APIVersion = "serving.example/v1"
			f.binding().OwnerReferences[0].UID = "other"
		},
			StageBinding, "", Failed, ReasonNameCollision, "the template gets a binding when that binding is deleted", ""},
		"the binding is being deleted": {func(f *Facts) { f.binding().DeletionTimestamp = &now },
			StageBinding, "", Pending, ReasonTerminating, "is being deleted", ""},
	}
}

func scheduleSetups() map[string]brokenSetup {
	suspended := true
	unscheduled := func(reason, message string) func(*Facts) {
		return func(f *Facts) {
			f.binding().Spec.Clusters, f.Works.Value = nil, nil
			setScheduled(f.binding(), metav1.ConditionFalse, reason, message)
		}
	}
	return map[string]brokenSetup{
		"the scheduling is suspended": {func(f *Facts) { f.binding().Spec.Suspension = &workv1alpha2.Suspension{Scheduling: &suspended} },
			StageSchedule, "", Pending, ReasonSchedulingSuspended, "the scheduling is suspended, so the clusters stay as they are: east 4, west 2", "kubectl patch resourcebinding web-deployment -n shop"},
		"no scheduler has the name": {func(f *Facts) {
			f.binding().Spec.SchedulerName = "mine"
			f.binding().Status = workv1alpha2.ResourceBindingStatus{}
		}, StageSchedule, "", Pending, ReasonSchedulerMissing, `scheduler "mine" has not handled generation 1`, "--scheduler-name=mine"},
		"no scheduler has the name and a condition says so": {func(f *Facts) {
			f.binding().Spec.SchedulerName = "mine"
			setScheduled(f.binding(), metav1.ConditionFalse, workv1alpha2.BindingReasonSchedulerNotReporting, "no scheduler reports")
		}, StageSchedule, "", Failed, ReasonSchedulerMissing, "no scheduler reports", "--scheduler-name=mine"},
		"the scheduler is late": {func(f *Facts) { f.binding().Generation = 2 },
			StageSchedule, "", Pending, ReasonNotScheduled, "has not handled generation 2", "karmada-scheduler"},
		"no cluster fits": {unscheduled(workv1alpha2.BindingReasonNoClusterFit, "0/3 clusters are available: cluster east: untolerated taint {gpu=only:NoSchedule}."),
			StageSchedule, "", Failed, workv1alpha2.BindingReasonNoClusterFit, "cluster east: untolerated taint {gpu=only:NoSchedule}", "change the placement"},
		"no room": {unscheduled(workv1alpha2.BindingReasonUnschedulable, "6 replicas wanted, room for 1 (east 1)."),
			StageSchedule, "", Failed, workv1alpha2.BindingReasonUnschedulable, "6 replicas wanted, room for 1 (east 1)", "add resources"},
		"a spread constraint is not met": {unscheduled(workv1alpha2.BindingReasonSchedulerError, "the number of feasible clusters is less than spreadConstraint.MinGroups: 3 clusters wanted, 2 feasible (east, west)"),
			StageSchedule, "", Failed, workv1alpha2.BindingReasonSchedulerError, "3 clusters wanted, 2 feasible", "spread constraints"},
		"a quota of the control plane": {unscheduled(workv1alpha2.BindingReasonQuotaExceeded, "quota exceeded"),
			StageSchedule, "", Failed, workv1alpha2.BindingReasonQuotaExceeded, "quota exceeded", "federatedresourcequota -n shop"},
		"the workload is scaled to 0": {func(f *Facts) {
			f.binding().Spec.Replicas, f.binding().Spec.Clusters, f.Works.Value = 0, nil, nil
		}, StageSchedule, "", OK, ReasonScaledToZero, "0 replicas are wanted, so no cluster has a copy", ""},
		"no policy claims the binding": {func(f *Facts) { policy.ClaimOf(f.policy()).Remove(f.binding()) },
			StageSchedule, "", Pending, ReasonNotManaged, "no policy claims the binding", "create a policy"},
		"a cluster of the placement does not exist": {func(f *Facts) {
			f.binding().Spec.Placement.ClusterAffinity.ClusterNames = []string{"east", "west", "wets"}
		},
			StageSchedule, "", OK, ReasonScheduled, `east 4, west 2. The placement names cluster "wets", which does not exist`, ""},
	}
}

func deliverySetups() map[string]brokenSetup {
	suspended, now := true, metav1.NewTime(noon)
	notReady := func(f *Facts) {
		f.Clusters.Value[2].Status.Conditions[0] = metav1.Condition{
			Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, Message: "connection refused", LastTransitionTime: past,
		}
	}
	rejected := func(message string) func(*Facts) { return func(f *Facts) { f.reject(message) } }
	namespace := func(of *corev1.Namespace) func(*Facts) {
		return func(f *Facts) {
			f.reject("the server rejected the request")
			f.Members["west"] = MemberFacts{HasNamespace: true, Namespace: Fact[*corev1.Namespace]{Value: of}}
		}
	}
	held := func(f *Facts) {
		w := f.Works.Value[1]
		w.DeletionTimestamp = &now
		w.Status.Conditions = append(w.Status.Conditions, work.DeletionHeldCondition(w, "west", guard.ReasonNotReplaced))
	}
	return map[string]brokenSetup{
		"the Works cannot be read": {func(f *Facts) { f.Works = Fact[[]*workv1alpha1.Work]{Err: errors.New("forbidden")} },
			StageWork, "", Unknown, ReasonUnreadable, "the Works could not be read: forbidden", ""},
		"the cluster does not exist": {func(f *Facts) { f.Clusters.Value = f.Clusters.Value[:2] },
			StageWork, "west", Failed, ReasonClusterGone, "cluster west does not exist", "join"},
		"an override does not apply": {func(f *Facts) {
			f.binding().Annotations[workv1alpha2.RenderFailuresAnnotation] = `{"west":"OverridePolicy shop/images: no container \"app\""}`
		}, StageWork, "west", Failed, ReasonRenderFailed, "OverridePolicy shop/images", "override policy"},
		"there is no Work": {func(f *Facts) { f.Works.Value = f.Works.Value[:1] },
			StageWork, "west", Pending, ReasonWorkMissing, "there is no Work in namespace karmada-es-west", "karmada-controller-manager"},
		"the deletion guard holds the Work": {held,
			StageWork, "west", Failed, workv1alpha1.WorkNotReplacedReason, "the deletion of Work karmada-es-west/web-6f9 is held", "confirm"},
		"the Work of a cluster that is no longer chosen": {func(f *Facts) { f.binding().Spec.Clusters = f.binding().Spec.Clusters[:1] },
			StageWork, "west", Pending, ReasonRemainsElsewhere, "no longer chosen", "describe work"},
		"dispatching is suspended": {func(f *Facts) {
			f.binding().Spec.Suspension = &workv1alpha2.Suspension{Suspension: policyv1alpha1.Suspension{Dispatching: &suspended}}
		}, StageWork, "west", Pending, ReasonDispatchSuspended, "PropagationPolicy shop/web suspends dispatching", "suspension"},
		"dispatching is suspended for a dependent": {func(f *Facts) {
			f.binding().Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{Namespace: "shop", Name: "api-deployment", Clusters: []workv1alpha2.TargetCluster{{Name: "west"}}}}
			f.binding().Annotations[workv1alpha2.SuspendedByDependentsAnnotation] = `{"shop/api-deployment":["*"]}`
		}, StageWork, "west", Pending, ReasonDispatchSuspended, "dispatching is suspended in cluster west for the bindings that require this one: shop/api-deployment", "suspension"},
		"the Work is outdated": {func(f *Facts) { delete(f.binding().Annotations, workv1alpha2.RenderedGenerationAnnotation) },
			StageWork, "west", Pending, ReasonWorkOutdated, "is not rendered from the current binding", ""},
		"the cluster is not ready": {func(f *Facts) { notReady(f); f.Works.Value[1].Status = workv1alpha1.WorkStatus{} },
			StageWork, "west", Failed, ReasonClusterNotReady, "cluster west is not ready since 2026-03-01T11:48:00Z: connection refused", "kubectl describe cluster west"},
		"the status of a cluster that is not ready": {notReady,
			StageStatus, "west", Failed, ReasonStatusOutdated, "the status is old: cluster west is not ready since", "describe cluster"},
		"nothing applies the Work": {func(f *Facts) { f.Works.Value[1].Status = workv1alpha1.WorkStatus{} },
			StageWork, "west", Pending, ReasonNotApplied, "is not applied yet", "karmada-agent"},
		"a new generation is not applied": {func(f *Facts) { f.Works.Value[1].Generation = 2 },
			StageWork, "west", Pending, ReasonNotApplied, "generation 2 is not applied yet", ""},
		"a workload is evicted": {func(f *Facts) {
			f.binding().Spec.Clusters = f.binding().Spec.Clusters[:1]
			f.binding().Spec.GracefulEvictionTasks = []workv1alpha2.GracefulEvictionTask{{FromCluster: "west", Reason: "TaintUntolerated", Message: "taint a"}}
		}, StageWork, "west", Pending, "TaintUntolerated", "is being evicted from cluster west", ""},
		"a client undoes each repair": {func(f *Facts) {
			w := f.Works.Value[1]
			w.Status.Conditions = append(w.Status.Conditions, work.DriftConflictCondition(w, []string{"Deployment shop/web in cluster west: field manager hpa"}))
		}, StageWork, "west", Failed, workv1alpha1.WorkDriftConflictReason, "field manager hpa", "stop that client"},
		"the namespace is missing": {rejected(`creating Deployment shop/web in cluster west: namespaces "shop" not found`),
			StageWork, "west", Failed, ReasonNamespaceMissing, `namespaces "shop" not found`, "create the namespace in the control plane"},
		"the namespace is missing and the member says so": {namespace(nil),
			StageWork, "west", Failed, ReasonNamespaceMissing, "namespace shop does not exist in cluster west: ", "create the namespace"},
		"the namespace is being deleted": {rejected(`deployments.apps "web" is forbidden: unable to create new content in namespace shop because it is being terminated`),
			StageWork, "west", Failed, ReasonNamespaceTerminates, "because it is being terminated", "wait until"},
		"the namespace is being deleted and the member says what remains": {namespace(&corev1.Namespace{Status: corev1.NamespaceStatus{
			Phase: corev1.NamespaceTerminating, Conditions: []corev1.NamespaceCondition{{Status: corev1.ConditionTrue, Message: "Some resources are remaining: pods. has 1 resource instances"}},
		}}), StageWork, "west", Failed, ReasonNamespaceTerminates, "namespace shop is being deleted in cluster west (Some resources are remaining: pods. has 1 resource instances): ", ""},
		"an admission webhook denies": {rejected(`admission webhook "policy.example" denied the request: no latest tags`),
			StageWork, "west", Failed, ReasonAdmissionDenied, "no latest tags", "change the template"},
		"a quota of the member": {rejected(`pods "web" is forbidden: exceeded quota: team-a, requested: pods=1, used: pods=10, limited: pods=10`),
			StageWork, "west", Failed, ReasonQuotaExceeded, "used: pods=10, limited: pods=10", "ResourceQuota in cluster west"},
		"a conflict": {rejected("resource(kind=Deployment, shop/web) already exists in the cluster west and the strategy value is empty"),
			StageWork, "west", Failed, ReasonConflict, "already exists in the cluster west", "takeover with conflictResolution: Overwrite"},
		"the member does not serve the kind": {rejected(`no matches for kind "Deployment" in version "apps/v1"`),
			StageWork, "west", Failed, ReasonAPINotServed, "no matches for kind", "CustomResourceDefinition"},
		"an immutable field": {rejected(`Deployment.apps "web" is invalid: spec.selector: field is immutable`),
			StageWork, "west", Failed, ReasonInvalid, "field is immutable", "override policy"},
		"an unknown error": {rejected("something else"),
			StageWork, "west", Failed, workv1alpha1.WorkAppliedFailedReason, "something else", "kubectl describe work web-6f9 -n karmada-es-west"},
		"Karmada lacks a permission": {func(f *Facts) {
			f.reject("forbidden")
			f.Works.Value[1].Status.Conditions[0].Reason = workv1alpha1.WorkMemberForbidsReason
		}, StageWork, "west", Failed, workv1alpha1.WorkMemberForbidsReason, "forbidden", "grant Karmada the permission"},
	}
}

func statusSetups() map[string]brokenSetup {
	unhealthy := func(f *Facts) {
		setHealth(f.Works.Value[1], workv1alpha1.ResourceUnhealthy, `{"replicas": 2, "readyReplicas": 0}`)
	}
	noImage := corev1.Pod{
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx:9.99"}}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: "web", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}},
		}}},
	}
	answer := func(object *unstructured.Unstructured, err error) func(*Facts) {
		return func(f *Facts) {
			f.Members["west"] = MemberFacts{Object: Fact[*unstructured.Unstructured]{Value: object, Err: err}}
		}
	}
	return map[string]brokenSetup{
		"the member cannot be read": {answer(nil, errors.New("clusters.cluster.karmada.io is forbidden")),
			StageMember, "west", Unknown, ReasonUnreadable, "is forbidden", "clusters/proxy"},
		"the object is missing in the member": {answer(nil, nil),
			StageMember, "west", Failed, ReasonObjectMissing, "although its Work is applied", "creates a deleted object again"},
		"the object in the member belongs to a user": {answer(newDeployment(), nil),
			StageMember, "west", Failed, ReasonConflict, "already exists in the cluster west", "takeover with conflictResolution: Overwrite"},
		"the status is not reported": {func(f *Facts) { f.Works.Value[1].Status.ManifestStatuses = nil },
			StageStatus, "west", Pending, ReasonStatusNotReported, "has not reported a status yet", "karmada-agent"},
		"Karmada may not watch the kind": {func(f *Facts) {
			w := f.Works.Value[1]
			w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{
				Type: workv1alpha1.WorkStatusCollected, Status: metav1.ConditionFalse, Reason: workv1alpha1.WorkMemberForbidsReason, Message: "may not watch deployments",
			})
		}, StageStatus, "west", Failed, workv1alpha1.WorkMemberForbidsReason, "may not watch deployments", "grant Karmada the permission"},
		"the rule for the health returns an error": {func(f *Facts) {
			setHealth(f.Works.Value[1], workv1alpha1.ResourceUnknown, `{"replicas": 2, "readyReplicas": 2}`)
			f.Works.Value[1].Status.Conditions = append(f.Works.Value[1].Status.Conditions, metav1.Condition{
				Type: workv1alpha1.WorkStatusInterpreted, Status: metav1.ConditionFalse, Reason: workv1alpha1.WorkInterpreterFailedReason, Message: "customization web, InterpretHealth: line 3",
			})
		}, StageStatus, "west", Failed, workv1alpha1.WorkInterpreterFailedReason, "customization web, InterpretHealth: line 3", "kubectl get resourceinterpretercustomizations"},
		"the workload starts": {unhealthy,
			StageStatus, "west", Pending, ReasonUnhealthy, "not healthy: 0/2 ready", "karmadactl describe deployment.apps web -n shop --operation-scope members --cluster west"},
		"the image cannot be pulled": {func(f *Facts) {
			unhealthy(f)
			f.Members["west"] = MemberFacts{Object: Fact[*unstructured.Unstructured]{Value: managedDeployment()}, Pods: Fact[[]corev1.Pod]{Value: []corev1.Pod{noImage}}}
		}, StageStatus, "west", Failed, "ImagePullBackOff", "not healthy: 0/2 ready: container web cannot get image nginx:9.99", "correct the image"},
		"the image cannot be pulled according to the Work": {func(f *Facts) {
			setHealth(f.Works.Value[1], workv1alpha1.ResourceUnhealthy, `{"conditions": [{"type": "PodFailure", "status": "True", "reason": "ImagePullBackOff", "message": "container web cannot get image nginx:9.99"}]}`)
		}, StageStatus, "west", Failed, "ImagePullBackOff", "nginx:9.99", "correct the image"},
		"the Pods cannot be read": {func(f *Facts) {
			unhealthy(f)
			f.Members["west"] = MemberFacts{Object: Fact[*unstructured.Unstructured]{Value: managedDeployment()}, Pods: Fact[[]corev1.Pod]{Err: errors.New("pods is forbidden")}}
		}, StageStatus, "west", Pending, ReasonUnhealthy, "its Pods could not be read: pods is forbidden", ""},
		"the workload reports a failure": {func(f *Facts) {
			setHealth(f.Works.Value[1], workv1alpha1.ResourceUnhealthy, `{"conditions": [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "timed out"}]}`)
		}, StageStatus, "west", Failed, ReasonUnhealthy, "ProgressDeadlineExceeded: timed out", ""},
	}
}

func managedDeployment() *unstructured.Unstructured {
	object := newDeployment()
	object.SetLabels(map[string]string{workv1alpha1.ManagedByKarmadaLabel: "true", workv1alpha1.WorkPermanentIDLabel: "id-west"})
	return object
}

func TestSummary(t *testing.T) {
	diagnosis := Diagnosis{Links: []Link{
		{Stage: StageBinding, Result: OK, Reason: ReasonBound},
		{Stage: StageSchedule, Result: OK, Reason: ReasonScheduled},
		{Stage: StageWork, Cluster: "east", Result: Failed, Reason: ReasonConflict},
		{Stage: StageMember, Cluster: "east", Result: NotApplicable, Reason: ReasonObjectMissing},
	}}
	tests := map[string]struct {
		cluster string
		stages  []Stage
		want    string
	}{
		"the later of equally severe links":     {"", []Stage{StageBinding, StageSchedule}, ReasonScheduled},
		"the more severe link":                  {"east", []Stage{StageWork, StageMember}, ReasonConflict},
		"only links of the given stages":        {"east", []Stage{StageMember}, ReasonObjectMissing},
		"no link of the stage in this cluster":  {"west", []Stage{StageWork}, ReasonNotChecked},
		"no link without a cluster in the work": {"", []Stage{StageWork}, ReasonNotChecked},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := diagnosis.Summary(test.cluster, test.stages...).Reason; got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestAnyFactMayBeMissing checks that no combination of missing and unreadable facts gives OK for
// a stage that was not read, and that each link has a message.
func TestAnyFactMayBeMissing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := healthyFacts()
		dropFact(t, "template", &f.Template)
		dropFact(t, "policies", &f.Policies)
		dropFact(t, "clusters", &f.Clusters)
		dropFact(t, "works", &f.Works)
		dropFact(t, "binding", &f.Binding)
		MemberQueries(f)
		got := Trace(f)
		for _, link := range got.Links {
			if link.Message == "" || link.Reason == "" || link.Result.severity() < 0 {
				t.Fatalf("incomplete link %+v", link)
			}
		}
		isUnread := f.Template.Err != nil || f.Template.Value != nil && (f.Policies.Err != nil || f.Binding.Err != nil) || (f.Works.Err != nil || f.Clusters.Err != nil) && f.ownsBinding()
		if got.Result == OK && (isUnread || f.Template.Value == nil) {
			t.Fatalf("ok although a fact is missing: %+v", got.Links)
		}
		if diff := cmp.Diff(got, Trace(f)); diff != "" {
			t.Fatalf("equal facts give another diagnosis:\n%s", diff)
		}
	})
}

func dropFact[T any](t *rapid.T, name string, fact *Fact[T]) {
	switch rapid.IntRange(0, 2).Draw(t, name) {
	case 1:
		*fact = Fact[T]{}
	case 2:
		*fact = Fact[T]{Err: errors.New("forbidden")}
	}
}

func TestMemberQueries(t *testing.T) {
	web := types.NamespacedName{Namespace: "shop", Name: "web"}
	rejected := healthyFacts()
	rejected.reject("exceeded quota")
	unhealthy := healthyFacts()
	setHealth(unhealthy.Works.Value[0], workv1alpha1.ResourceUnhealthy, "{}")
	large := healthyFacts()
	for i := range smallFleet {
		name := fmt.Sprintf("m%d", i)
		large.Clusters.Value = append(large.Clusters.Value, newCluster(name))
		large.Works.Value = append(large.Works.Value, newWork(name, 1))
		large.binding().Spec.Clusters = append(large.binding().Spec.Clusters, workv1alpha2.TargetCluster{Name: name, Replicas: 1})
	}
	large.reject("exceeded quota")
	tests := map[string]struct {
		facts Facts
		want  []Query
	}{
		"all clusters of a small fleet":        {healthyFacts(), []Query{{Object: web, Cluster: "east"}, {Object: web, Cluster: "west"}}},
		"a rejected Work":                      {rejected, []Query{{Object: web, Cluster: "east"}, {Object: web, Cluster: "west", NeedsNamespace: true}}},
		"an unhealthy workload":                {unhealthy, []Query{{Object: web, Cluster: "east", NeedsPods: true}, {Object: web, Cluster: "west"}}},
		"only the problems of a large fleet":   {large, []Query{{Object: web, Cluster: "west", NeedsNamespace: true}}},
		"no binding":                           {Facts{}, nil},
		"the Works could not be read, so none": {Facts{Binding: healthyFacts().Binding, Works: Fact[[]*workv1alpha1.Work]{Err: errors.New("forbidden")}}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, MemberQueries(test.facts)); diff != "" {
				t.Errorf("queries (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnreadableClusters(t *testing.T) {
	f := healthyFacts()
	f.Clusters = Fact[[]*clusterv1alpha1.Cluster]{Err: errors.New("forbidden")}
	got := Trace(f)
	want := Link{Stage: StageSchedule, Result: Unknown, Reason: ReasonUnreadable, Message: "the clusters could not be read: forbidden"}
	if got.Result != Unknown || got.Links[4] != want {
		t.Errorf("result %s, link %+v, want %+v", got.Result, got.Links[4], want)
	}
}
