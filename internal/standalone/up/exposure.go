package up

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
)

const (
	memberProgramsFlag = "member-programs"
	// dataDirPlaceholder stands for the data directory in auditLogDefault.
	dataDirPlaceholder = "<data-dir>"
	auditLogDefault    = dataDirPlaceholder + "/audit/audit.log"
)

// programsDisabledReason returns why members do not run Pods as processes on this machine, or nil if
// they do. confinement is not nil if the kernel cannot confine the processes.
func (o Options) programsDisabledReason(confinement error) error {
	if o.MemberPrograms != nil {
		if *o.MemberPrograms {
			return nil
		}
		return fmt.Errorf("--%s=false is set: start without it to run programs", memberProgramsFlag)
	}
	if !isLoopback(o.BindAddress) {
		return fmt.Errorf("programs of Pods are processes of this machine, and --bind-address %s allows access from other machines: set --%s to run them anyway", o.BindAddress, memberProgramsFlag)
	}
	if confinement != nil {
		return fmt.Errorf("%w, or set --%s to run programs with all your permissions", confinement, memberProgramsFlag)
	}
	return nil
}

// isLoopback reports whether the address is reachable only from this machine. An empty address means
// the default address, which is loopback.
func isLoopback(address string) bool {
	ip := net.ParseIP(address)
	return address == "" || ip != nil && ip.IsLoopback()
}

// resolveAuditLog returns the audit log's absolute path for a value of --audit-log.
func resolveAuditLog(dir dataDir, value string) (string, error) {
	if value == "" {
		return "", nil
	}
	path, err := filepath.Abs(strings.Replace(value, dataDirPlaceholder, dir.path, 1))
	if err != nil {
		return "", fmt.Errorf("resolving the path of --audit-log: %w", err)
	}
	return path, nil
}
