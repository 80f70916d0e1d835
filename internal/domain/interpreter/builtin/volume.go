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
	return interpreter.Rules{Retain: retainNonEmpty("spec", "claimRef"), AggregateStatus: aggregateVolume}
}

func persistentVolumeClaim() interpreter.Rules {
	return interpreter.Rules{
		Retain:          retainClaim,
		AggregateStatus: aggregateClaim,
		IsHealthy:       isClaimHealthy,
	}
}

// retainNonEmpty returns the retain rule for kinds in which the member cluster sets the field at
// path. The rule keeps the field unless it is empty.
func retainNonEmpty(
	path ...string,
) func(context.Context, *unstructured.Unstructured, *unstructured.Unstructured) (*unstructured.Unstructured, error) {
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

// retainClaim keeps the volume of a bound claim, and the classes that the member cluster set on a
// claim without classes. It keeps them because neither the volume nor the classes can be removed
// from a claim.
func retainClaim(ctx context.Context, desired, observed *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	desired, err := retainNonEmpty("spec", "volumeName")(ctx, desired, observed)
	if err != nil {
		return nil, err
	}
	return retainUnsetFields(desired, observed, "storageClassName", "volumeAttributesClassName")
}

// retainUnsetFields keeps those of the given fields of the spec that the desired object does not
// set.
func retainUnsetFields(desired, observed *unstructured.Unstructured, fields ...string) (*unstructured.Unstructured, error) {
	memberSpec, err := nested[map[string]any](observed.Object, "spec")
	if err != nil {
		return nil, fmt.Errorf("reading the member object: %w", err)
	}
	spec, err := nested[map[string]any](desired.Object, "spec")
	if err != nil {
		return nil, err
	}
	retained := copyOnWrite{object: desired}
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

// memberVolume is the part of the status of a volume or a claim that is aggregated.
type memberVolume[P ~string] struct {
	Phase P `json:"phase"`
}

// aggregateVolume aggregates the most severe phase. A volume without a status is Pending.
func aggregateVolume(
	_ context.Context, template *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem,
) (*unstructured.Unstructured, error) {
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
		// This field is kept, because the API server sets it with each change of the phase.
		LastPhaseTransitionTime: old.LastPhaseTransitionTime,
	}
	if status.Phase == "" {
		status.Phase = corev1.VolumePending
	}
	return replaceStatus(template, &old, &status)
}

// aggregateClaim aggregates the phase: Lost if any cluster lost its volume, else a phase other than
// Bound if any cluster has one, else Bound. A claim without a status is Pending.
func aggregateClaim(
	_ context.Context, template *unstructured.Unstructured, items []workv1alpha2.AggregatedStatusItem,
) (*unstructured.Unstructured, error) {
	old, err := typed[corev1.PersistentVolumeClaimStatus](template.Object, "status")
	if err != nil {
		return nil, err
	}
	phase := corev1.PersistentVolumeClaimPhase("")
	err = forEachStatus(items, func(_ string, reported *memberVolume[corev1.PersistentVolumeClaimPhase]) {
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
