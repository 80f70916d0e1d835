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
	// auditMegabytes is the size at which an audit log is begun anew, and auditBackups
	// how many of before are kept.
	auditMegabytes = 64
	auditBackups   = 4
)

// auditPolicy records who asked for what and how that ended. Bodies are never
// recorded: Secrets are in Works too, and in whatever else people put them. What the
// servers of this process read all the time says nothing about its users.
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

// auditFlags are the flags of an API server that keeps an audit log.
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
