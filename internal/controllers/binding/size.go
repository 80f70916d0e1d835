package binding

import (
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

// sizeError reports a Work that is too large for the storage of the control plane. A retry does not
// help until the template, its overrides or the limit change.
type sizeError struct {
	message string
	err     error
}

func (s *sizeError) Error() string { return s.message }
func (s *sizeError) Unwrap() error { return s.err }

// explainSize returns a sizeError if a write failed because the Work is too large, and otherwise the
// error itself.
func explainSize(desired *workv1alpha1.Work, err error) error {
	if err == nil || !isTooLarge(err) {
		return err
	}
	manifests := 0
	for _, manifest := range desired.Spec.Workload.Manifests {
		manifests += len(manifest.Raw)
	}
	encoded, encodingErr := json.Marshal(desired)
	if encodingErr != nil {
		return err
	}
	return &sizeError{err: err, message: fmt.Sprintf(
		"the object has %d KiB, and its Work has %d KiB as escaped JSON, which is more than the API server of the control plane stores in one object "+
			"(by default 1536 KiB, the limit --max-request-bytes of etcd): make the object smaller, or split it", kibibytes(manifests),
		kibibytes(len(encoded)))}
}

// isTooLarge reports whether the API server or etcd rejected a request because of its size. The error
// of etcd has no reason of its own.
func isTooLarge(err error) bool {
	return apierrors.IsRequestEntityTooLargeError(err) || strings.Contains(err.Error(), "request is too large") ||
		strings.Contains(err.Error(), "larger than max")
}

func kibibytes(bytes int) int { return (bytes + 1023) / 1024 }
