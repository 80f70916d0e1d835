package bindingstatus

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/loop"
)

func request(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

func TestBindingOfWork(t *testing.T) {
	cases := map[string]struct {
		annotations map[string]string
		want        reconcile.Request
		ok          bool
	}{
		"a Work of a ResourceBinding": {
			map[string]string{"resourcebinding.karmada.io/namespace": "shop", "resourcebinding.karmada.io/name": "web-deployment"},
			request("shop", "web-deployment"), true},
		"a Work of a ClusterResourceBinding": {
			map[string]string{"clusterresourcebinding.karmada.io/name": "reader-clusterrole"},
			request("", "reader-clusterrole"), true},
		"a Work without the namespace of its ResourceBinding": {
			map[string]string{"resourcebinding.karmada.io/name": "web-deployment"}, request("", ""), false},
		"a Work that a user created": {nil, request("", ""), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := bindingOfWork(&workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}})
			if ok != tc.ok || got != tc.want {
				t.Errorf("bindingOfWork = %v, %v; want %v, %v", got, ok, tc.want, tc.ok)
			}
		})
	}
}

func appliedWork(change func(*workv1alpha1.Work)) *workv1alpha1.Work {
	w := &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{Generation: 1, Labels: map[string]string{"resourcebinding.karmada.io/permanent-id": "1"}},
		Status: workv1alpha1.WorkStatus{
			Conditions: []metav1.Condition{{Type: workv1alpha1.WorkApplied, Status: metav1.ConditionTrue, Message: "applied", ObservedGeneration: 1}},
			ManifestStatuses: []workv1alpha1.ManifestStatus{{
				Identifier: workv1alpha1.ResourceIdentifier{Version: "v1", Kind: "Service", Name: "web"},
				Status:     &runtime.RawExtension{Raw: []byte(`{"a":1,"b":2}`)}, Health: workv1alpha1.ResourceHealthy,
			}},
		},
	}
	change(w)
	return w
}

func TestRelevantWorkUpdates(t *testing.T) {
	cases := map[string]struct {
		change func(*workv1alpha1.Work)
		want   bool
	}{
		"nothing changed": {func(*workv1alpha1.Work) {}, false},
		"a new spec that the member has applied": {func(w *workv1alpha1.Work) {
			w.Generation++
			w.Status.Conditions[0].ObservedGeneration++
		}, false},
		"a new spec that the member has not applied": {func(w *workv1alpha1.Work) { w.Generation++ }, true},
		"dispatching is suspended":                   {func(w *workv1alpha1.Work) { w.Spec.SuspendDispatching = new(true) }, true},
		"Dispatching is not part of the report": {func(w *workv1alpha1.Work) {
			w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: workv1alpha1.WorkDispatching, Status: metav1.ConditionTrue})
		}, false},
		"the same status in another layout": {func(w *workv1alpha1.Work) {
			w.Status.ManifestStatuses[0].Status.Raw = []byte(`{"b": 2, "a": 1}`)
		}, false},
		"another status":                {func(w *workv1alpha1.Work) { w.Status.ManifestStatuses[0].Status.Raw = []byte(`{"a":2}`) }, true},
		"another health":                {func(w *workv1alpha1.Work) { w.Status.ManifestStatuses[0].Health = workv1alpha1.ResourceUnhealthy }, true},
		"a removed report":              {func(w *workv1alpha1.Work) { w.Status.ManifestStatuses = nil }, true},
		"not applied any more":          {func(w *workv1alpha1.Work) { w.Status.Conditions[0].Status = metav1.ConditionFalse }, true},
		"another message":               {func(w *workv1alpha1.Work) { w.Status.Conditions[0].Message = "no" }, true},
		"without the condition Applied": {func(w *workv1alpha1.Work) { w.Status.Conditions = nil }, true},
		"a deletion":                    {func(w *workv1alpha1.Work) { w.DeletionTimestamp = &metav1.Time{} }, true},
		"another binding":               {func(w *workv1alpha1.Work) { w.Labels["resourcebinding.karmada.io/permanent-id"] = "2" }, true},
		"an unrelated label":            {func(w *workv1alpha1.Work) { w.Labels["app"] = "web" }, false},
		"an annotation that was added":  {func(w *workv1alpha1.Work) { w.Annotations = map[string]string{"a": "b"} }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before, after := appliedWork(func(*workv1alpha1.Work) {}), appliedWork(tc.change)
			if got := isRelevantUpdate(before, after); got != tc.want {
				t.Errorf("tellsOther = %v, want %v", got, tc.want)
			}
			if got := isRelevantUpdate(after, before); got != tc.want {
				t.Errorf("reversed: tellsOther = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestIsPlaced(t *testing.T) {
	cases := map[string]struct {
		bound binding.Object
		want  bool
	}{
		"a new binding": {&workv1alpha2.ResourceBinding{}, false},
		"scheduled once, even to no cluster": {&workv1alpha2.ClusterResourceBinding{
			Status: workv1alpha2.ResourceBindingStatus{LastScheduledTime: &metav1.Time{}}}, true},
		"a binding required by another binding": {&workv1alpha2.ResourceBinding{Spec: workv1alpha2.ResourceBindingSpec{
			RequiredBy: []workv1alpha2.BindingSnapshot{{Clusters: []workv1alpha2.TargetCluster{{Name: "m1"}}}}}}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := isPlaced(tc.bound); got != tc.want {
				t.Errorf("placed = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestBindingIDIndexSeparatesScopes(t *testing.T) {
	of := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
		"clusterresourcebinding.karmada.io/permanent-id": "1", "resourcebinding.karmada.io/permanent-id": "", "app": "web",
	}}}
	want := []string{"clusterresourcebinding.karmada.io/permanent-id=1"}
	if diff := cmp.Diff(want, loop.WorksByBindingID.Keys(of)); diff != "" {
		t.Errorf("index values (-want +got):\n%s", diff)
	}
}

// delayedQueue records the delay of each request.
type delayedQueue struct {
	queue
	delays map[reconcile.Request]time.Duration
}

func (d delayedQueue) AddAfter(added reconcile.Request, delay time.Duration) { d.delays[added] = delay }

func TestChangesOfTheRenderingQueueTheBinding(t *testing.T) {
	const window, settleDelay = time.Millisecond, time.Minute
	fixedWindow := func() time.Duration { return window }
	annotate := func(object metav1.Object, key, value string) {
		annotations := maps.Clone(object.GetAnnotations())
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[key] = value
		object.SetAnnotations(annotations)
	}
	tests := map[string]struct {
		change func(*workv1alpha2.ResourceBinding, *workv1alpha1.Work)
		// want is 0 if nothing is queued.
		want time.Duration
	}{
		"nothing": {func(*workv1alpha2.ResourceBinding, *workv1alpha1.Work) {}, 0},
		"a recorded failure": {func(b *workv1alpha2.ResourceBinding, _ *workv1alpha1.Work) {
			annotate(b, workv1alpha2.RenderFailuresAnnotation, `{"m1":"forbidden"}`)
		}, window},
		"a recorded generation": {func(b *workv1alpha2.ResourceBinding, _ *workv1alpha1.Work) {
			annotate(b, workv1alpha2.RenderedGenerationAnnotation, "1/2")
		}, window},
		"another annotation of the binding": {func(b *workv1alpha2.ResourceBinding, _ *workv1alpha1.Work) { annotate(b, "note", "x") }, 0},
		"a generation, which comes with a failure": {func(b *workv1alpha2.ResourceBinding, _ *workv1alpha1.Work) {
			b.Generation++
			annotate(b, workv1alpha2.RenderFailuresAnnotation, `{"m1":"forbidden"}`)
		}, settleDelay},
		"a Work that is rendered again": {func(_ *workv1alpha2.ResourceBinding, w *workv1alpha1.Work) {
			annotate(w, workv1alpha1.RenderedFromAnnotation, "1/2")
		}, settleDelay},
		"another annotation of a Work": {func(_ *workv1alpha2.ResourceBinding, w *workv1alpha1.Work) { annotate(w, "note", "x") }, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			q := delayedQueue{delays: map[reconcile.Request]time.Duration{}}
			bound, of := webBinding("m1"), webWork("m1")
			tc.change(bound, of)
			newBindingHandler(fixedWindow, settleDelay).Update(t.Context(), event.UpdateEvent{ObjectOld: webBinding("m1"), ObjectNew: bound}, q)
			newWorkHandler(fixedWindow, settleDelay).Update(t.Context(), event.UpdateEvent{ObjectOld: webWork("m1"), ObjectNew: of}, q)
			if got := q.delays[request("shop", "web-deployment")]; got != tc.want {
				t.Errorf("queued after %s, want %s", got, tc.want)
			}
		})
	}
}
