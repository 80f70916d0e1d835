package builtin

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/interpreter"
)

func persistentVolume() interpreter.Rules {
	return interpreter.Rules{Retain: retainPresent("spec", "claimRef"), Aggregate: aggregateVolume}
}

func persistentVolumeClaim() interpreter.Rules {
	return interpreter.Rules{
		Retain:    retainClaim,
		Aggregate: aggregateClaim,
		Healthy:   isClaimHealthy,
	}
}

// retainPresent is the rule of kinds with one field that the member cluster
// binds: it is kept unless empty.
func retainPresent(path ...string) func(context.Context, *unstructured.Unstructured, *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return func(_ context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		value, found, err := unstructured.NestedFieldNoCopy(observed.Object, path...)
		if err != nil {
			return nil, fmt.Errorf("reading the member object: %w", err)
		}
		if !found || value == nil || value == "" {
			return desired, nil
		}
		return withField(desired, value, path...)
	}
}

// retainClaim keeps the volume to which a claim is bound, and the classes that the
// member cluster chose for one that names none: claims never lose either again.
func retainClaim(ctx context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	desired, err := retainPresent("spec", "volumeName")(ctx, desired, observed)
	if err != nil {
		return nil, err
	}
	return retainUnsaid(desired, observed, "storageClassName", "volumeAttributesClassName")
}

// retainUnsaid keeps fields of the spec of which the desired object says nothing.
func retainUnsaid(desired, observed *unstructured.Unstructured, fields ...string) (*unstructured.Unstructured, error) {
	memberSpec, err := nested[map[string]any](observed.Object, "spec")
	if err != nil {
		return nil, fmt.Errorf("reading the member object: %w", err)
	}
	spec, err := nested[map[string]any](desired.Object, "spec")
	if err != nil {
		return nil, err
	}
	retained := edit{object: desired}
	for _, field := range fields {
		if spec[field] != nil || memberSpec[field] == nil {
			continue
		}
		if err := retained.set(memberSpec[field], "spec", field); err != nil {
			return nil, err
		}
	}
	return retained.object, nil
}

// memberVolume is the status of a volume or a claim.
type memberVolume[P ~string] struct {
	Phase P `json:"phase"`
}

// aggregateVolume shows the most pressing phase. A volume of which nothing is
// known is Pending.
func aggregateVolume(_ context.Context, template *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
	old, err := typed[corev1.PersistentVolumeStatus](template.Object, "status")
	if err != nil {
		return nil, err
	}
	phases := map[corev1.PersistentVolumePhase]bool{}
	for i := range items {
		reported, found, err := memberStatus[memberVolume[corev1.PersistentVolumePhase]](&items[i])
		if err != nil {
			return nil, err
		}
		if !found {
			reported.Phase = corev1.VolumePending
		}
		phases[reported.Phase] = true
	}
	status := corev1.PersistentVolumeStatus{
		Phase: firstOf(phases, corev1.VolumeFailed, corev1.VolumePending, corev1.VolumeAvailable,
			corev1.VolumeBound, corev1.VolumeReleased),
		// The API server writes this one, at each change of the phase.
		LastPhaseTransitionTime: old.LastPhaseTransitionTime,
	}
	if status.Phase == "" {
		status.Phase = corev1.VolumePending
	}
	return replaceStatus(template, &old, &status)
}

// aggregateClaim shows Lost if any cluster lost its volume, else what is not
// bound yet, else Bound. A claim of which nothing is known is Pending.
func aggregateClaim(_ context.Context, template *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem) (*unstructured.Unstructured, error) {
	old, err := typed[corev1.PersistentVolumeClaimStatus](template.Object, "status")
	if err != nil {
		return nil, err
	}
	phase := corev1.PersistentVolumeClaimPhase("")
	err = eachStatus(items, func(_ string, reported *memberVolume[corev1.PersistentVolumeClaimPhase]) {
		switch {
		case phase == corev1.ClaimLost:
		case reported.Phase != corev1.ClaimBound:
			phase = reported.Phase
		case phase == "":
			phase = corev1.ClaimBound
		}
	})
	if err != nil {
		return nil, err
	}
	if phase == "" {
		phase = corev1.ClaimPending
	}
	status := corev1.PersistentVolumeClaimStatus{Phase: phase}
	return replaceStatus(template, &old, &status)
}

func isClaimHealthy(_ context.Context, memberObject *unstructured.Unstructured) (bool, error) {
	phase, err := text(memberObject.Object, "status", "phase")
	return phase == string(corev1.ClaimBound), err
}
