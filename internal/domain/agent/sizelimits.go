package agent

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// MaxObjectBytes is the maximum size of an agent's Event or certificate request, in bytes of JSON
	// including metadata.
	MaxObjectBytes = 16 << 10

	// baseReportBytes and reportBytesPerManifest are the parts of the limit for a report. An agent
	// truncates the status of each object at 16 KiB. The rest is for conditions, identifiers and
	// managedFields.
	baseReportBytes        = 32 << 10
	reportBytesPerManifest = 24 << 10
	// maxReportBytes limits the report for any number of manifests. It leaves room for the Work's spec,
	// because etcd accepts objects of at most 1.5 MiB.
	maxReportBytes = 1200 << 10
)

// CheckObjectBytes returns an error for an Event or a certificate request that is too large.
func CheckObjectBytes(kind string, bytes int) error {
	if bytes <= MaxObjectBytes {
		return nil
	}
	return fmt.Errorf("%s has %d bytes, and the agent of a cluster may store at most %d: shorten its fields and metadata", kind, bytes,
		MaxObjectBytes)
}

// WorkReport returns an agent's report in a Work: the fields that an agent may change, which are the status,
// the finalizers and managedFields.
func WorkReport(work map[string]any) map[string]any {
	report := map[string]any{"status": work["status"]}
	if metadata, ok := work["metadata"].(map[string]any); ok {
		report["finalizers"], report["managedFields"] = metadata["finalizers"], metadata["managedFields"]
	}
	return report
}

// ManifestCount returns the number of manifests in a Work.
func ManifestCount(work map[string]any) int {
	manifests, _, _ := unstructured.NestedFieldNoCopy(work, "spec", "workload", "manifests")
	list, _ := manifests.([]any)
	return len(list)
}

// MaxWorkReportBytes returns the maximum size of the report (WorkReport) on the given number of
// manifests, in bytes of JSON. If large is true, the feature gate LargeStatus is enabled and
// statuses are not truncated.
func MaxWorkReportBytes(manifests int, large bool) int {
	if large {
		return maxReportBytes
	}
	return baseReportBytes + min(manifests, (maxReportBytes-baseReportBytes)/reportBytesPerManifest)*reportBytesPerManifest
}

// CheckWorkReportBytes returns an error for a report (WorkReport) that is too large. A report that
// was too large before may stay but not grow, because the statuses of removed manifests stay until
// the agent reports again.
func CheckWorkReportBytes(manifests, before, bytes int, large bool) error {
	limit := MaxWorkReportBytes(manifests, large)
	if bytes <= max(limit, before) {
		return nil
	}
	return fmt.Errorf("status, finalizers and managedFields have %d bytes, and the agent of a cluster may store at most %d for %d manifests: reflect less of the status of each object",
		bytes, limit, manifests)
}
