package member

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

func TestEndOfWatchDenialNotifiesOnce(t *testing.T) {
	kind := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	var returned []schema.GroupVersionKind
	m := &Member{kinds: newWatchedKinds(), onWatchRestored: func(kind schema.GroupVersionKind) { returned = append(returned, kind) }}
	m.kinds.watches[kind] = &kindWatch{}
	var failure error
	from := successNotifier{toolscache.ToListerWatcherWithContext(&toolscache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &unstructured.UnstructuredList{}, failure
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return watch.NewEmptyWatch(), failure
		},
	}), func() { m.clearDenial(kind) }}
	list := func() { _, _ = from.ListWithContext(context.Background(), metav1.ListOptions{}) }
	begin := func() { _, _ = from.WatchWithContext(context.Background(), metav1.ListOptions{}) }
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("no rule"))
	for _, step := range []struct {
		name    string
		denied  bool
		failure error
		ask     func()
		want    int
	}{
		{"never denied", false, nil, list, 0},
		{"denied", true, forbidden, list, 0},
		{"listed again", false, nil, list, 1},
		{"listed once more", false, nil, list, 1},
		{"denied once more", true, forbidden, begin, 1},
		{"watched again", false, nil, begin, 2},
	} {
		if step.denied {
			m.recordDenial(kind.String(), step.failure)
		}
		failure = step.failure
		step.ask()
		if len(returned) != step.want || (m.WatchDenial(kind) != nil) != step.denied {
			t.Errorf("%s: %d notifications, want %d; denial %v", step.name, len(returned), step.want, m.WatchDenial(kind))
		}
	}
	if diff := cmp.Diff(slices.Repeat([]schema.GroupVersionKind{kind}, 2), returned); diff != "" {
		t.Errorf("notified kinds (-want +got):\n%s", diff)
	}
}
