package work

import (
	"encoding/json"
	"fmt"
	"maps"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/conditions"
)

// RenderReport is the result of an attempt to render all Works of a binding.
type RenderReport struct {
	// Failures maps each target without a current Work to the reason.
	Failures map[string]string
	// HasUnmarkedWork is true if a Work is current, but its RenderedFromAnnotation does not show that.
	HasUnmarkedWork bool
}

// WithReport returns a copy of the binding that records the given report. It returns nil if the binding
// already records it.
func WithReport(bound binding.Object, report RenderReport) binding.Object {
	failures, generation := encodeRenderFailures(report.Failures), renderedGeneration(bound)
	stored := bound.GetAnnotations()
	isMissing := report.HasUnmarkedWork && stored[workv1alpha2.RenderedGenerationAnnotation] != generation
	if failures == stored[workv1alpha2.RenderFailuresAnnotation] && !isMissing {
		return nil
	}
	if !report.HasUnmarkedWork {
		generation = ""
	}
	annotations := mergedMap(stored, map[string]string{
		workv1alpha2.RenderFailuresAnnotation: failures, workv1alpha2.RenderedGenerationAnnotation: generation,
	})
	maps.DeleteFunc(annotations, func(key, value string) bool {
		return value == "" && (key == workv1alpha2.RenderFailuresAnnotation || key == workv1alpha2.RenderedGenerationAnnotation)
	})
	recorded := binding.Copy(bound)
	recorded.SetAnnotations(annotations)
	return recorded
}

// HasNewReport reports whether the two versions of a binding record different reports.
func HasNewReport(before, after binding.Object) bool {
	older, newer := before.GetAnnotations(), after.GetAnnotations()
	return older[workv1alpha2.RenderFailuresAnnotation] != newer[workv1alpha2.RenderFailuresAnnotation] ||
		older[workv1alpha2.RenderedGenerationAnnotation] != newer[workv1alpha2.RenderedGenerationAnnotation]
}

// renderedGeneration returns the value of RenderedGenerationAnnotation for the binding's current
// generation.
func renderedGeneration(bound binding.Object) string {
	return fmt.Sprintf("%s/%d", bound.GetUID(), bound.GetGeneration())
}

// maxRenderFailureBytes limits the total size of the messages in RenderFailuresAnnotation, in bytes.
// All annotations of an object together may have 256 KiB.
const maxRenderFailureBytes = 64 << 10

// encodeRenderFailures returns the failures as JSON, or an empty string if there are none. Messages
// that are too long are truncated to equal shares.
func encodeRenderFailures(failures map[string]string) string {
	if len(failures) == 0 {
		return ""
	}
	share := max(maxRenderFailureBytes/len(failures), 8)
	short := make(map[string]string, len(failures))
	for cluster, reason := range failures {
		short[cluster] = conditions.Truncate(reason, share)
	}
	encoded, _ := json.Marshal(short) // a map of strings can always be encoded
	return string(encoded)
}

// decodeRenderFailures returns the failures that the binding records. It returns no failures if the
// annotation cannot be decoded, because the next attempt to render replaces the annotation.
func decodeRenderFailures(bound binding.Object) map[string]string {
	var failures map[string]string
	text := bound.GetAnnotations()[workv1alpha2.RenderFailuresAnnotation]
	if text == "" || json.Unmarshal([]byte(text), &failures) != nil {
		return nil
	}
	return failures
}
