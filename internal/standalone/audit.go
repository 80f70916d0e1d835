package standalone

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"karmada.io/karmada/internal/pki"
)

const (
	// auditMegabytes is the size at which the audit log is rotated. auditBackups is the number of
	// rotated files that are kept.
	auditMegabytes = 64
	auditBackups   = 4
)

// auditPolicy records the user, the request and the result, but never the bodies of requests,
// because Secrets, Works and other objects can contain confidential data. The regular reads by the
// servers of this process are not recorded, because no user causes them.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: None
  users: ["system:apiserver"]
  verbs: [get, list, watch]
- level: None
  users: ["system:apiserver"]
  resources: [{group: coordination.k8s.io, resources: [leases]}, {group: "", resources: [events]}, {group: events.k8s.io, resources: [events]}]
- level: None
  nonResourceURLs: ["/healthz*", "/livez*", "/readyz*", "/version", "/openapi*"]
- level: Metadata
`

// auditFlags returns the flags that make an API server write an audit log.
func auditFlags(o Options) ([]string, error) {
	if o.AuditLog == "" {
		return nil, nil
	}
	policy := filepath.Join(o.Dir, "audit-policy.yaml")
	if err := pki.WriteFile(policy, []byte(cmp.Or(o.AuditPolicy, auditPolicy)), 0o600); err != nil {
		return nil, fmt.Errorf("writing the policy of the audit log: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(o.AuditLog), 0o700); err != nil {
		return nil, fmt.Errorf("creating the directory of the audit log: %w", err)
	}
	return []string{
		"--audit-policy-file=" + policy,
		"--audit-log-path=" + o.AuditLog,
		"--audit-log-maxsize=" + strconv.Itoa(auditMegabytes),
		"--audit-log-maxbackup=" + strconv.Itoa(auditBackups),
	}, nil
}
