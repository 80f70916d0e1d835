package testenv

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
)

// stateLimit is the maximum number of objects of each kind that are logged for a failed test.
const stateLimit = 6

// showState logs a namespace's bindings and Works, with their fields' managers and the times of changes. The
// error of a failed wait does not suffice, because it shows only the last missing step of the propagation.
func (e *Env) showState(t testing.TB, namespace string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), lastLook)
	defer cancel()
	bindings, works := &workv1alpha2.ResourceBindingList{}, &workv1alpha1.WorkList{}
	if err := e.Karmada.List(ctx, bindings, client.InNamespace(namespace), client.Limit(stateLimit)); err != nil {
		t.Logf("state of namespace %s: %v", namespace, err)
	}
	if err := e.Karmada.List(ctx, works); err != nil {
		t.Logf("state of namespace %s: %v", namespace, err)
	}
	for i := range bindings.Items {
		show(t, &bindings.Items[i], bindings.Items[i].Status)
	}
	shown := 0
	for i := range works.Items {
		if of := &works.Items[i]; of.Annotations[workv1alpha2.ResourceBindingNamespaceAnnotation] == namespace && shown < stateLimit {
			show(t, of, of.Status)
			shown++
		}
	}
}

func show(t testing.TB, object client.Object, status any) {
	t.Helper()
	text, err := json.Marshal(status)
	if err != nil {
		t.Logf("status of %T %s: %v", object, object.GetName(), err)
	}
	var writes []string
	for _, write := range object.GetManagedFields() {
		at := ""
		if write.Time != nil {
			at = write.Time.Format(time.TimeOnly)
		}
		writes = append(writes, strings.TrimSuffix(write.Manager+"/"+write.Subresource, "/")+" at "+at)
	}
	t.Logf("%T %s, generation %d, resourceVersion %s, written by %s, seen at %s: %s", object, client.ObjectKeyFromObject(object),
		object.GetGeneration(), object.GetResourceVersion(), strings.Join(writes, ", "), time.Now().Format(time.TimeOnly), text)
}
