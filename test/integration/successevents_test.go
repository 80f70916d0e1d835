package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/programs/controllermanager"
	"karmada.io/karmada/internal/testenv"
)

// The test has an environment for itself, because it changes settings.
func TestEventModeAllRecordsEverySuccess(t *testing.T) {
	env := alone(t)
	withSettings(t, env, "", func(s *controllermanager.Options) { s.Events = loop.EventModeAll })
	namespace := env.Namespace(t)
	settings := configMap(namespace, "settings")
	template := deploymentWithDependencies(namespace, "web", settings)
	env.Create(t, settings, policyWithDependencies(t, placementOn(member1), template), template)
	awaitInMember(t, env, member1, settings, exists)
	awaitInMember(t, env, member1, template, exists)
	ofTemplate := []string{
		workv1alpha2.EventReasonAggregateStatusSucceed, workv1alpha2.EventReasonGetDependenciesSucceed,
		workv1alpha2.EventReasonGetReplicasSucceed, workv1alpha2.EventReasonSyncWorkSucceed,
	}
	awaitSuccessEvents(t, env, template, 1, ofTemplate...)
	awaitSuccessEvents(t, env, bindingOf(t, template), 0, workv1alpha2.EventReasonAggregateStatusSucceed, workv1alpha2.EventReasonSyncWorkSucceed,
		workv1alpha2.EventReasonSyncScheduleResultToDependenciesSucceed)
	awaitSuccessEvents(t, env, workOf(t, member1, template), 0, workv1alpha1.EventReasonWorkDispatching, workv1alpha1.EventReasonSyncSucceed,
		workv1alpha1.EventReasonReflectStatusSucceed, workv1alpha1.EventReasonInterpretHealthSucceed)

	// A new label does not change the generation of the template, and is applied in the member.
	testenv.Update(t, env.Karmada, template, func(d *appsv1.Deployment) { metav1.SetMetaDataLabel(&d.ObjectMeta, "looked", "at") })
	awaitInMember(t, env, member1, template, func(d *appsv1.Deployment) error { return checkEqual("label", "at", d.Labels["looked"]) })
	await(t, env.Karmada, workOf(t, member1, template), func(w *workv1alpha1.Work) error {
		return checkObservedGeneration(w.Status.Conditions, workv1alpha1.WorkApplied, w.Generation)
	})
	awaitSuccessEvents(t, env, template, 1, ofTemplate...)
}

// awaitSuccessEvents waits for events with all reasons for an object. Then it checks that the count
// of each reason is at most most, or at most the generation of the object if most is 0.
func awaitSuccessEvents(t *testing.T, env *testenv.Env, object client.Object, most int, reasons ...string) {
	t.Helper()
	counts := map[string]int{}
	testenv.Eventually(t, fmt.Sprintf("events of %T %s", object, object.GetName()), func(ctx context.Context) error {
		if err := env.Karmada.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		events := &corev1.EventList{}
		if err := env.Karmada.List(ctx, events, client.InNamespace(object.GetNamespace())); err != nil {
			return err
		}
		clear(counts)
		for _, event := range events.Items {
			if event.InvolvedObject.UID == object.GetUID() && slices.Contains(reasons, event.Reason) && event.Type == corev1.EventTypeNormal {
				counts[event.Reason] += int(max(event.Count, 1))
			}
		}
		return checkEqual("reasons", slices.Sorted(slices.Values(reasons)), slices.Sorted(maps.Keys(counts)))
	})
	if most == 0 {
		most = int(object.GetGeneration())
	}
	for reason, count := range counts {
		if count > most {
			t.Errorf("%d events %s of %T %s, want at most %d", count, reason, object, object.GetName(), most)
		}
	}
}
