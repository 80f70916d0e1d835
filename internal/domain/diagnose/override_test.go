package diagnose

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/override"
)

// newOverride returns an OverridePolicy of namespace shop for the Deployment web, or a
// ClusterOverridePolicy.
func newOverride(name string, isCluster bool, change func(*policyv1alpha1.OverrideSpec)) override.Object {
	spec := policyv1alpha1.OverrideSpec{
		ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}},
		OverrideRules:     []policyv1alpha1.RuleWithCluster{{}},
	}
	if change != nil {
		change(&spec)
	}
	if isCluster {
		created := &policyv1alpha1.ClusterOverridePolicy{Spec: spec}
		created.Name = name
		return created
	}
	created := &policyv1alpha1.OverridePolicy{Spec: spec}
	created.Namespace, created.Name = "shop", name
	return created
}

func TestOverrideLinks(t *testing.T) {
	record := func(f *Facts, annotation, text string) {
		f.Works.Value[0].SetAnnotations(withAnnotation(f, annotation, text))
	}
	onlyEast := func(s *policyv1alpha1.OverrideSpec) {
		s.OverrideRules[0].TargetCluster = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"east"}}
	}
	tests := map[string]struct {
		edit func(*Facts)
		want []string
	}{
		"no override policies": {func(*Facts) {}, nil},
		"a policy that is applied": {func(f *Facts) {
			f.Overrides.Value = []override.Object{newOverride("image", false, onlyEast)}
			record(f, policyv1alpha1.AppliedOverrides, `[{"policyName":"image","overriders":{}}]`)
		}, []string{"ok east OverrideApplied: OverridePolicy shop/image is applied"}},
		"a cluster policy that is applied": {func(f *Facts) {
			f.Overrides.Value = []override.Object{newOverride("image", true, onlyEast)}
			record(f, policyv1alpha1.AppliedClusterOverrides, `[{"policyName":"image","overriders":{}}]`)
		}, []string{"ok east OverrideApplied: ClusterOverridePolicy image is applied"}},
		"a policy without effect": {func(f *Facts) {
			f.Overrides.Value = []override.Object{newOverride("image", false, onlyEast)}
			record(f, policyv1alpha1.IneffectiveOverrides, `OverridePolicy "shop/image", spec.overrideRules[0].overriders.imageOverrider[0]: no container matches`)
		}, []string{"notApplicable east OverrideWithoutEffect: OverridePolicy shop/image has no effect: spec.overrideRules[0].overriders.imageOverrider[0]: no container matches"}},
		"a policy for other clusters": {func(f *Facts) {
			f.Overrides.Value = []override.Object{newOverride("image", false, func(s *policyv1alpha1.OverrideSpec) {
				s.OverrideRules[0].TargetCluster = &policyv1alpha1.ClusterAffinity{ClusterNames: []string{"north"}}
			})}
		}, []string{"notApplicable  OverrideForOtherClusters: OverridePolicy shop/image selects the object, but its targetCluster selects none of the clusters of the object"}},
		"a policy that nearly selects the object": {func(f *Facts) {
			f.Overrides.Value = []override.Object{newOverride("image", false, func(s *policyv1alpha1.OverrideSpec) { s.ResourceSelectors[0].Kind = "Deploymnt" })}
			f.UnservedKinds = sets.New(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deploymnt"})
		}, []string{"notApplicable  OverrideNearlySelects: OverridePolicy shop/image does not select the object, but nearly does: selects apps/v1 Deploymnt, which the control plane does not serve, instead of apps/v1 Deployment"}},
		"a policy for another object": {func(f *Facts) {
			f.Overrides.Value = []override.Object{newOverride("image", false, func(s *policyv1alpha1.OverrideSpec) { s.ResourceSelectors[0].Name = "database" })}
		}, nil},
		"a Work that is outdated": {func(f *Facts) {
			f.Overrides.Value = []override.Object{newOverride("image", false, onlyEast)}
			f.binding().Annotations["work.karmada.io/rendered-generation"] = "uid-binding/0"
		}, nil},
		"an object without clusters": {func(f *Facts) {
			f.Overrides.Value = []override.Object{newOverride("image", false, onlyEast)}
			f.binding().Spec.Clusters, f.Works.Value = nil, nil
		}, nil},
		"the policies cannot be read": {func(f *Facts) { f.Overrides.Err = errors.New("forbidden") },
			[]string{"unknown  Unreadable: the override policies could not be read: forbidden"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			facts := healthyFacts()
			test.edit(&facts)
			var got []string
			for _, link := range Trace(facts).Links {
				if link.Stage == StageOverride {
					got = append(got, string(link.Result)+" "+link.Cluster+" "+link.Reason+": "+link.Message)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("links (-want +got):\n%s", diff)
			}
		})
	}
}

// withAnnotation returns the annotations of the first Work with one more.
func withAnnotation(f *Facts, name, value string) map[string]string {
	annotations := f.Works.Value[0].GetAnnotations()
	annotations[name] = value
	return annotations
}
