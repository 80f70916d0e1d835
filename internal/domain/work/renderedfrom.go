package work

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
)

// RenderedFrom returns the value of RenderedFromAnnotation for a target's Work that is rendered from
// the given version of the template.
func RenderedFrom(bound binding.Object, target workv1alpha2.TargetCluster, templateVersion string) string {
	return newRenderSettings(bound).hash(target) + "/" + templateVersion
}

// IsMarkedCurrent reports whether the Work's RenderedFromAnnotation shows that the Work is current for
// a target of its binding. A Work that was rendered from a newer template version than the binding
// records is current too, because the binding will be updated to that version. Versions that cannot be
// compared count as equal.
func IsMarkedCurrent(of *workv1alpha1.Work, bound binding.Object, target workv1alpha2.TargetCluster) bool {
	return newRenderSettings(bound).isShownBy(of, target)
}

// renderSettings contains all fields of a binding that Render uses, except the template's version.
type renderSettings struct {
	bound binding.Object
	spec  *workv1alpha2.ResourceBindingSpec
	// shares identifies all targets' replicas. It is set only if each target's share depends on the
	// replicas of all targets.
	shares string
}

func newRenderSettings(bound binding.Object) renderSettings {
	spec := bound.BindingSpec()
	s := renderSettings{bound: bound, spec: spec}
	if !hasDividedCompletions(spec, schema.FromAPIVersionAndKind(spec.Resource.APIVersion, spec.Resource.Kind)) {
		return s
	}
	sum := fnv.New64a()
	for _, target := range binding.TargetClusters(spec) {
		_, _ = fmt.Fprintf(sum, "%s=%d,", target.Name, target.Replicas) // a hash never fails to write
	}
	s.shares = strconv.FormatUint(sum.Sum64(), 16)
	return s
}

func (r renderSettings) isShownBy(of *workv1alpha1.Work, target workv1alpha2.TargetCluster) bool {
	hash, version, isMarked := strings.Cut(of.Annotations[workv1alpha1.RenderedFromAnnotation], "/")
	if !isMarked || hash != r.hash(target) {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(version, r.spec.Resource.ResourceVersion)
	return err != nil || order >= 0
}

// hash returns a hash of one target's settings. The Works store the hash. If a release of Karmada
// computes another hash, the stored Works no longer show that they are current. Karmada then writes
// each binding once, to record there that its Works are current.
func (r renderSettings) hash(target workv1alpha2.TargetCluster) string {
	type settings struct {
		Resource            workv1alpha2.ObjectReference
		Replicas            int32                             `json:",omitempty"`
		Shares              string                            `json:",omitempty"`
		ConflictResolution  policyv1alpha1.ConflictResolution `json:",omitempty"`
		State               map[string]string                 `json:",omitempty"`
		Suspended, Preserve bool
		InvalidState        bool
	}
	state, err := preservedState(r.spec, target.Name)
	hashed := settings{
		Resource: r.spec.Resource, Shares: r.shares, ConflictResolution: r.spec.ConflictResolution, State: state, InvalidState: err != nil,
		Suspended: binding.IsDispatchSuspended(r.bound, target.Name),
		Preserve:  r.spec.PreserveResourcesOnDeletion != nil && *r.spec.PreserveResourcesOnDeletion,
	}
	hashed.Resource.ResourceVersion = ""
	if binding.IsWorkload(r.spec) {
		hashed.Replicas = target.Replicas
	}
	encoded, _ := json.Marshal(hashed) // the fields can always be encoded
	sum := fnv.New64a()
	_, _ = sum.Write(encoded)
	return fmt.Sprintf("%016x", sum.Sum64())
}
