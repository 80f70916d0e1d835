package work

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
)

func TestOrphanWorks(t *testing.T) {
	at := func(namespace, name string) *workv1alpha1.Work {
		return &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	all := []*workv1alpha1.Work{
		at("karmada-es-scheduled", "web"), at("karmada-es-scheduled", "old"), at("karmada-es-evicted", "old"),
		at("karmada-es-purged", "web"), at("karmada-es-gone", "web"), at("default", "web"),
	}
	spec := &workv1alpha2.ResourceBindingSpec{
		Clusters: []workv1alpha2.TargetCluster{{Name: "scheduled"}},
		GracefulEvictionTasks: []workv1alpha2.GracefulEvictionTask{
			{FromCluster: "evicted", PurgeMode: "Gracefully"}, {FromCluster: "purged", PurgeMode: "Directly"},
		},
	}
	tests := map[string]struct {
		names map[string]string
		want  []string
	}{
		"Works of unexpected clusters": {nil, []string{"karmada-es-purged/web", "karmada-es-gone/web"}},
		"Works with outdated names, only in clusters with a rendered Work": {
			map[string]string{"scheduled": "web"},
			[]string{"karmada-es-scheduled/old", "karmada-es-purged/web", "karmada-es-gone/web"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, orphan := range OrphanWorks(all, binding.ExpectedClusters(spec), tc.names) {
				got = append(got, orphan.Namespace+"/"+orphan.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("orphans (-want +got):\n%s", diff)
			}
		})
	}
	purged := binding.DirectlyPurgedClusters(spec)
	if !HasWorkIn(all, purged) || HasWorkIn(all[:3], purged) || HasWorkIn(all, sets.New("default")) {
		t.Error("a purged cluster is not recognized")
	}
}
